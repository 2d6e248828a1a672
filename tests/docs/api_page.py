"""The tables of docs/api.md, made of the public doors: `PYTHONPATH=.pkg python -m tests.docs.api_page` writes them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

from tests.docs.console import ROOT

__all__ = ["ADAPTERS", "PAGE", "STABLE", "adapters", "names_of", "tables"]

PAGE = ROOT / "docs" / "api.md"
STABLE = (
    "hitproof.engine",
    "hitproof.engine.cache",
    "hitproof.engine.observe",
    "hitproof.engine.policy",
    "hitproof.engine.ranks",
    "hitproof.engine.store",
    "hitproof.integrations.gate",
    "hitproof.spec.decision",
    "hitproof.spec.errors",
)
"""Modules whose names, parameters and methods are promised."""

ADAPTERS = ROOT / "integrations"
_BEGIN, _END = "<!-- made by tests.docs.api_page -->\n", "<!-- end -->\n"


def adapters() -> list[str]:
    """Packages of `integrations/` that put the engine into something, which promise their names alone."""
    folders = sorted(path.parent.name for path in ADAPTERS.glob("*/__init__.py"))
    return [f"hitproof.integrations.{name}" for name in folders if name != "gate"]


def names_of(module: str) -> list[str]:
    """The `__all__` that stands in a package's text, whether or not what it imports is installed."""
    path = ROOT / Path(*module.split(".")[1:]) / "__init__.py"
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if [ast.unparse(target) for target in targets] == ["__all__"]:
                return [str(name) for name in ast.literal_eval(statement.value)]
    raise LookupError(f"{module} has no __all__")


def tables() -> str:
    """What stands between the marks of the page."""
    lines: list[str] = []
    for module in STABLE:
        lines += [f"### `{module}`", "", "| name | what it is |", "| --- | --- |"]
        door = importlib.import_module(module)
        lines += [f"| {_shown(name, getattr(door, name))} | {_told(getattr(door, name))} |" for name in door.__all__]
        lines.append("")
    lines += ["### Adapters", "", "| package | names |", "| --- | --- |"]
    lines += [f"| `{module}` | {', '.join(f'`{name}`' for name in names_of(module)) or '-'} |" for module in adapters()]
    return "\n".join(lines) + "\n"


def _shown(name: str, thing: Any) -> str:
    """A name with its parameters, and of a class its public methods."""
    if inspect.isclass(thing):
        parts = [f"`{name}{_parameters(thing)}`", *(f"`.{method}`" for method in _methods(thing))]
        return "<br>".join(parts)
    if inspect.isroutine(thing):
        return f"`{name}{_parameters(thing)}`"
    return f"`{name}`"


def _parameters(thing: Any) -> str:
    """Names of parameters, in their order and kind; nothing of a class that takes what Python's own classes take."""
    if inspect.isclass(thing) and hasattr(thing, "model_fields"):
        return f"(*, {', '.join(thing.model_fields)})"
    if inspect.isclass(thing):
        made_by = [base for base in thing.__mro__ if "__init__" in vars(base)]
        if getattr(thing, "_is_protocol", False) or not made_by[0].__module__.startswith("hitproof."):
            return ""
    found = inspect.signature(thing).parameters.values()
    shown: list[str] = []
    starred = False
    for one in found:
        if one.kind is one.VAR_POSITIONAL:
            starred = True
        elif one.kind is one.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        prefix = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        if one.name != "self":
            shown.append(f"{prefix}{one.name}{'' if one.default is one.empty else '='}")
    return f"({', '.join(shown)})"


def _methods(thing: type[Any]) -> Iterator[str]:
    """Public methods and properties that a class of ours has, its bases' too."""
    found: dict[str, Any] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.startswith("hitproof."):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    for name, value in sorted(found.items()):
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function):
            shown = re.sub(r"^\(cls(, )?", "(", _parameters(function))
            yield f"{name}{shown}"
        elif isinstance(value, property):
            yield name


def _told(thing: Any) -> str:
    """The first sentence of its docstring; of a value, what it is."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return f"a {'type' if get_origin(thing) is not None else type(thing).__name__}"
    text = " ".join((thing.__doc__ or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def _write() -> None:
    text = PAGE.read_text("utf-8")
    before, after = text.partition(_BEGIN)[0], text.partition(_END)[2]
    PAGE.write_text(f"{before}{_BEGIN}\n{tables()}\n{_END}{after}", "utf-8")


if __name__ == "__main__":
    _write()
