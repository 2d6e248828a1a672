"""Lying bars made of parts, one below the other, on one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hitproof.cli.page.axis import Scale, round_ticks
from hitproof.cli.page.markup import Content, box, breadth, label, shortened, tag, text

__all__ = ["Bar", "Part", "bar_chart"]

WIDTH = 1120.0
THICK, GAP, HEADING, TOP, BOTTOM = 22.0, 9.0, 26.0, 6.0, 42.0
LONGEST = 34


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar.

    Args:
        kind: Class that gives its colour.
        name: What it is.
        value: Its length on the axis.
        text: The same, written.
    """

    kind: str
    name: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, its label, the heading that it stands under, and what is written at its end."""

    group: str
    label: str
    parts: Sequence[Part]
    total: str


def bar_chart(
    title: str, bars: Sequence[Bar], *, axis: str, tick: Callable[[float], str], limit: float | None = None
) -> Markup:
    """A picture of bars.

    Args:
        title: What a screen reader says of it.
        bars: From top to bottom; those of one heading follow one another.
        axis: What the axis shows, with its unit.
        tick: How to write a tick.
        limit: End of the axis; None for a round number beyond the longest bar.
    """
    longest = max((sum(part.value for part in bar.parts) for bar in bars), default=0.0)
    ticks = round_ticks(limit or longest, 8)
    left = 14 + max((breadth(shortened(bar.label, LONGEST)) for bar in bars), default=0.0)
    right = 20 + max((breadth(bar.total) for bar in bars), default=0.0)
    scale = Scale(limit or ticks[-1], left, WIDTH - right)
    y, group = TOP, ""
    drawn: list[Content] = []
    for bar in bars:
        if bar.group != group:
            group = bar.group
            drawn.append(label(group, 60, 0, y + HEADING - 9, kind="heading"))
            y += HEADING
        drawn.append(_bar(bar, scale, left, y))
        y += THICK + GAP
    bottom = y - GAP + 6
    grid = [_tick(scale(value), bottom, tick(value)) for value in ticks if value <= scale.limit * (1 + 1e-9)]
    name = text(axis, (scale.first + scale.last) / 2, bottom + 34, anchor="middle", kind="axis")
    return box(WIDTH, bottom + BOTTOM, title, [*grid, *drawn, name])


def _bar(bar: Bar, scale: Scale, left: float, y: float) -> Markup:
    drawn: list[Content] = [label(bar.label, LONGEST, left - 10, y + 15, anchor="end")]
    before = 0.0
    for part in bar.parts:
        start, end = scale(before), scale(before + part.value)
        before += part.value
        if part.value:
            drawn.append(
                tag(
                    "rect",
                    tag("title", f"{part.name}: {part.text}"),
                    x=round(start, 2),
                    y=y,
                    width=round(end - start, 2),
                    height=THICK,
                    class_=part.kind,
                )
            )
        if end - start > breadth(part.text) + 8:
            drawn.append(text(part.text, (start + end) / 2, y + 15, anchor="middle", kind=f"on on-{part.kind}"))
    drawn.append(text(bar.total, scale(before) + 8, y + 15, kind="total"))
    return tag("g", *drawn)


def _tick(x: float, bottom: float, written: str) -> Markup:
    line = tag("line", x1=x, x2=x, y1=0, y2=bottom, class_="grid")
    return tag("g", line, text(written, x, bottom + 16, anchor="middle", kind="tick"))
