"""Answers of commands as pipelines read them: SARIF, JUnit, annotations of GitHub, Markdown."""

from hitproof.cli.formats.document import Case, Check, Document, Finding, few, found_at
from hitproof.cli.formats.failed import failed
from hitproof.cli.formats.mutated import mutated
from hitproof.cli.formats.played import played
from hitproof.cli.formats.verified import verified
from hitproof.cli.formats.writing import PIPELINE_FORMATS, Wish, require_formats, wishes, write_report

__all__ = [
    "Case",
    "Check",
    "Document",
    "Finding",
    "PIPELINE_FORMATS",
    "Wish",
    "failed",
    "few",
    "found_at",
    "mutated",
    "played",
    "require_formats",
    "verified",
    "wishes",
    "write_report",
]
