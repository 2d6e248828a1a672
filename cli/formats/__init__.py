"""Answers of commands as pipelines read them: SARIF, JUnit, annotations of GitHub, Markdown."""

from hitproof.cli.formats.document import Case, Check, Document, Finding, few, found_at
from hitproof.cli.formats.failed import failed
from hitproof.cli.formats.played import played
from hitproof.cli.formats.verified import verified
from hitproof.cli.formats.writing import PIPELINE_FORMATS, require_format, write_report

__all__ = [
    "PIPELINE_FORMATS",
    "Case",
    "Check",
    "Document",
    "Finding",
    "failed",
    "few",
    "found_at",
    "played",
    "require_format",
    "verified",
    "write_report",
]
