"""How deep hits go: requests by the length that matched, and by the length that could be reused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hitproof.cli.page.axis import Scale, round_ticks
from hitproof.cli.page.figures import count, power
from hitproof.cli.page.markup import Content, box, tag, text
from hitproof.cli.page.story import Run
from hitproof.cli.page.tables import Cell, Head, Row, table

__all__ = ["DepthFigure", "depth_figures", "depth_table"]

WIDE, NARROW = 1120.0, 548.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 14.0, 10.0, 44.0
APART = 14.0
"""Pixels between the requests without a hit and the bins."""


@dataclass(frozen=True, slots=True)
class DepthFigure:
    """One run's lengths: its name and its picture."""

    name: str
    picture: Markup


def depth_figures(runs: Sequence[Run]) -> list[DepthFigure]:
    """A picture for each run, all with the same bins and axes."""
    edges = _edges(runs)
    counts = [_counts(run, kind, edges) for run in runs for kind in ("logical", "usable")]
    ticks = round_ticks(max(map(max, counts), default=0), 5)
    width = WIDE if len(runs) == 1 else NARROW
    return [DepthFigure(run.name, _picture(run, edges, ticks, width)) for run in runs]


def depth_table(runs: Sequence[Run]) -> Markup:
    """Requests by length; the matched length is told once where it is the same for the runs that follow."""
    edges = _edges(runs)
    rows: list[Row] = []
    known: list[int] = []
    for run in runs:
        for kind, name in (("logical", "matched"), ("usable", "usable")):
            counts = _counts(run, kind, edges)
            if kind == "logical":
                if counts == known:
                    continue
                known = counts
            names = ["all", "all"] if kind == "logical" and _alike(runs) else [run.model, run.retention]
            cells = [
                Cell(count(one), f"hit_lengths.{kind}.{edge}", one) for one, edge in zip(counts, edges, strict=True)
            ]
            rows.append(Row([*names, name], cells, run.place))
    head = [
        *(Head(title, labels=True) for title in ("model", "retention", "length")),
        *(Head(_title(edge), note=_span(edge)) for edge in edges),
    ]
    return table("depths", "Requests by length of the hit in tokens; a column begins at its title", [head], rows)


def _alike(runs: Sequence[Run]) -> bool:
    return len(runs) > 1 and len({tuple(run.report["hit_lengths"]["logical"]) for run in runs}) == 1


def _edges(runs: Sequence[Run]) -> list[int]:
    """The least lengths of all bins, 0 first; bins double and leave no gap."""
    found = {edge for run in runs for edge in run.report["hit_lengths"]["from_tokens"]} - {0}
    edges = [0]
    if found:
        edges.append(min(found))
        while edges[-1] < max(found):
            edges.append(2 * edges[-1])
    return edges


def _counts(run: Run, kind: str, edges: Sequence[int]) -> list[int]:
    lengths = run.report["hit_lengths"]
    by_edge = dict(zip(lengths["from_tokens"], lengths[kind], strict=True))
    return [by_edge.get(edge, 0) for edge in edges]


def _title(edge: int) -> str:
    return power(edge) if edge else "none"


def _span(edge: int) -> str:
    return f"{edge:,} to {2 * edge - 1:,} tokens" if edge else "no token"


def _picture(run: Run, edges: Sequence[int], ticks: Sequence[float], width: float) -> Markup:
    height = 250.0 if width == WIDE else 216.0
    y = Scale(ticks[-1], height - BOTTOM, TOP)
    step = (width - LEFT - RIGHT - APART) / len(edges)
    starts = [LEFT + (APART if place else 0) + step * place for place in range(len(edges))]
    drawn: list[Content] = [
        tag(
            "g",
            tag("line", x1=LEFT, x2=width - RIGHT, y1=y(value), y2=y(value), class_="grid" if value else "base"),
            text(count(value), LEFT - 7, y(value) + 4, anchor="end", kind="tick"),
        )
        for value in ticks
    ]
    bar = min(step * 0.4, 44.0)
    for side, kind in enumerate(("logical", "usable")):
        for start, edge, requests in zip(starts, edges, _counts(run, kind, edges), strict=True):
            drawn.append(
                tag(
                    "rect",
                    tag("title", f"{kind}, {_span(edge)}: {count(requests)} requests"),
                    x=start + step / 2 + (side - 1) * bar,
                    y=y(requests),
                    width=bar - 1,
                    height=y(0) - y(requests),
                    class_=kind,
                )
            )
    drawn += [
        text(_title(edge), start + (0 if place else step / 2), y(0) + 17, anchor="middle", kind="tick")
        for place, (start, edge) in enumerate(zip(starts, edges, strict=True))
    ]
    if len(edges) > 1:
        drawn.append(text(power(2 * edges[-1]), width - RIGHT, y(0) + 17, anchor="end", kind="tick"))
    drawn += [
        tag("line", x1=start, x2=start, y1=y(0), y2=y(0) + 4, class_="base") for start in [*starts[1:], width - RIGHT]
    ]
    name = "length of the hit, tokens; each bin is twice as wide as the one before"
    drawn.append(text(name, (LEFT + width - RIGHT) / 2, y(0) + 36, anchor="middle", kind="axis"))
    return box(width, height, f"Requests by length of the hit, {run.name}", drawn)
