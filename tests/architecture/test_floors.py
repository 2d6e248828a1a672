"""The floors of the house: a room imports only from the rooms that stand below it, and never in a circle."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_tree import (
    OUTSIDE_THE_PACKAGE,
    PACKAGE,
    ROOT,
    Module,
    imports,
    imports_of,
    modules,
    rooms,
)

MAY_IMPORT = {
    "spec": frozenset[str](),
    "rules": frozenset({"spec"}),
    "engine": frozenset({"spec", "rules"}),
    "kernels": frozenset({"spec"}),
    "verification": frozenset({"spec", "rules"}),
    "integrations": frozenset({"spec", "rules", "engine", "kernels"}),
    "cli": frozenset({"spec", "rules", "engine", "kernels", "verification", "integrations"}),
}


def wrong_edge(importer: str, target: str) -> str | None:
    """Why a module of room `importer` may not import `target`, or None where it may."""
    top, _, rest = target.partition(".")
    if top in rooms():
        return f"the import name is {PACKAGE}.{target}"
    if top in OUTSIDE_THE_PACKAGE:
        return f"{top}/ is not part of the package"
    if top != PACKAGE:
        return None
    room = rest.partition(".")[0]
    if not room:
        return f"name the room: {PACKAGE} alone holds nothing"
    if room == importer or room in MAY_IMPORT[importer]:
        return None
    return f"{importer}/ may import only {', '.join(sorted(MAY_IMPORT[importer])) or 'nothing of ours'}"


def circle(edges: dict[str, set[str]]) -> list[str] | None:
    """The modules of one circle in order, or None where there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return None


def test_every_room_has_its_floor() -> None:
    """The table of floors names exactly the installed rooms."""
    assert set(MAY_IMPORT) == set(rooms())


@pytest.mark.parametrize("room", rooms())
def test_room_imports_only_lower_floors(room: str) -> None:
    """No file of a room imports upward, sideways, from tests or benchmarks, or by a bare folder name."""
    wrong = [
        f"{module.shown}:{edge.line}: import of {edge.target}: {why}"
        for module in modules().values()
        if module.room == room
        for edge in imports(module, modules())
        if (why := wrong_edge(room, edge.target))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circle_of_imports() -> None:
    """Modules import one another without a circle, imports inside functions included, types alone aside."""
    edges: dict[str, set[str]] = {}
    for module in modules().values():
        targets = {edge.target for edge in imports(module, modules()) if not edge.typing_only}
        edges[module.name] = targets & set(modules())
    found = circle(edges)
    assert found is None, " -> ".join(found or [])


def test_tests_and_benchmarks_use_the_import_name() -> None:
    """No test and no benchmark imports a room by its bare folder name."""
    wrong = [
        f"{path.relative_to(ROOT)}:{edge.line}: import {PACKAGE}.{edge.target}, not {edge.target}"
        for folder in OUTSIDE_THE_PACKAGE
        for path in (ROOT / folder).rglob("*.py")
        for edge in imports(Module(f"{folder}.{path.stem}", path), {})
        if edge.target.partition(".")[0] in rooms()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("spec", "from hitproof.rules import loader"),
        ("engine", "def late():\n    import hitproof.verification.encode"),
        ("engine", "from hitproof.kernels import promote"),
        ("kernels", "import hitproof.engine"),
        ("verification", "import importlib\nimportlib.import_module('hitproof.engine.decide')"),
        ("integrations", "from hitproof.verification import encode"),
        ("rules", "from ..engine import decide"),
        ("cli", "from tests.strategies import segments"),
        ("rules", "from spec import errors"),
        ("engine", "if TYPE_CHECKING:\n    from hitproof.cli import main"),
    ],
)
def test_wrong_edges_are_seen(importer: str, text: str) -> None:
    """Each way of importing from the wrong floor is found, so that a clean answer means something."""
    edges = imports_of(ast.parse(text), f"hitproof.{importer}.example", {}, is_package=False)
    assert [edge.target for edge in edges if wrong_edge(importer, edge.target)] != []


def test_circles_are_seen() -> None:
    """A circle of three modules is found, and a diamond is not taken for one."""
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) is not None
    assert circle({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) is None
