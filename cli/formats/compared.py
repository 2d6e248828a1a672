"""A comparison of two rulebooks as a document: where the newer one accepts more, and where nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitproof.cli.formats.document import Case, Check, Document, Finding, Outcome, few, found_at

if TYPE_CHECKING:
    # Only who compares needs the solver, which comes with this module.
    from hitproof.verification.diff.report import Difference, DiffReport, Relation

__all__ = ["compared"]

_CHECK = Check(
    "diff",
    "A newer rulebook accepts nothing that the older one refuses.",
    "Method: the solver is asked for a state that one of the two accepts and the other refuses.",
)
_OUTCOMES: dict[Relation, Outcome] = {
    "equal": "passed",
    "stricter": "passed",
    "looser": "failed",
    "incomparable": "failed",
    "undecided": "unknown",
}


def compared(report: DiffReport, subject: str, book: str) -> Document:
    """The document of a comparison.

    Args:
        report: The comparison.
        subject: Name of the newer rulebook.
        book: Its own file: differences of meaning stand on no one line.
    """
    rows = [(one.what, one.subject, one.relation, one.sentence, few(one.profiles)) for one in report.differences]
    prices = [f"Prices and policies differ, which accept nothing: {', '.join(report.prices)}."] if report.prices else []
    return Document(
        command="diff",
        subject=subject,
        outcome=report.relation,
        checks=[_CHECK],
        findings=[_finding(one, book) for one in report.differences if _OUTCOMES[one.relation] != "passed"],
        cases=[_case(one, subject) for one in report.differences] or [Case(_CHECK.id, "all", subject, "passed")],
        headings=("what", "where", "newer is", "in words", "models"),
        rows=rows,
        notes=[f"Digests {report.old[:12]} and {report.new[:12]}.", *prices],
        properties=[("old", report.old), ("new", report.new)],
    )


def _told(one: Difference) -> str:
    return f"{one.sentence} ({one.what} {one.subject}: {one.relation} for {few(one.profiles)})"


def _finding(one: Difference, book: str) -> Finding:
    failed = _OUTCOMES[one.relation] == "failed"
    return found_at(book, _CHECK.id, _told(one), error=failed, rule=f"{one.what} {one.subject}")


def _case(one: Difference, subject: str) -> Case:
    outcome = _OUTCOMES[one.relation]
    told = "" if outcome == "passed" else _told(one)
    return Case(_CHECK.id, f"{one.what} {one.subject} for {few(one.profiles)}", subject, outcome, told)
