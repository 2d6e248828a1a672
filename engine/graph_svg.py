"""Drawing a graph of forms as SVG: boxes in one column, arrows in lanes beside it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from hitproof.engine.form_graph import FormGraph

__all__ = ["draw"]

CHARACTER, LINE = 7.3, 16
"""Width of a character and height of a line of the labels, in pixels."""
MARGIN, GAP, PORT, PADDING, LANE = 24, 28, 18, 14, 20
TITLE = 44
STYLE = (
    "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2933}"
    ".form{font-weight:bold;font-size:14px}.title{font-weight:bold;font-size:15px}.note{fill:#616e7c}"
    ".box{fill:#eef4fb;stroke:#33608c;stroke-width:1.5}.on{stroke:#33608c}.back{stroke:#a15c1b}"
    ".on,.back{fill:none;stroke-width:1.5}.ton{fill:#274a6d}.tback{fill:#7d4510}"
)


@dataclass(slots=True)
class _Edge:
    """An arrow; `lane` counts from the column outwards, -1 is the direct way between neighbours."""

    source: int
    target: int
    labels: tuple[str, ...]
    lane: int = -1

    @property
    def back(self) -> bool:
        return self.target < self.source

    @property
    def top(self) -> int:
        return min(self.source, self.target)

    @property
    def bottom(self) -> int:
        return max(self.source, self.target)

    @property
    def width(self) -> float:
        return max(map(len, self.labels)) * CHARACTER


def draw(graph: FormGraph) -> str:
    """The image of a graph; see `graph.svg`."""
    return _Drawing(graph).text()


class _Drawing:
    def __init__(self, graph: FormGraph) -> None:
        self.graph = graph
        place = {form: index for index, form in enumerate(graph.forms)}
        self.stays = {source: events for (source, target), events in graph.edges.items() if source == target}
        self.edges = [
            _Edge(place[source], place[target], events)
            for (source, target), events in graph.edges.items()
            if source != target
        ]
        self._assign_lanes()
        self._measure()

    def text(self) -> str:
        """The whole image."""
        title, note = escape(self.graph.title), escape(self.graph.note)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img">',
            f"<title>{title}</title><style>{STYLE}</style>",
            f"<defs>{_head('on', '#33608c')}{_head('back', '#a15c1b')}</defs>",
            f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="#ffffff"/>',
            f'<text class="title" x="{MARGIN}" y="{MARGIN + 6}">{title}</text>',
            *(self._arrow(edge) for edge in self.edges),
            *(self._box(index, form) for index, form in enumerate(self.graph.forms)),
        ]
        if note:
            parts.append(f'<text class="note" x="{MARGIN}" y="{self.height - 14:.0f}">{note}</text>')
        return "\n".join([*parts, "</svg>", ""])

    def _assign_lanes(self) -> None:
        """Short arrows run inside, long ones outside; two share a lane where they do not meet."""
        for back in (False, True):
            lanes: list[list[_Edge]] = []
            aside = [edge for edge in self.edges if edge.back is back and edge.bottom - edge.top > 1]
            for edge in sorted(aside, key=lambda one: (one.bottom - one.top, one.top)):
                free = (i for i, lane in enumerate(lanes) if all(_apart(edge, other) for other in lane))
                edge.lane = next(free, len(lanes))
                lanes += [[]] if edge.lane == len(lanes) else []
                lanes[edge.lane].append(edge)

    def _measure(self) -> None:
        forms = self.graph.forms
        inside = [max(len(form) * 1.25, *(len(one) for one in self.stays.get(form, ("",)))) for form in forms]
        direct = [edge for edge in self.edges if edge.lane < 0]
        beside = max((edge.width for edge in direct), default=0.0) + 2 * PADDING
        self.box = max(max(inside, default=0) * CHARACTER + 2 * PADDING, 2 * beside)
        self.offsets = {back: self._lane_offsets(back) for back in (False, True)}
        self.left = MARGIN + self.offsets[True][-1]
        self.width = self.left + self.box + self.offsets[False][-1] + MARGIN
        least = max(len(self.graph.title) * 9.5, len(self.graph.note) * CHARACTER) + 2 * MARGIN
        self.width = max(self.width, least)
        self.tops: list[float] = []
        self.heights: list[float] = []
        y = float(MARGIN + TITLE)
        for index, form in enumerate(forms):
            ports = max(len(self._ports(index, back)) for back in (False, True))
            height = max(22 + LINE * (len(self.stays.get(form, ())) + 1), PORT * ports + 12)
            labels = [len(e.labels) for e in self.edges if e.top == index or e.bottom == index + 1]
            self.tops.append(y)
            self.heights.append(height)
            y += height + GAP + LINE * max(labels, default=0)
        bottom = self.tops[-1] + self.heights[-1] if forms else MARGIN + TITLE
        self.height = bottom + MARGIN + (LINE if self.graph.note else 0)

    def _lane_offsets(self, back: bool) -> list[float]:
        """Distance of each lane's line from the column, and of the outer end of the last lane's labels."""
        offsets = [float(LANE)]
        aside = [edge for edge in self.edges if edge.back is back and edge.lane >= 0]
        for lane in range(max((edge.lane for edge in aside), default=-1) + 1):
            offsets.append(offsets[-1] + max(e.width for e in aside if e.lane == lane) + LANE)
        return offsets

    def _ports(self, index: int, back: bool) -> list[_Edge]:
        """Arrows at one side of a box: inner lanes nearest to the middle way of their direction."""
        here = [e for e in self.edges if e.back is back and e.lane >= 0 and index in (e.source, e.target)]
        above = sorted((e for e in here if e.bottom == index), key=lambda e: -e.lane)
        below = sorted((e for e in here if e.top == index), key=lambda e: e.lane)
        return above[::-1] + below[::-1]

    def _port(self, index: int, edge: _Edge) -> float:
        ports = self._ports(index, edge.back)
        place = next(i for i, one in enumerate(ports) if one is edge)
        return self.tops[index] + self.heights[index] * (place + 1) / (len(ports) + 1)

    def _arrow(self, edge: _Edge) -> str:
        kind = "back" if edge.back else "on"
        side = -1 if edge.back else 1
        middle = self.left + self.box / 2
        gap_top = self.tops[edge.top] + self.heights[edge.top]
        gap_bottom = self.tops[edge.top + 1]
        if edge.lane < 0:
            x = middle + side * LANE / 2
            start, end = (gap_bottom, gap_top) if edge.back else (gap_top, gap_bottom)
            path = f"M{x:.1f} {start:.1f}V{end:.1f}"
        else:
            wall = self.left if edge.back else self.left + self.box
            x = wall + side * self.offsets[edge.back][edge.lane]
            start, end = self._port(edge.source, edge), self._port(edge.target, edge)
            path = f"M{wall:.1f} {start:.1f}H{x:.1f}V{end:.1f}H{wall:.1f}"
        anchor = "end" if edge.back else "start"
        first = (gap_top + gap_bottom) / 2 - LINE * (len(edge.labels) - 1) / 2 + 4
        labels = "".join(
            f'<text class="t{kind}" text-anchor="{anchor}" x="{x + side * 7:.1f}" y="{first + LINE * i:.1f}">'
            f"{escape(label)}</text>"
            for i, label in enumerate(edge.labels)
        )
        return f'<path class="{kind}" marker-end="url(#{kind})" d="{path}"/>{labels}'

    def _box(self, index: int, form: str) -> str:
        x, y, height = self.left, self.tops[index], self.heights[index]
        middle = x + self.box / 2
        lines = self.stays.get(form, ())
        first = y + height / 2 - LINE * len(lines) / 2 + 5
        at = f'text-anchor="middle" x="{middle:.1f}"'
        stays = "".join(
            f'<text {at} y="{first + LINE * (i + 1):.1f}">{escape(event)}</text>' for i, event in enumerate(lines)
        )
        return (
            f'<rect class="box" rx="8" x="{x:.1f}" y="{y:.1f}" width="{self.box:.1f}" height="{height:.1f}"/>'
            f'<text class="form" {at} y="{first:.1f}">{escape(form)}</text>{stays}'
        )


def _head(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
    )


def _apart(one: _Edge, other: _Edge) -> bool:
    return one.bottom < other.top or other.bottom < one.top
