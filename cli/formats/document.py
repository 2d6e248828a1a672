"""What a command found, in the shape from which every format for pipelines is written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Case", "Check", "Document", "Finding", "MAX_FINDINGS", "Outcome", "few", "found_at", "one_line"]

Outcome = Literal["passed", "failed", "unknown"]

MAX_FINDINGS = 5_000
"""Findings that a document carries; code scanning shows no more."""

_MAX_TEXT = 1_000
_PLACE = re.compile(r"(?P<file>.*?):(?P<line>[0-9]+):(?P<column>[0-9]+)", re.DOTALL)
# Halves of characters that stand for no byte of a file's name.
_NO_NAME = re.compile("[\ud800-\udc7f\udd00-\udfff]")


@dataclass(frozen=True, slots=True)
class Check:
    """Something that a command looks at and that can fail: a claim, a scenario, a kind of bad input.

    Args:
        sentence: What must hold, in plain words.
        help: How it is decided, and what it assumes.
    """

    id: str
    sentence: str
    help: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be.

    Args:
        check: Id of the check that tells it.
        level: `error` for what is refuted or has failed, `warning` for what is unknown.
        rule: Id of the rule concerned; empty where none is.
        file: The file, relative to the current folder where it lies below it.
        line, column: Its place, at least 1.
        message: What goes wrong, in one plain line.
    """

    check: str
    level: Literal["error", "warning"]
    rule: str
    file: str
    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Case:
    """One test as JUnit counts them.

    Args:
        suite: The check that it belongs to.
        place: What JUnit calls the class.
        outcome: How it came out.
        told: Why it did not pass.
        file: Where it stands; empty where in no file.
        seconds: How long it took.
    """

    suite: str
    name: str
    place: str
    outcome: Outcome
    told: str = ""
    file: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Document:
    """A command's answer.

    Args:
        command: The command's name.
        subject: What it was asked about: a rulebook's name.
        outcome: What came out, in a word or two.
        checks: Every check that was looked at.
        findings: What failed, in the order of the checks.
        cases: The same and what passed, test by test.
        headings: Of the table of a summary.
        rows: Its rows, as long as the headings.
        notes: Lines below the table.
        properties: What else programs may read: names and texts.
        trouble: Why the command could not answer; empty where it did.
    """

    command: str
    subject: str
    outcome: str
    checks: Sequence[Check] = ()
    findings: Sequence[Finding] = ()
    cases: Sequence[Case] = ()
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = ()
    properties: Sequence[tuple[str, str]] = ()
    trouble: str = ""


def found_at(place: str, check: str, message: str, *, error: bool, rule: str = "") -> Finding:
    """A finding at `file:line:column`, or in a file without a line."""
    match = _PLACE.fullmatch(place)
    file, line, column = (place, 1, 1) if match is None else (match["file"], int(match["line"]), int(match["column"]))
    level: Literal["error", "warning"] = "error" if error else "warning"
    return Finding(check, level, one_line(rule), _relative(file), max(1, line), max(1, column), one_line(message))


def one_line(text: str, limit: int = _MAX_TEXT) -> str:
    """The text in one printable line of bounded length: it may carry whatever stands in a user's files."""
    seen = "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)
    line = " ".join(seen.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def few(names: Sequence[str], most: int = 4) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def _relative(file: str) -> str:
    """The path as a checkout names it: relative to the current folder, with forward slashes."""
    file = _NO_NAME.sub("\N{REPLACEMENT CHARACTER}", file)
    try:
        inside = os.path.relpath(os.path.abspath(file))
    except ValueError:
        return file.replace(os.sep, "/")
    outside = inside == os.pardir or inside.startswith(os.pardir + os.sep)
    return (file if outside else inside).replace(os.sep, "/")
