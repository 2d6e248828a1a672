"""Writes a document to stdout in the format that was asked for."""

from __future__ import annotations

from hitproof.cli.formats.document import Document
from hitproof.cli.formats.github import github_annotations
from hitproof.cli.formats.junit import junit_xml, require_junit
from hitproof.cli.formats.markdown import markdown_summary
from hitproof.cli.formats.sarif import sarif_log
from hitproof.cli.output import write_json, write_text
from hitproof.cli.version import version_number

__all__ = ["PIPELINE_FORMATS", "require_format", "write_report"]

PIPELINE_FORMATS = frozenset({"github", "junit", "markdown", "sarif"})


def require_format(format: str) -> None:
    """Refuse a format that could not be written, before the work that would fill it.

    Raises:
        UsageError: A package is missing that the format needs.
    """
    if format == "junit":
        require_junit()


def write_report(document: Document, format: str) -> None:
    """Write a document.

    Args:
        document: A command's answer.
        format: One of `PIPELINE_FORMATS`.

    Raises:
        UsageError: A package is missing that the format needs.
    """
    if format == "sarif":
        write_json(sarif_log(document, version_number() or "0.0.0"))
    elif format == "junit":
        write_text(junit_xml(document))
    elif format == "github":
        write_text(github_annotations(document))
    else:
        write_text(markdown_summary(document))
