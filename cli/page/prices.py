"""Where the price of recovery goes: by level, and by the option and group that was paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hitproof.cli.page.bars import Bar, Part, bar_chart
from hitproof.cli.page.figures import count, seconds_for
from hitproof.cli.page.markup import shortened
from hitproof.cli.page.story import Run
from hitproof.cli.page.tables import Cell, Head, Row, table

__all__ = ["LEVELS", "OptionTable", "option_tables", "price_chart", "price_table"]

LONGEST = 20
"""Characters of a retention's name above two columns of figures."""
LEVELS = {"in_place": "in place", "intra_layer": "intra-layer", "full_recompute": "full recompute"}


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options that one model's plans used."""

    model: str
    figures: Markup


def price_chart(runs: Sequence[Run]) -> Markup:
    """A bar a run: repairs by level, and the prefill of what had matched and was not reused."""
    totals = [sum(run.report["recovery_cost_us"].values()) for run in runs]
    written = seconds_for(totals)
    bars = [
        Bar(
            run.group,
            run.label,
            [
                Part(f"level-{level}", name, us / 1e6, f"{written(us)} s")
                for level, name in LEVELS.items()
                for us in [run.report["recovery_cost_us"][level]]
            ],
            f"{written(total)} s",
        )
        for run, total in zip(runs, totals, strict=True)
    ]
    axis = "price of recovery, seconds"
    return bar_chart("Price of recovery by level", bars, axis=axis, tick=lambda seconds: f"{seconds:,.6g}")


def price_table(runs: Sequence[Run]) -> Markup:
    """Prices by level, beside the whole prefill and what a hash-only cache would have expected to pay."""
    costs = [run.report["recovery_cost_us"] for run in runs]
    level_text = seconds_for(cost[level] for cost in costs for level in LEVELS)
    whole_text = seconds_for(run.report["prefill_us"] for run in runs)
    names = [Head(title, rows=2, labels=True) for title in ("model", "retention")]
    heads = [
        [*names, Head("recovery, s", columns=3), Head("whole bill, s", columns=3)],
        [
            *map(Head, LEVELS.values()),
            Head("prefill", note="of all that was not reused; the full recompute is a part of it"),
            Head("prefill and repairs"),
            Head("hash-only expects", note="prefill, had every logical hit been reused for nothing"),
        ],
    ]
    rows = []
    for run, cost in zip(runs, costs, strict=True):
        prefill = run.report["prefill_us"]
        bills = {
            "prefill_us": prefill,
            "bill_us": prefill + cost["in_place"] + cost["intra_layer"],
            "expected_us": prefill - cost["full_recompute"],
        }
        cells = [Cell(level_text(cost[level]), f"recovery_cost_us.{level}", cost[level]) for level in LEVELS]
        cells += [Cell(whole_text(us), figure, us) for figure, us in bills.items()]
        rows.append(Row([run.model, run.retention], cells, run.place))
    return table("prices", "Prices by level, and the whole bill", heads, rows)


def option_tables(runs: Sequence[Run]) -> list[OptionTable]:
    """A table for each model whose plans repaired anything: how often each option ran, and what it cost."""
    tables = []
    for place, model in enumerate(dict.fromkeys(run.model for run in runs)):
        own = [run for run in runs if run.model == model]
        used = [{(one["level"], one["group"], one["option"]): one for one in run.report["recovery"]} for run in own]
        weight: dict[tuple[str, str, str], float] = {}
        for options in used:
            for key, one in options.items():
                weight[key] = weight.get(key, 0.0) + one["cost_us"]
        if weight:
            written = seconds_for(one["cost_us"] for options in used for one in options.values())
            keys = sorted(weight, key=lambda key: (list(LEVELS).index(key[0]), -weight[key], key))
            heads = [
                [
                    *(Head(title, rows=2, labels=True) for title in ("level", "option", "group")),
                    *(Head(shortened(run.retention, LONGEST), columns=2, note=run.retention) for run in own),
                ],
                [Head(title) for _ in own for title in ("times", "s")],
            ]
            rows = []
            for level, group, option in keys:
                cells = []
                for run, options in zip(own, used, strict=True):
                    one = options.get((level, group, option), {"repairs": 0, "cost_us": 0.0})
                    figure = f"recovery.{run.place}.{level}.{group}.{option}"
                    cells += [
                        Cell(count(one["repairs"]), f"{figure}.repairs", one["repairs"]),
                        Cell(written(one["cost_us"]), f"{figure}.cost_us", one["cost_us"]),
                    ]
                shown = group or "all that share it"
                rows.append(Row([LEVELS[level], option.replace("_", " "), shown], cells))
            caption = f"Repairs that the plans ran, {model}"
            tables.append(OptionTable(model, table(f"options-{place}", caption, heads, rows)))
    return tables
