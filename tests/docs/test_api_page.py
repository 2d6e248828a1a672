"""The page of the public API lists what there is, with parameters and methods."""

from __future__ import annotations

import importlib
import inspect

import pytest

from tests.docs.api_page import PAGE, STABLE, adapters, names_of, tables
from tests.docs.pages import rows


def test_the_page_is_the_public_doors() -> None:
    """A name, parameter or method that appeared or went fails here until the page is written anew."""
    told = PAGE.read_text("utf-8")
    assert f"\n{tables()}\n" in told, "PYTHONPATH=.pkg python -m tests.docs.api_page"


@pytest.mark.parametrize("module", STABLE)
def test_promised_names_are_documented_and_sorted(module: str) -> None:
    """Each promised module has a sorted list of names, and what can have a docstring has one."""
    door = importlib.import_module(module)
    assert sorted(door.__all__) == list(door.__all__)
    things = {name: getattr(door, name) for name in door.__all__}
    documented = {name: thing for name, thing in things.items() if inspect.isclass(thing) or inspect.isroutine(thing)}
    assert not [name for name, thing in documented.items() if not thing.__doc__]


def test_every_adapter_is_listed_with_its_names() -> None:
    """No folder of `integrations/` is left out, whether or not its framework is installed here."""
    listed = {package.strip("`"): names for package, names in rows(PAGE, "package", "names")}
    assert sorted(listed) == adapters()
    for module, names in listed.items():
        assert (names_of(module) or ["-"]) == [name.strip("`") for name in names.split(", ")]


def test_a_changed_parameter_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above is no test of names alone: renaming one parameter changes the tables."""
    before = tables()
    import hitproof.engine as door

    def load(model: str, rulebook: str = "mixed_attention") -> None:
        """Load a rulebook, bind it to a model and compile the engine."""

    monkeypatch.setattr(door, "load", load)
    assert before != tables()
