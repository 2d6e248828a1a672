"""The modules of the package as they stand in the folders, and what each of them imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINKS = ROOT / ".pkg" / "hitproof"
PACKAGE = "hitproof"
OUTSIDE_THE_PACKAGE = ("benchmarks", "tests")


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file of a room, under the name that it is imported by."""

    name: str
    path: Path

    @property
    def room(self) -> str:
        """The top-level folder that the module lives in."""
        return self.name.split(".")[1]

    @property
    def is_package(self) -> bool:
        """Whether the file is a folder's public door."""
        return self.path.name == "__init__.py"

    @property
    def shown(self) -> str:
        """The path from the repository's root, for messages."""
        return self.path.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: a module of ours where it is one, else the text that follows `import` or `from`."""

    target: str
    line: int
    typing_only: bool


@cache
def rooms() -> tuple[str, ...]:
    """The rooms that setup.py installs."""
    for statement in ast.parse((ROOT / "setup.py").read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "ROOMS":
            value = ast.literal_eval(statement.value)
            return tuple(str(room) for room in value)
    raise LookupError("setup.py assigns no ROOMS")


@cache
def modules() -> Mapping[str, Module]:
    """Every module of every room, by its import name."""
    found = (Module(_import_name(path), path) for room in rooms() for path in (ROOT / room).rglob("*.py"))
    return {module.name: module for module in sorted(found, key=lambda module: module.name)}


def imports(module: Module, known: Mapping[str, object]) -> list[Import]:
    """What a module imports anywhere in its text, also inside functions and by `import_module("...")`.

    Args:
        module: The importing module.
        known: The names of the modules that exist; tells `from package import module` from
            `from module import name`.
    """
    tree = ast.parse(module.path.read_text("utf-8"), str(module.path))
    return imports_of(tree, module.name, known, is_package=module.is_package)


def imports_of(tree: ast.AST, name: str, known: Mapping[str, object], *, is_package: bool) -> list[Import]:
    """The same for a parsed text that is called `name`."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    package = name if is_package else name.rpartition(".")[0]
    return [
        Import(target, node.lineno, id(node) in typing_only)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
        for target in _targets(node, package, known)
    ]


def _targets(node: ast.Import | ast.ImportFrom | ast.Call, package: str, known: Mapping[str, object]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        anchor = parts[: len(parts) - node.level + 1] if node.level else []
        origin = ".".join([*anchor, *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{origin}.{alias.name}"
            yield inner if inner in known else origin
    elif ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__") and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def _import_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)])
