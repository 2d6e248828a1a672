"""An error as a document: bad input is a finding at its place, anything else trouble of the command."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.cli.formats.document import Case, Check, Document, Finding, found_at

__all__ = ["failed"]

_HELP = "The file cannot be used as it stands, so that nothing more was looked at. docs/errors.md has every kind."


def failed(error: Mapping[str, object], command: str) -> Document:
    """The document of an error.

    Args:
        error: The error as plain data: code, message, and for bad input file, line, column, rule, got, expected, hint.
        command: What was to be run.
    """
    code, told = f"input_{error['code']}", _told(error)
    place = _place(error)
    findings: list[Finding] = []
    checks: list[Check] = []
    if place:
        checks = [Check(code, "A file that a command reads is as the language wants it.", _HELP)]
        findings = [found_at(place, code, told, error=True, rule=str(error.get("rule") or ""))]
    return Document(
        command=command,
        subject="",
        outcome="internal error" if error["code"] == "internal" else "bad input or bad usage",
        checks=checks,
        findings=findings,
        cases=[Case(code, command, "hitproof", "unknown", f"{place}: {told}" if place else told)],
        trouble=told,
    )


def _place(error: Mapping[str, object]) -> str:
    """Where the mistake stands; empty for one that is in no file."""
    file, line = error.get("file"), error.get("line")
    if not file or (file == "<memory>" and not line):
        return ""
    return f"{file}:{line}:{error.get('column')}" if line else str(file)


def _told(error: Mapping[str, object]) -> str:
    labels = ("got", "expected", "hint")
    more = [f"{label}: {error[label]}" for label in labels if error.get(label) is not None]
    return "; ".join([str(error["message"]), *more])
