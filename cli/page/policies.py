"""Policies side by side: how long the first token took, what was reused, and what moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from markupsafe import Markup

from hitproof.cli.page.axis import log_ticks
from hitproof.cli.page.bars import Bar, Part, bar_chart
from hitproof.cli.page.figures import bytes_text, count, percent
from hitproof.cli.page.markup import Content, box, breadth, label, shortened, tag, text
from hitproof.cli.page.tables import Cell, Head, Row, table

__all__ = ["PolicyRow", "policy_latency_chart", "policy_reuse_chart", "policy_rows", "policy_table"]

WIDTH = 1120.0
ROW, TOP, BOTTOM = 34.0, 8.0, 44.0
LONGEST = 34


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """What one policy did on a trace.

    Args:
        policy: Its name.
        ttft_p50_us, ttft_p99_us: Time to the first token, in microseconds: median, and what 99 of 100 stay below.
        effective_rate, recovered_rate, recomputed_rate: Shares of the tokens touched.
        host_bytes, disk_bytes: Bytes brought back from each lower tier.
        down_bytes: Bytes copied down out of the device.
        refused: Requests that were turned away.
        served: How the trace was served, in words.
    """

    policy: str
    ttft_p50_us: float
    ttft_p99_us: float
    effective_rate: float
    recovered_rate: float
    recomputed_rate: float
    host_bytes: int
    disk_bytes: int
    down_bytes: int = 0
    refused: int = 0
    served: str = ""


def policy_rows(reports: Sequence[Mapping[str, Any]]) -> tuple[PolicyRow, ...]:
    """What reports of policies tell, as JSON has them; the model is named where there are several."""
    several = len({report["settings"]["model"] for report in reports}) > 1
    rows = []
    for report in reports:
        settings, rates, moved = report["settings"], report["rates"], report["bytes"]
        name = settings["policy"].replace("_", " ")
        lanes = f"{settings['lanes']} {'lane' if settings['lanes'] == 1 else 'lanes'}"
        pace = "arrivals as in the trace"
        if settings["pace"] != 1:
            pace = f"arrivals {settings['pace']:g} times as fast as in the trace"
        rows.append(
            PolicyRow(
                f"{settings['model']}, {name}" if several else name,
                report["ttft_us"]["p50"],
                report["ttft_us"]["p99"],
                rates["effective"],
                rates["recovered"],
                rates["recomputed"],
                moved["host"],
                moved["disk"],
                moved["down"],
                report["refused"],
                f"{lanes}, {pace}",
            )
        )
    return tuple(rows)


def policy_latency_chart(rows: Sequence[PolicyRow]) -> Markup:
    """A line a policy from the median to the 99th percentile, on a logarithmic axis."""
    times = [us for row in rows for us in (row.ttft_p50_us, row.ttft_p99_us) if us > 0]
    ticks = log_ticks(min(times, default=1.0), max(times, default=10.0))
    left = 14 + max((breadth(shortened(row.policy, LONGEST)) for row in rows), default=0.0)
    right = WIDTH - 70
    bottom = TOP + ROW * len(rows)
    place = _LogScale(ticks[0], ticks[-1], left, right)
    drawn: list[Content] = [
        tag(
            "g",
            tag("line", x1=place(tick), x2=place(tick), y1=0, y2=bottom, class_="grid"),
            text(_duration(tick), place(tick), bottom + 16, anchor="middle", kind="tick"),
        )
        for tick in ticks
    ]
    for index, row in enumerate(rows):
        y = TOP + ROW * index + ROW / 2
        first, last = place(row.ttft_p50_us), place(row.ttft_p99_us)
        told = f"{row.policy}: median {_duration(row.ttft_p50_us)}, 99th percentile {_duration(row.ttft_p99_us)}"
        drawn += [
            label(row.policy, LONGEST, left - 10, y + 4, anchor="end"),
            tag(
                "g",
                tag("title", told),
                tag("line", x1=first, x2=last, y1=y, y2=y, class_="reach"),
                tag("circle", cx=first, cy=y, r=6, class_="median"),
                tag("rect", x=last - 5, y=y - 5, width=10, height=10, class_="high"),
            ),
            text(_duration(row.ttft_p99_us), last + 11, y + 4, kind="total"),
        ]
    name = "time to first token, logarithmic"
    drawn.append(text(name, (left + right) / 2, bottom + 36, anchor="middle", kind="axis"))
    return box(WIDTH, bottom + BOTTOM, "Time to first token by policy", drawn)


def policy_reuse_chart(rows: Sequence[PolicyRow]) -> Markup:
    """A bar a policy: its logical hits in tokens, cut into what became of them."""
    bars = []
    for row in rows:
        rates = {
            "effective": row.effective_rate,
            "recovered": row.recovered_rate,
            "recomputed": row.recomputed_rate,
        }
        parts = [Part(part, part, rate, percent(rate)) for part, rate in rates.items()]
        bars.append(Bar("", row.policy, parts, percent(sum(rates.values()))))
    title = "Logical hits in tokens by policy, and what became of them"
    return bar_chart(title, bars, axis="share of all tokens touched", tick=lambda share: percent(share, 0))


def policy_table(rows: Sequence[PolicyRow]) -> Markup:
    """All figures of the policies."""
    heads = [
        [
            Head("policy", rows=2, labels=True),
            Head("time to first token", columns=2),
            Head("% of tokens touched", columns=3),
            Head("traffic", columns=3),
            Head("turned away", rows=2),
        ],
        [
            *map(
                Head,
                ("median", "99th percentile", "effective", "recovered", "recomputed", "from host", "from disk", "down"),
            )
        ],
    ]
    body = [
        Row(
            [row.policy],
            [
                *(
                    Cell(_duration(getattr(row, name)), name, getattr(row, name))
                    for name in ("ttft_p50_us", "ttft_p99_us")
                ),
                *(
                    Cell(f"{100 * getattr(row, name):.2f}", name, getattr(row, name))
                    for name in ("effective_rate", "recovered_rate", "recomputed_rate")
                ),
                *(
                    Cell(bytes_text(getattr(row, name)), name, getattr(row, name))
                    for name in ("host_bytes", "disk_bytes", "down_bytes")
                ),
                Cell(count(row.refused), "refused", row.refused),
            ],
        )
        for row in rows
    ]
    return table("policies", "Policies on this trace", heads, body)


@dataclass(frozen=True, slots=True)
class _LogScale:
    least: float
    largest: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        share = log(max(value, self.least) / self.least) / log(self.largest / self.least)
        return self.first + (self.last - self.first) * share


def _duration(us: float) -> str:
    for unit, name in ((60e6, "min"), (1e6, "s"), (1e3, "ms")):
        if us >= unit:
            return f"{us / unit:,.3g}\N{NO-BREAK SPACE}{name}"
    return f"{us:,.3g}\N{NO-BREAK SPACE}us"
