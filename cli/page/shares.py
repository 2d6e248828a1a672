"""Runs side by side: what was claimed, what could be reused, how decisions fell."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from hitproof.cli.page.bars import Bar, Part, bar_chart
from hitproof.cli.page.figures import count, percent, seconds_for
from hitproof.cli.page.story import Run
from hitproof.cli.page.tables import Cell, Head, Row, table

__all__ = ["PARTS", "VERDICTS", "share_chart", "share_table", "verdict_chart", "verdict_table"]

PARTS = {
    "effective": "effective_reuse_rate",
    "recovered": "recovered_rate",
    "recomputed": "recomputed_rate",
}
VERDICTS = ("reuse", "repair", "rebuild", "recompute", "miss", "defer", "refuse")


def share_chart(runs: Sequence[Run]) -> Markup:
    """A bar a run: its logical hits in blocks, cut into what became of them."""
    bars = []
    for run in runs:
        rates = {part: run.report[rate]["blocks"] for part, rate in PARTS.items()}
        parts = [Part(part, part, rate, percent(rate)) for part, rate in rates.items()]
        bars.append(Bar(run.group, run.label, parts, percent(run.report["logical_hit_rate"]["blocks"])))
    title = "Logical hits in blocks, by what became of them"
    return bar_chart(title, bars, axis="share of all blocks touched", tick=lambda share: percent(share, 0))


def share_table(runs: Sequence[Run]) -> Markup:
    """The rates in blocks and in tokens, and the prices that they had."""
    prices = [price for run in runs for price in (_repairs(run), run.report["prefill_us"])]
    repairs, prefill = (seconds_for(prices[side::2]) for side in (0, 1))
    rates = ("logical_hit_rate", *PARTS.values())
    names = ("logical", *PARTS)
    heads = [
        [
            *(Head(title, rows=2, labels=True) for title in ("model", "retention")),
            Head("% of blocks touched", columns=4),
            Head("% of tokens touched", columns=4),
            Head("price, s", columns=2),
        ],
        [*(Head(name) for name in (*names, *names)), Head("repairs"), Head("prefill")],
    ]
    rows = [
        Row(
            [run.model, run.retention],
            [
                *(
                    Cell(f"{100 * run.report[rate][unit]:.2f}", f"{rate}.{unit}", run.report[rate][unit])
                    for unit in ("blocks", "tokens")
                    for rate in rates
                ),
                Cell(repairs(_repairs(run)), "repairs_us", _repairs(run)),
                Cell(prefill(run.report["prefill_us"]), "prefill_us", run.report["prefill_us"]),
            ],
            run.place,
        )
        for run in runs
    ]
    return table("shares", "Shares of all that was touched, and prices", heads, rows)


def verdict_chart(runs: Sequence[Run]) -> Markup:
    """A bar a run: all requests, by verdict."""
    bars = []
    for run in runs:
        requests = run.report["requests"] or 1
        parts = [
            Part(f"verdict-{verdict}", verdict, number / requests, count(number))
            for verdict in VERDICTS
            if (number := run.report["decisions"].get(verdict, 0))
        ]
        bars.append(Bar(run.group, run.label, parts, count(run.report["requests"])))
    title = "Requests by verdict"
    return bar_chart(title, bars, axis="share of requests", tick=lambda share: percent(share, 0), limit=1.0)


def verdict_table(runs: Sequence[Run]) -> Markup:
    """Requests by verdict, for the verdicts that any run gave."""
    given = [verdict for verdict in VERDICTS if any(run.report["decisions"].get(verdict) for run in runs)]
    head = [*(Head(title, labels=True) for title in ("model", "retention")), *map(Head, given), Head("all")]
    rows = [
        Row(
            [run.model, run.retention],
            [
                *(
                    Cell(count(number), f"decisions.{verdict}", number)
                    for verdict in given
                    for number in [run.report["decisions"].get(verdict, 0)]
                ),
                Cell(count(run.report["requests"]), "requests", run.report["requests"]),
            ],
            run.place,
        )
        for run in runs
    ]
    return table("verdicts", "Requests by verdict", [head], rows)


def _repairs(run: Run) -> float:
    costs = run.report["recovery_cost_us"]
    return float(costs["in_place"] + costs["intra_layer"])
