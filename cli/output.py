"""What the commands write: results to stdout, messages to stderr, files whole or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hitproof.spec.errors import MissingFileError, Position

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "check_target",
    "clean",
    "console",
    "make_folder",
    "plain_data",
    "show",
    "table",
    "write_document",
    "write_file",
    "write_json",
    "write_line",
    "write_text",
]

PIPE_WIDTH = 120
"""Columns of a table that no terminal shows."""


def clean(text: str) -> str:
    """The text with every character that could steer a terminal made visible; line ends stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain_data(value: Any) -> Any:
    """The value as JSON has it: sets sorted, tuples as lists, what is endless or no number as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain_data(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_data, value), key=lambda item: (str(type(item)), item))
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    write_line(sys.stdout, json.dumps(plain_data(value), indent=2, allow_nan=False))


def write_text(text: str) -> None:
    """Write text to stdout as it is, but for what could steer a terminal."""
    write_line(sys.stdout, clean(text.rstrip("\n")))


def write_line(stream: TextIO, text: str) -> None:
    """Write a line; a reader who has gone away does not change the command's answer."""
    try:
        stream.write(text + "\n")
        stream.flush()
    except BrokenPipeError:
        # Python flushes the streams once more at exit, which must not fail again.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except UnicodeEncodeError:
        safe = text.encode(stream.encoding or "ascii", "backslashreplace").decode(stream.encoding or "ascii")
        write_line(stream, safe)


def console(*, to_stderr: bool = False) -> Console:
    """A console without colours off a terminal, or where `NO_COLOR` is set."""
    from rich.console import Console

    stream = sys.stderr if to_stderr else sys.stdout
    made = Console(file=stream, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def show(*parts: RenderableType) -> None:
    """Write texts and tables to stdout; text may carry control characters of a user's file."""
    screen = console()
    with screen.capture() as captured:
        for part in parts:
            if isinstance(part, str):
                screen.print(clean(part), soft_wrap=True)
            else:
                screen.print(part)
    lines = captured.get().rstrip("\n").split("\n")
    write_line(sys.stdout, "\n".join(line.rstrip() for line in lines))


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> RenderableType:
    """A table of texts; what is None stays empty."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(clean(title)), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for heading in headings:
        made.add_column(Text(heading), overflow="fold")
    for row in rows:
        made.add_row(*(Text("" if cell is None else clean(str(cell))) for cell in row))
    return made


def write_file(path: Path, text: str) -> None:
    """Write a file that appears whole, or stays as it was.

    Raises:
        MissingFileError: It cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(temporary, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(text if text.endswith("\n") else text + "\n")
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise MissingFileError(
            "the file cannot be written",
            where=Position(str(path)),
            got=reason,
            expected="a writable folder and a file's name",
        ) from error


def check_target(path: Path) -> None:
    """Refuse a file that could not be written, before the work that would fill it.

    Raises:
        MissingFileError: Its folder does not exist, or it is a folder itself.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise MissingFileError(
            "the file cannot be written",
            where=Position(str(path)),
            got="a folder" if path.is_dir() else "no such folder",
            expected="a writable folder and a file's name",
        )


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are missing.

    Raises:
        MissingFileError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingFileError(
            "the folder cannot be made", where=Position(str(path)), got=error.strerror, expected="a folder"
        ) from error


def write_document(text: str, out: Path | None, about: Mapping[str, object], *, as_json: bool) -> None:
    """Write a text to a file or to stdout.

    Args:
        text: The document.
        out: The file, else stdout.
        about: What JSON says besides `document`, or the `file` that it went to.
        as_json: Answer as JSON.

    Raises:
        MissingFileError: The file cannot be written.
    """
    if out is not None:
        write_file(out, text)
    if as_json:
        write_json({**about, **({"document": text} if out is None else {"file": str(out)})})
    else:
        write_text(text if out is None else f"written: {out}")
