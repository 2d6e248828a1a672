"""What is installed matches what stands in the folders: rooms, links, packages and data files."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.architecture.source_tree import LINKS, OUTSIDE_THE_PACKAGE, PACKAGE, ROOT, rooms


def shipped_patterns() -> list[str]:
    """The patterns of data files that every package ships."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["*"]
    return [str(pattern) for pattern in patterns]


def test_every_room_is_installed() -> None:
    """Each top-level folder with a public door is a room of setup.py, and each room is such a folder."""
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - set(OUTSIDE_THE_PACKAGE)
    assert list(rooms()) == sorted(rooms()), "setup.py: keep ROOMS sorted"
    missing = sorted(folders - set(rooms()))
    assert not missing, "setup.py: add to ROOMS: " + ", ".join(f'"{room}"' for room in missing)
    gone = sorted(set(rooms()) - folders)
    assert not gone, f"setup.py: remove from ROOMS, or give it an __init__.py: {', '.join(gone)}"


def test_every_room_has_its_link() -> None:
    """`.pkg/hitproof/` holds one relative link for each room and nothing else."""
    missing = [room for room in rooms() if not (LINKS / room).is_symlink()]
    assert not missing, "run: " + "; ".join(f"ln -s ../../{room} .pkg/{PACKAGE}/{room}" for room in missing)
    wrong = [room for room in rooms() if (LINKS / room).readlink() != Path("../..") / room]
    assert not wrong, f".pkg/{PACKAGE}: these links lead elsewhere: {', '.join(wrong)}"
    extra = sorted({path.name for path in LINKS.iterdir()} - set(rooms()) - {"__pycache__"})
    assert not extra, f".pkg/{PACKAGE}: remove {', '.join(extra)}"


@pytest.mark.parametrize("room", rooms())
def test_every_code_folder_is_a_package(room: str) -> None:
    """Each folder that holds Python files has an `__init__.py` all the way up, or it is not installed."""
    needed = {
        folder for path in (ROOT / room).rglob("*.py") for folder in path.parents if folder.is_relative_to(ROOT / room)
    }
    missing = sorted(
        (folder / "__init__.py").relative_to(ROOT).as_posix()
        for folder in needed
        if not (folder / "__init__.py").exists()
    )
    assert not missing, f"add {', '.join(missing)} (a one-sentence docstring and __all__)"


@pytest.mark.parametrize("room", rooms())
def test_every_room_is_typed(room: str) -> None:
    """Type checkers of users look for `py.typed` in each room, as the shared name above holds no file."""
    assert (ROOT / room / "py.typed").exists(), f"add an empty file {room}/py.typed"


@pytest.mark.parametrize("room", rooms())
def test_every_data_file_is_shipped(room: str) -> None:
    """Each file of a room that is not Python is named by a pattern of the package data."""
    patterns = shipped_patterns()
    files = (path for path in (ROOT / room).rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc"))
    unshipped = sorted(path for path in files if not any(fnmatch(path.name, pattern) for pattern in patterns))
    lines = [
        f'pyproject.toml: add to package-data "*": "*{path.suffix}" (for {path.relative_to(ROOT)})'
        for path in unshipped
    ]
    assert not lines, "\n".join(lines)
