"""The public door of each folder: a sorted `__all__` whose every name exists and is documented."""

from __future__ import annotations

import ast
import importlib
import inspect

import pytest

from tests.architecture.source_tree import Module, modules

# What a developer's environment need not hold; the top of every room must import without any of it.
OPTIONAL = ("lmcache", "sglang", "torch", "transformers", "triton", "vllm")

PACKAGES = [module for module in modules().values() if module.is_package]


def declared_names(module: Module) -> list[str] | None:
    """The `__all__` that stands in a module's text, or None where there is none."""
    for statement in ast.parse(module.path.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if [ast.unparse(target) for target in targets] == ["__all__"]:
                return [str(name) for name in ast.literal_eval(statement.value)]
    return None


def own_docstring(thing: object) -> str:
    """The docstring written on a class or function itself, not one from a base class or from `dataclass`."""
    if not isinstance(thing, type):
        return thing.__doc__ or ""
    text = vars(thing).get("__doc__") or ""
    return "" if text.startswith(f"{thing.__name__}(") else text


@pytest.mark.parametrize("module", modules().values(), ids=lambda module: str(module.name))
def test_module_says_what_lives_in_it(module: Module) -> None:
    """Every module has a docstring, and its `__all__`, where it has one, is sorted without doubles."""
    docstring = ast.get_docstring(ast.parse(module.path.read_text("utf-8")))
    assert docstring, f"{module.shown}: add a one-sentence docstring"
    names = declared_names(module) or []
    assert names == sorted(set(names)), f"{module.shown}: __all__ should be {sorted(set(names))}"


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: str(module.name))
def test_every_public_name_is_documented(module: Module) -> None:
    """Every name that a folder offers can be imported, and each class and function has a docstring."""
    names = declared_names(module)
    assert names is not None, f"{module.shown}: add __all__"
    try:
        door = importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL or module.name.count(".") == 1:
            raise
        pytest.skip(f"{error.name} is not installed")
    missing = [name for name in names if not hasattr(door, name)]
    assert not missing, f"{module.shown}: __all__ names what is not there: {', '.join(missing)}"
    silent = [
        name
        for name in names
        if inspect.isclass(thing := getattr(door, name)) or inspect.isroutine(thing)
        if not own_docstring(thing)
    ]
    assert not silent, f"{module.shown}: no docstring on {', '.join(silent)}"
