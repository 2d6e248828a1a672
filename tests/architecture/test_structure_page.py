"""The page on structure names every room, so that a newcomer finds each file told in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source_tree import OUTSIDE_THE_PACKAGE, ROOT, rooms

PAGE = ROOT / "docs" / "structure.md"
NAMED = set(re.findall(r"`([\w./-]+)`", PAGE.read_text("utf-8")))
IN_FULL = ("cli", "engine", "kernels", "rules", "spec", "verification")


def named(path: Path) -> bool:
    """Whether the page names a file, or a folder inside its room that it lies in."""
    shown = path.relative_to(ROOT)
    folders = [f"{parent.as_posix()}/" for parent in shown.parents if len(parent.parts) > 1]
    return shown.as_posix() in NAMED or not NAMED.isdisjoint(folders)


@pytest.mark.parametrize("room", IN_FULL)
def test_every_file_has_its_sentence(room: str) -> None:
    """Each Python file of the room is named, or the folder in it that holds the file."""
    files = [path for path in sorted((ROOT / room).rglob("*.py")) if path.name != "__init__.py"]
    missing = [path.relative_to(ROOT).as_posix() for path in files if not named(path)]
    assert not missing, f"docs/structure.md: add {', '.join(missing)}"


def test_every_room_has_its_heading() -> None:
    """Each installed room, and each folder beside the rooms, is named."""
    text = PAGE.read_text("utf-8")
    beside = ("docs", "examples", *OUTSIDE_THE_PACKAGE)
    assert [] == [room for room in (*rooms(), *beside) if f"{room}/" not in text]


def test_every_named_file_exists() -> None:
    """The page names nothing that is not there."""
    paths = {name for name in NAMED if "/" in name}
    assert [] == sorted(name for name in paths if not (ROOT / name).exists())
