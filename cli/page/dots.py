"""Errors of one model's rows as dots on a logarithmic axis, a lane a fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hitproof.cli.page.markup import Content, box, label, tag, text

__all__ = ["Dot", "dot_chart"]

WIDTH, LANE, TOP, BOTTOM, LEFT, RIGHT = 560.0, 17.0, 8.0, 40.0, 172.0, 84.0
FIRST, LAST = -8, 2
"""Powers of ten at the ends of the axis; what is smaller lies on the left end."""
_LONGEST = 26


@dataclass(frozen=True, slots=True)
class Dot:
    """An error.

    Args:
        lane: The fault.
        kind: The arm, and the class that gives its colour.
        error: As a share of the spread; None where the arm raised, infinite where a logit was no number.
        note: What pointing at it says.
    """

    lane: str
    kind: str
    error: float | None
    note: str


def dot_chart(title: str, dots: Sequence[Dot], limit: float) -> Markup:
    """A picture of dots.

    Args:
        title: What a screen reader says of it.
        dots: Those of one lane follow one another.
        limit: The tolerance, drawn as a line.
    """
    lanes = list(dict.fromkeys(dot.lane for dot in dots))
    bottom = TOP + LANE * len(lanes)
    drawn: list[Content] = [_tick(power, bottom) for power in range(FIRST, LAST + 1, 2)]
    drawn.append(text("no number", WIDTH - RIGHT + 48, bottom + 15, anchor="middle", kind="tick"))
    line = _x(limit)
    drawn.append(tag("line", tag("title", f"tolerance {limit:.1e}"), x1=line, x2=line, y1=0, y2=bottom, class_="limit"))
    for place, lane in enumerate(lanes):
        y = TOP + LANE * place + LANE / 2
        drawn.append(label(lane, _LONGEST, LEFT - 12, y + 4, anchor="end"))
        drawn += [
            tag("circle", tag("title", dot.note), cx=_x(dot.error), cy=y, r=4, class_=dot.kind)
            for dot in dots
            if dot.lane == lane
        ]
    drawn.append(
        text(
            "largest error of a logit, by the logits' spread",
            (LEFT + WIDTH - RIGHT) / 2,
            bottom + 33,
            anchor="middle",
            kind="axis",
        )
    )
    return box(WIDTH, bottom + BOTTOM, title, drawn)


def _x(error: float | None) -> float:
    if error is None or not math.isfinite(error):
        return WIDTH - RIGHT + 48
    power = min(max(math.log10(error) if error > 0 else FIRST, FIRST), LAST)
    return LEFT + (WIDTH - RIGHT - LEFT) * (power - FIRST) / (LAST - FIRST)


def _tick(power: int, bottom: float) -> Markup:
    x = _x(10.0**power)
    line = tag("line", x1=x, x2=x, y1=0, y2=bottom, class_="grid")
    return tag("g", line, text(f"1e{power}" if power else "1", x, bottom + 15, anchor="middle", kind="tick"))
