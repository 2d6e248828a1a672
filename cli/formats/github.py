"""Annotations that GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from hitproof.cli.formats.findings import Finding, findings
from hitproof.spec.proof import VerifyReport

__all__ = ["github_annotations"]


def github_annotations(report: VerifyReport, book: str) -> str:
    """A workflow command a finding, and a last line that says what came out."""
    lines = [_annotation(found) for found in findings(report, book)]
    return "\n".join([*lines, f"::notice title=hitproof::{_message(f'{report.rulebook}: {report.verdict}')}", ""])


def _annotation(found: Finding) -> str:
    place = f"file={_property(found.file)},line={found.line},col={found.column}"
    said = f"{found.message} ({', '.join(found.profiles)})"
    return f"::{found.level} {place},title={_property(f'hitproof {found.claim}')}::{_message(said)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
