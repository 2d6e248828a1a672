"""A summary in Markdown, for the page of a pipeline's run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitproof.cli.formats.document import Document, one_line

__all__ = ["markdown_summary"]

_MOST = 100
"""Findings that a summary shows: pages of pipelines are bounded."""

_STEERING = re.compile(r"[\\`*\[\]<>|~!#&]|(?<!\w)_|_(?!\w)")


def markdown_summary(document: Document) -> str:
    """What came out, a table, and each finding with its place."""
    about = f" {_plain(document.subject)}:" if document.subject else ""
    lines = [f"## hitproof {document.command}:{about} {_plain(document.outcome)}", ""]
    if document.trouble and not document.findings:
        lines += [_plain(document.trouble), ""]
    if document.headings:
        lines += [_row(document.headings), _row(["---"] * len(document.headings))]
        lines += [_row([_plain(cell) for cell in row]) for row in document.rows]
        lines.append("")
    shown = document.findings[:_MOST]
    lines += [
        f"- **{found.level}** `{_code(found.file)}:{found.line}:{found.column}` {_plain(found.message)}"
        for found in shown
    ]
    if len(document.findings) > len(shown):
        lines.append(f"- and {len(document.findings) - len(shown)} more")
    if shown:
        lines.append("")
    return "\n".join([*lines, *(line for note in document.notes for line in (_plain(note), ""))])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text that steers neither a table nor the page around it."""
    return _STEERING.sub(r"\\\g<0>", one_line(text))


def _code(text: str) -> str:
    return one_line(text).replace("`", "'")
