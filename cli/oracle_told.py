"""How what the oracle found is told: tables for terminals and in Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitproof.integrations.transformers.oracle.rows import OracleReport, Row

__all__ = ["as_markdown", "error_text", "fault_table", "model_table", "summary", "tell"]

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, headings, rows."""

_LEVELS = {
    "none": "as it lay",
    "in_place": "in place",
    "intra_layer": "intra-layer",
    "full_recompute": "recompute",
}


def error_text(error: float | None) -> str:
    """An error as a share of the spread, to two digits."""
    if error is None:
        return "raises"
    return f"{error:.2g}" if math.isfinite(error) else "no number"


def model_table(report: OracleReport) -> Table:
    """A row a model: its line between valid and wrong, and on which side of it the arms were."""
    rows = []
    for one in report.models:
        mine = [row for row in report.rows if row.model == one.model]
        seen = [row for row in mine if row.observable]
        rows.append(
            (
                one.model,
                error_text(one.tolerance),
                str(len(mine)),
                f"{sum(row.blind_caught for row in seen)} of {len(seen)}",
                error_text(min((row.blind.error for row in seen if row.blind.error is not None), default=0.0)),
                error_text(max((row.validated.error for row in mine), default=0.0)),
                _share(sum(row.validated.reused for row in mine), sum(row.validated.logical for row in mine)),
                _share(one.reused, one.reusable),
                f"{one.false_rejections} of {one.controls}",
            )
        )
    heads = (
        "model",
        "tolerance",
        "fault rows",
        "blind outside or raises",
        "mildest blind",
        "worst validated",
        "reused of logical",
        "reused of valid",
        "false rejections",
    )
    return "Models; errors are shares of the logits' spread", heads, rows


def fault_table(report: OracleReport) -> Table:
    """A row a fault, over all models and seeds that it was done to."""
    rows = []
    for fault in report.faults:
        mine = [row for row in report.rows if row.fault == fault]
        levels = Counter(row.validated.level for row in mine)
        rows.append(
            (
                fault,
                "design" if mine[0].natural else "damage",
                str(len(dict.fromkeys(row.model for row in mine))),
                _blind(mine),
                error_text(max(row.validated.error for row in mine)),
                ", ".join(f"{levels[level]} {name}" for level, name in _LEVELS.items() if levels[level]),
                _share(sum(row.validated.reused for row in mine), sum(row.validated.logical for row in mine)),
                f"{max(row.dearer for row in mine):.2f}",
            )
        )
    heads = (
        "fault",
        "by",
        "models",
        "blind errors",
        "worst validated",
        "plans by level",
        "reused of logical",
        "dearest",
    )
    return "Faults; `dearest` is the price of what was run by that of the best exact plan", heads, rows


def summary(report: OracleReport) -> list[str]:
    """What it comes to, in sentences."""
    rows = len(report.rows)
    lines = [
        f"{rows} rows: the validated arm was outside in {report.validated_outside}, the blind arm inside in "
        f"{report.blind_inside} of those that logits must show; {report.false_rejections} false rejections in "
        f"{sum(one.controls for one in report.models)} valid controls",
        "plans: "
        + ", ".join(f"{count} {_LEVELS[level]}" for level, count in report.levels.items())
        + f"; {100 * report.within:.1f}% at most 1.05 times as dear as the best exact one; "
        f"{report.reused} of {report.logical} logical tokens reused",
    ]
    lines += [
        f"{one.model} recomputes always: it reused nothing that was valid"
        for one in report.models
        if one.always_recomputes
    ]
    lines += [f"no logit can show {fault}: {why}" for fault, why in report.unobservable.items()]
    return lines


def tell(report: OracleReport) -> None:
    """Write it for a terminal."""
    from hitproof.cli.output import show, table

    for title, heads, rows in (model_table(report), fault_table(report)):
        if rows:
            show(table(title, heads, rows))
    show("\n".join(summary(report)))
    if report.skipped:
        show(f"{len(report.skipped)} pairs of model and fault cannot be; --format json says why")


def as_markdown(report: OracleReport) -> str:
    """Both tables and the summary, as Markdown."""
    parts = [_markdown(*table) for table in (model_table(report), fault_table(report))]
    return "\n\n".join([*parts, "\n".join(f"- {line}" for line in summary(report))]) + "\n"


def _markdown(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"{title}:", "", f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "-"


def _blind(rows: Sequence[Row]) -> str:
    """The range of errors, and how often it raised."""
    errors = [row.blind.error for row in rows if row.blind.error is not None]
    raised = len(rows) - len(errors)
    told = [" to ".join(dict.fromkeys(map(error_text, (min(errors), max(errors)))))] if errors else []
    return ", ".join([*told, *([f"{raised} raised"] if raised else [])])
