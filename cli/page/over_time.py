"""Shares over the time of arrival: what a hash-only cache claims, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from hitproof.cli.page.axis import Scale, round_ticks, time_ticks
from hitproof.cli.page.figures import Clock, clock_for, count, percent
from hitproof.cli.page.markup import Content, box, tag, text
from hitproof.cli.page.story import Run
from hitproof.cli.page.tables import Cell, Head, Row, table

__all__ = ["TimeFigure", "load_chart", "time_figures"]

STACKED = ("effective", "recovered", "recomputed")
WIDE, NARROW = 1120.0, 548.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 14.0, 10.0, 42.0


@dataclass(frozen=True, slots=True)
class TimeFigure:
    """One run over time: its name, its picture, and the table behind it."""

    name: str
    picture: Markup
    figures: Markup


@dataclass(frozen=True, slots=True)
class _Bins:
    """A timeline's bins by their place from the first one, and how to write their times."""

    width_ms: int
    places: Sequence[int]
    requests: Sequence[int]
    blocks: Mapping[str, Sequence[int]]
    clock: Clock

    @property
    def span_ms(self) -> int:
        return (self.places[-1] + 1) * self.width_ms if self.places else self.width_ms

    def share(self, part: str, at: int) -> float:
        touched = self.blocks["touched"][at]
        return self.blocks[part][at] / touched if touched else 0.0

    def times(self, at: int) -> str:
        start = self.places[at] * self.width_ms
        return f"{self.clock.text(start)} to {self.clock.text(start + self.width_ms)} {self.clock.unit}"


def time_figures(runs: Sequence[Run]) -> list[TimeFigure]:
    """A picture and a table for each run, all with the same axes."""
    binned = [_bins(run.report["timeline"]) for run in runs]
    largest = max((bins.share("logical", at) for bins in binned for at in range(len(bins.places))), default=0.0)
    ticks = round_ticks(min(largest, 1.0), 4)
    width = WIDE if len(runs) == 1 else NARROW
    return [
        TimeFigure(run.name, _picture(run, bins, ticks, width), _table(run, bins))
        for run, bins in zip(runs, binned, strict=True)
    ]


def load_chart(run: Run) -> Markup:
    """Blocks touched in each bin: the load that all runs of a trace share."""
    bins = _bins(run.report["timeline"])
    ticks = round_ticks(max(bins.blocks["touched"], default=0), 3)
    x, y = _axes(bins, ticks[-1], WIDE, 120.0)
    bars = [
        tag(
            "rect",
            tag("title", f"{bins.times(at)}: {count(bins.requests[at])} requests, {count(touched)} blocks"),
            x=x(place * bins.width_ms) + 0.5,
            y=y(touched),
            width=max(x((place + 1) * bins.width_ms) - x(place * bins.width_ms) - 1, 0.5),
            height=y(0) - y(touched),
            class_="load",
        )
        for at, (place, touched) in enumerate(zip(bins.places, bins.blocks["touched"], strict=True))
    ]
    frame = _frame(bins, x, y, [(tick, count(tick)) for tick in ticks])
    return box(WIDE, 120.0, "Blocks touched over time", [*frame, *bars])


def _bins(timeline: Mapping[str, Any]) -> _Bins:
    width = timeline["width_ms"]
    starts = timeline["start_ms"]
    places = [(start - starts[0]) // width for start in starts]
    span = (places[-1] + 1) * width if places else width
    return _Bins(width, places, timeline["requests"], timeline["blocks"], clock_for(span))


def _picture(run: Run, bins: _Bins, ticks: Sequence[float], width: float) -> Markup:
    height = 250.0 if width == WIDE else 216.0
    x, y = _axes(bins, ticks[-1], width, height)
    areas = [tag("path", d=_area(bins, part, x, y), class_=f"area {part}") for part in STACKED]
    claim = tag("path", d=_claim(bins, x, y), class_="claim")
    hover = [
        tag(
            "rect",
            tag("title", _told(bins, at)),
            x=x(place * bins.width_ms),
            y=TOP,
            width=x((place + 1) * bins.width_ms) - x(place * bins.width_ms),
            height=height - TOP - BOTTOM,
            class_="hover",
        )
        for at, place in enumerate(bins.places)
    ]
    frame = _frame(bins, x, y, [(tick, percent(tick, 0)) for tick in ticks])
    return box(width, height, f"Shares of blocks over time, {run.name}", [*frame, *areas, claim, *hover])


def _axes(bins: _Bins, limit: float, width: float, height: float) -> tuple[Scale, Scale]:
    return Scale(bins.span_ms, LEFT, width - RIGHT), Scale(limit, height - BOTTOM, TOP)


def _frame(bins: _Bins, x: Scale, y: Scale, ticks: Sequence[tuple[float, str]]) -> list[Content]:
    wanted = 12 if x.last > NARROW else 7
    across: list[Content] = [
        tag(
            "g",
            tag("line", x1=LEFT, x2=x.last, y1=y(value), y2=y(value), class_="grid" if value else "base"),
            text(written, LEFT - 7, y(value) + 4, anchor="end", kind="tick"),
        )
        for value, written in ticks
    ]
    down: list[Content] = [
        tag(
            "g",
            tag("line", x1=x(ms), x2=x(ms), y1=y(0), y2=y(0) + 4, class_="base"),
            text(bins.clock.text(ms), x(ms), y(0) + 17, anchor="middle", kind="tick"),
        )
        for ms in time_ticks(bins.span_ms, bins.clock, wanted)
    ]
    name = f"time of arrival, {bins.clock.unit}; a bin is {_width(bins)}"
    return [*across, *down, text(name, (LEFT + x.last) / 2, y(0) + 35, anchor="middle", kind="axis")]


def _width(bins: _Bins) -> str:
    clock = clock_for(3 * bins.width_ms)
    return f"{clock.text(bins.width_ms)} {clock.unit}"


def _area(bins: _Bins, part: str, x: Scale, y: Scale) -> str:
    """One rectangle a bin, standing on the parts below."""
    below = STACKED[: STACKED.index(part)]
    drawn = []
    for at, place in enumerate(bins.places):
        share = bins.share(part, at)
        if share:
            base = sum(bins.share(other, at) for other in below)
            left, right = x(place * bins.width_ms), x((place + 1) * bins.width_ms)
            drawn.append(f"M{left:.2f} {y(base):.2f}H{right:.2f}V{y(base + share):.2f}H{left:.2f}Z")
    return "".join(drawn)


def _claim(bins: _Bins, x: Scale, y: Scale) -> str:
    """A stepped line over the logical share, broken where nothing arrived."""
    drawn = []
    for _, run in groupby(enumerate(bins.places), key=lambda one: one[1] - one[0]):
        for step, (at, place) in enumerate(run):
            level = y(bins.share("logical", at))
            start = "" if step else f"M{x(place * bins.width_ms):.2f} {level:.2f}"
            drawn.append(f"{start}V{level:.2f}H{x((place + 1) * bins.width_ms):.2f}")
    return "".join(drawn)


def _told(bins: _Bins, at: int) -> str:
    shares = ", ".join(f"{part} {percent(bins.share(part, at))}" for part in ("logical", *STACKED))
    touched = count(bins.blocks["touched"][at])
    return f"{bins.times(at)}: {count(bins.requests[at])} requests, {touched} blocks touched; {shares}"


def _table(run: Run, bins: _Bins) -> Markup:
    parts = ("logical", *STACKED)
    names = [Head(f"from, {bins.clock.unit}", rows=2, labels=True), Head("requests", rows=2), Head("blocks", rows=2)]
    heads = [[*names, Head("% of blocks", columns=4)], [Head(part) for part in parts]]
    rows = [
        Row(
            [bins.clock.text(place * bins.width_ms)],
            [
                Cell(count(bins.requests[at])),
                Cell(count(bins.blocks["touched"][at])),
                *(Cell(f"{100 * bins.share(part, at):.2f}", None, bins.blocks[part][at]) for part in parts),
            ],
        )
        for at, place in enumerate(bins.places)
    ]
    return table(f"timeline-{run.place}", f"Shares of blocks by time of arrival, {run.name}", heads, rows)
