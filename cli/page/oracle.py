"""The page of the oracle: a picture a model, and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from hitproof.cli.oracle_told import error_text, fault_table, model_table, summary
from hitproof.cli.page.document import document
from hitproof.cli.page.dots import Dot, dot_chart
from hitproof.cli.page.tables import Cell, Head, Row, table

if TYPE_CHECKING:
    from hitproof.integrations.transformers.oracle.rows import OracleReport

__all__ = ["oracle_page"]


def oracle_page(report: OracleReport) -> str:
    """The page as one HTML document, without a script and with nothing to fetch.

    Args:
        report: What it tells.
    """
    return document(
        "oracle.html",
        facts=[
            ("rows", str(len(report.rows))),
            ("validated outside", str(report.validated_outside)),
            ("blind inside", str(report.blind_inside)),
            ("false rejections", str(report.false_rejections)),
        ],
        lines=summary(report),
        charts=[(one.model, _chart(report, one.model, one.tolerance)) for one in report.models],
        models=_table("models", *model_table(report)),
        faults=_table("faults", *fault_table(report)),
        skipped=report.skipped,
    )


def _chart(report: OracleReport, model: str, limit: float) -> Markup:
    dots = []
    for row in report.rows:
        if row.model != model:
            continue
        name = f"{row.fault}, seed {row.seed}{', inputs kept' if row.inputs else ''}"
        blind = row.blind.raised or f"error {error_text(row.blind.error)}"
        kind = "blind" if row.observable else "blind-unseen"
        dots.append(Dot(row.fault, kind, row.blind.error, f"{name}; blind: {blind}"))
        told = f"{row.validated.verdict}, {row.validated.reused} of {row.validated.logical} reused"
        note = f"{name}; validated: error {error_text(row.validated.error)}, {told}"
        dots.append(Dot(row.fault, "validated", row.validated.error, note))
    return dot_chart(f"Errors of {model} by fault, blind and validated", dots, limit)


def _table(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    first, *others = heads
    lines = [Row([row[0]], [Cell(cell) for cell in row[1:]]) for row in rows]
    return table(name, title, [[Head(first, labels=True), *(Head(head) for head in others)]], lines)
