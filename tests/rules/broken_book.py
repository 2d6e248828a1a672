"""Copies of the embedded rulebook with one place edited, and what must be told about each edit."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from hitproof.rules.resolve import load_rulebook
from hitproof.rules.source import rulebook_folder
from hitproof.spec.errors import HitproofError

MARK = "¶"
"""In the text of an edit: the place that the error must name."""


@dataclass(frozen=True)
class Slip:
    """One edit of one file and the error that it must cause.

    Args:
        name: What was done, for the test's id.
        file: File inside the rulebook's folder.
        old: Text that stands there once.
        new: Text in its stead, with a `MARK` where the error must point.
        error: The class of the error.
        rule: The id of the rule that is told.
        got: What stood there, as it is told.
        expected: A part of what would have been right, as it is told.
        hint: A part of the hint.
        message: A part of the message.
    """

    name: str
    file: str
    old: str
    new: str
    error: type[HitproofError]
    rule: str | None = None
    got: str | None = None
    expected: str | None = None
    hint: str | None = None
    message: str = ""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def slips(*cases: Slip) -> pytest.MarkDecorator:
    """Run a test once for each slip, under its name."""
    return pytest.mark.parametrize("slip", cases, ids=str)


def copy_book(folder: Path) -> Path:
    """A copy of the embedded rulebook with its repairs, in a folder of its own."""
    book = Path(shutil.copytree(rulebook_folder("mixed_attention"), folder / "book"))
    shutil.copytree(rulebook_folder("mixed_attention").parent / "repairs", book / "repairs")
    return book


def edit(book: Path, file: str, old: str, new: str) -> Path:
    """Replace a text that stands once in a file of the copy; returns the file."""
    path = book / file
    text = path.read_text("utf-8")
    if text.count(old) != 1:
        raise LookupError(f"{file} has {text.count(old)} times {old!r}")
    path.write_text(text.replace(old, new), "utf-8")
    return path


def place_of_mark(path: Path) -> tuple[int, int]:
    """Line and column of the mark in a file, which is taken out."""
    text = path.read_text("utf-8")
    before, _, after = text.partition(MARK)
    path.write_text(before + after, "utf-8")
    lines = before.split("\n")
    return len(lines), len(lines[-1]) + 1


def assert_told(folder: Path, slip: Slip) -> None:
    """The slip is refused by its own class of error, with place, rule, what was got and what was expected."""
    book = copy_book(folder)
    path = edit(book, slip.file, slip.old, slip.new)
    line, column = place_of_mark(path)
    with pytest.raises(HitproofError) as caught:
        load_rulebook(book)
    error = caught.value
    assert slip.error is type(error), str(error)
    assert (str(path), line, column) == (error.where.file, error.where.line, error.where.column), str(error)
    assert slip.rule == error.rule, str(error)
    assert slip.got == error.got, str(error)
    assert slip.message in error.message
    for part, told in ((slip.expected, error.expected), (slip.hint, error.hint)):
        assert part is None or part in (told or ""), str(error)
