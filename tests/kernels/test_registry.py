"""Names of repairs and implementations belong together one to one, and torch is loaded only where it is needed."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from operator import attrgetter
from pathlib import Path

import pytest

import hitproof.kernels.registry as registry
from hitproof.kernels.registry import KERNELS, implementation
from hitproof.rules import load_rulebook
from hitproof.spec.errors import UsageError
from tests.architecture.source_tree import ROOT
from tests.architecture.test_light_imports import loaded_by

FOLDER = ROOT / "kernels"
PARTS = ("README.md", "__init__.py", "bind.py", "kernel.py", "launch.py", "reference.py", "trial.py")


def test_kernels_and_declarations_are_one_to_one() -> None:
    """Every repair that says it runs as a kernel is registered, and nothing else is."""
    declared = load_rulebook("mixed_attention").repairs.values()
    assert sorted(one.id for one in declared if one.runs == "kernel") == list(KERNELS)


def test_every_kernel_has_its_folder() -> None:
    """Each folder has its parts, and no folder stands beside them but those of trials and of the bench."""
    missing = [f"{name}/{part}" for name in KERNELS for part in PARTS if not (FOLDER / name / part).is_file()]
    assert [] == missing
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {*KERNELS, "bench", "selftest"} == folders


@pytest.mark.parametrize("name", KERNELS)
def test_every_name_leads_to_an_implementation(name: str) -> None:
    """The registry finds what runs a repair."""
    pytest.importorskip("torch")
    assert callable(implementation(name))


@pytest.mark.parametrize("name", KERNELS)
def test_a_launch_has_the_functions_of_its_reference(name: str) -> None:
    """What `bind.py` takes from the reference stands in the launch too, with the same arguments and defaults."""
    pytest.importorskip("torch")
    text = (FOLDER / name / "bind.py").read_text("utf-8")
    pairs = re.findall(r"pick\(\s*backend,\s*([\w.]+),\s*([\w.]+)\s*,?\s*\)", text)
    assert pairs
    bind = import_module(f"hitproof.kernels.{name}.bind")
    for plain, quick in pairs:
        assert plain.partition(".")[2] == quick.partition(".")[2]
        ours, theirs = (signature(attrgetter(one)(bind)).parameters for one in (quick, plain))
        assert theirs == {key: one for key, one in ours.items() if key != "workspace"}


def test_kernels_are_imported_by_nobody_at_the_door() -> None:
    """Importing every launch and every `bind.py` loads torch and not triton, so that they work without it."""
    pytest.importorskip("torch")
    parts = "\n".join(f"import hitproof.kernels.{name}.{part}" for name in KERNELS for part in ("bind", "launch"))
    assert {"torch"} == loaded_by(parts)


def test_the_door_is_light() -> None:
    """The registry and the protocol load no tensor library."""
    modules = ("hitproof.kernels", "hitproof.kernels.registry", "hitproof.kernels.run")
    assert set() == loaded_by("\n".join(f"import {name}" for name in modules))


def test_unknown_names_are_told() -> None:
    """A repair without a kernel and a backend that is not there are errors of usage."""
    for wrong in (("forward", "torch"), ("promote", "fortran")):
        with pytest.raises(UsageError):
            implementation(*wrong)


def test_missing_torch_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch is not installed, the error names what to install."""
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        implementation("promote")
    assert "hitproof[kernels]" in str(caught.value.hint)


def test_every_readme_tells_what_is_asked_of_it() -> None:
    """Formula, contract, costs by formula, and what its source costs to keep."""
    for name in KERNELS:
        text = Path(FOLDER / name / "README.md").read_text("utf-8").lower()
        for word in ("formula", "contract", "bytes", "operations", "token"):
            assert word in text, f"{name}: {word}"
