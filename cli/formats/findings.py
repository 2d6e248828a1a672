"""What of a report is to be shown at a place: claims that are not proved, and mutants that survive."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hitproof.spec.proof import ClaimResult, VerifyReport

__all__ = ["Finding", "findings"]

_PLACE = re.compile(r"(?P<file>.*?):(?P<line>[0-9]+):(?P<column>[0-9]+)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a report.

    Args:
        claim: The claim's id.
        profiles: Models that it is about.
        level: `error` for what is refuted, `warning` for what is unknown.
        rule: Id of the rule concerned; empty where none is.
        file: The rule's file, relative to the current folder where it lies below it.
        line, column: Its place, at least 1.
        message: What goes wrong, in plain words.
        fingerprint: The same for the same finding in other runs, wherever its line has moved to.
    """

    claim: str
    profiles: tuple[str, ...]
    level: Literal["error", "warning"]
    rule: str
    file: str
    line: int
    column: int
    message: str
    fingerprint: str


def findings(report: VerifyReport, book: str) -> Iterator[Finding]:
    """Everything that is not as it must be, in the order of the claims; what several models share stands once.

    Args:
        report: The verifier's answer.
        book: The rulebook's own file, for findings that are about no rule in particular.
    """
    alike: dict[tuple[str, ...], list[ClaimResult]] = {}
    for result in report.claims:
        if result.verdict != "proved":
            found = result.counterexample
            about = ("", "", "") if found is None else (found.rule, found.place, found.sentence)
            alike.setdefault((result.id, result.verdict, *about, "" if found else result.detail), []).append(result)
    for (claim, verdict, rule, place, sentence, detail), results in alike.items():
        profiles = tuple(dict.fromkeys(result.profile for result in results))
        said = sentence or detail or results[0].sentence
        yield _finding(claim, profiles, verdict == "refuted", rule, place or book, f"{claim} is {verdict}: {said}")
    for mutant in report.mutants:
        if not mutant.killed:
            message = f"a rulebook that was broken on purpose passes ({mutant.id}: {mutant.change})"
            refuted = mutant.result.verdict != "unknown"
            yield _finding(mutant.claim, (mutant.profile,), refuted, mutant.id, mutant.place, message)


def _finding(claim: str, profiles: tuple[str, ...], bad: bool, rule: str, place: str, message: str) -> Finding:
    match = _PLACE.fullmatch(place)
    file, line, column = (place, 1, 1) if match is None else (match["file"], int(match["line"]), int(match["column"]))
    name = _relative(file)
    # Neither line nor model: both may change while the finding stays the same.
    digest = hashlib.blake2b("\n".join((claim, rule, name, message)).encode(), digest_size=16).hexdigest()
    level: Literal["error", "warning"] = "error" if bad else "warning"
    return Finding(claim, profiles, level, rule, name, max(1, line), max(1, column), message, digest)


def _relative(file: str) -> str:
    """The path as a checkout names it: relative to the current folder, with forward slashes."""
    absolute = os.path.abspath(file)
    inside = os.path.relpath(absolute)
    return (file if inside.startswith("..") else inside).replace(os.sep, "/")
