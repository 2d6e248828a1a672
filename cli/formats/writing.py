"""Writes a document in the formats that were asked for: one to stdout, any number to files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from hitproof.cli.formats.document import Document
from hitproof.cli.formats.github import github_annotations
from hitproof.cli.formats.junit import junit_xml, require_junit
from hitproof.cli.formats.markdown import markdown_summary
from hitproof.cli.formats.sarif import sarif_log
from hitproof.cli.output import check_target, clean, write_file, write_text
from hitproof.cli.version import version_number
from hitproof.spec.errors import UsageError

__all__ = ["PIPELINE_FORMATS", "Wish", "require_formats", "wishes", "write_report"]

PIPELINE_FORMATS = frozenset({"github", "junit", "markdown", "sarif"})

Wish = tuple[str, Path]
"""A format and the file that it is written to."""


def wishes(reports: Iterable[str] | None) -> list[Wish]:
    """What `--report FORMAT=FILE` asks for.

    Raises:
        UsageError: There is no such format, or no file.
    """
    found = []
    for text in reports or ():
        format, _, file = text.partition("=")
        if format not in PIPELINE_FORMATS or not file:
            known = ", ".join(sorted(PIPELINE_FORMATS))
            raise UsageError("a report is a format and a file", got=text, expected=f"FORMAT=FILE with one of {known}")
        found.append((format, Path(file)))
    return found


def require_formats(format: str, files: Sequence[Wish]) -> None:
    """Refuse formats and files that could not be written, before the work that would fill them.

    Raises:
        UsageError: A package is missing that a format needs.
        MissingFileError: A file cannot be written.
    """
    if "junit" in (format, *(wanted for wanted, _ in files)):
        require_junit()
    for _, path in files:
        check_target(path)


def write_report(document: Document, format: str, files: Sequence[Wish] = ()) -> None:
    """Write a document.

    Args:
        document: A command's answer.
        format: What goes to stdout; nothing does unless it is one of `PIPELINE_FORMATS`.
        files: What goes to files besides.

    Raises:
        UsageError: A package is missing that a format needs.
        MissingFileError: A file cannot be written.
    """
    for wanted, path in files:
        write_file(path, _rendered(document, wanted))
    if format in PIPELINE_FORMATS:
        write_text(_rendered(document, format))


def _rendered(document: Document, format: str) -> str:
    match format:
        case "sarif":
            return json.dumps(sarif_log(document, version_number() or "0.0.0"), indent=2, allow_nan=False)
        case "junit":
            return clean(junit_xml(document))
        case "github":
            return clean(github_annotations(document))
        case _:
            return clean(markdown_summary(document))
