"""Annotations that GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from hitproof.cli.formats.document import MAX_FINDINGS, Document, Finding, one_line

__all__ = ["github_annotations"]


def github_annotations(document: Document) -> str:
    """A workflow command a finding, and a last line that says what came out."""
    lines = [_annotation(found) for found in document.findings[:MAX_FINDINGS]]
    if document.trouble and not lines:
        lines.append(f"::error title=hitproof::{_message(document.trouble)}")
    told = f"{document.subject}: {document.outcome}" if document.subject else document.outcome
    return "\n".join([*lines, f"::notice title=hitproof {document.command}::{_message(told)}", ""])


def _annotation(found: Finding) -> str:
    place = f"file={_property(found.file)},line={found.line},col={found.column}"
    return f"::{found.level} {place},title={_property(f'hitproof {found.check}')}::{_message(found.message)}"


def _message(text: str) -> str:
    return one_line(text).replace("%", "%25")


def _property(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C")
