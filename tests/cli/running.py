"""Runs commands in this process, and copies of the embedded rulebook with one line edited."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitproof.cli.main import main
from hitproof.rules.source import rulebook_folder


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error in the JSON document on stdout."""
        error: dict[str, Any] = self.data["error"]
        return error


def run(*arguments: str | Path) -> Done:
    """Run one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def copy_book(folder: Path) -> Path:
    """A copy of the embedded rulebook in a folder of its own."""
    return Path(shutil.copytree(rulebook_folder("mixed_attention"), folder / "book"))


def edit(book: Path, file: str, old: str, new: str) -> Path:
    """Replace the first occurrence of a text in one file; returns the file."""
    path = book / file
    text = path.read_text("utf-8")
    if old not in text:
        raise LookupError(f"{file} has no {old!r}")
    path.write_text(text.replace(old, new, 1), "utf-8")
    return path


def place_of(path: Path, text: str) -> tuple[int, int]:
    """Line and column, counted from 1, at which a text first stands in a file."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if text in line:
            return number, line.index(text) + 1
    raise LookupError(f"{path} has no {text!r}")
