"""Reads a page back: its elements, the figures that it carries, and what it would load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


@dataclass
class Element:
    """An element with what stands inside it."""

    name: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """This element and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, name: str) -> list[Element]:
        """Every element of this name below."""
        return [one for one in self.walk() if one.name == name]

    def by_id(self, name: str) -> Element:
        """The one element of this id."""
        (found,) = (one for one in self.walk() if one.attributes.get("id") == name)
        return found

    @property
    def text(self) -> str:
        """All text inside, in no particular order between elements."""
        return " ".join(" ".join(one.texts) for one in self.walk())

    @property
    def classes(self) -> set[str]:
        """Its classes."""
        return set(self.attributes.get("class", "").split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            raise ValueError(f"<{tag}> has an attribute twice: {names}")
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].name != tag:
            raise ValueError(f"</{tag}> closes <{self.open[-1].name}>")
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].texts.append(data)


def read(page: str) -> Element:
    """The elements of a page in which every element is closed by its own end tag.

    Raises:
        ValueError: One is not, or has an attribute twice.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if reader.open != [reader.root]:
        raise ValueError(f"<{reader.open[-1].name}> is never closed")
    return reader.root


def figures(page: Element) -> dict[tuple[int | None, str], set[float]]:
    """Every figure that the tables carry: run and name to its exact values, which should be one."""
    found: dict[tuple[int | None, str], set[float]] = defaultdict(set)
    for row in page.all("tr"):
        run = row.attributes.get("data-run")
        for cell in row.children:
            if "data-figure" in cell.attributes:
                key = (None if run is None else int(run), cell.attributes["data-figure"])
                found[key].add(float(cell.attributes["data-value"]))
    return dict(found)


def expected_figures(reports: list[dict[str, Any]]) -> dict[tuple[int | None, str], set[float]]:
    """The same, worked out from the JSON of the replays."""
    found: dict[tuple[int | None, str], set[float]] = {}

    def add(run: int | None, name: str, value: float) -> None:
        found[run, name] = {value}

    given = {verdict for one in reports for verdict in one["decisions"]}
    edges = sorted({edge for one in reports for edge in one["hit_lengths"]["from_tokens"]})
    last: list[int] = []
    for run, report in enumerate(reports):
        for rate in ("logical_hit_rate", "effective_reuse_rate", "recovered_rate", "recomputed_rate"):
            for unit in ("blocks", "tokens"):
                add(run, f"{rate}.{unit}", report[rate][unit])
        costs = report["recovery_cost_us"]
        repairs = costs["in_place"] + costs["intra_layer"]
        add(run, "requests", report["requests"])
        add(run, "prefill_us", report["prefill_us"])
        add(run, "repairs_us", repairs)
        add(run, "bill_us", report["prefill_us"] + costs["in_place"] + costs["intra_layer"])
        add(run, "expected_us", report["prefill_us"] - costs["full_recompute"])
        for level, price in costs.items():
            add(run, f"recovery_cost_us.{level}", price)
        for verdict in given:
            add(run, f"decisions.{verdict}", report["decisions"].get(verdict, 0))
        lengths = report["hit_lengths"]
        logical, usable = (
            dict(zip(lengths["from_tokens"], lengths[kind], strict=True)) for kind in ("logical", "usable")
        )
        matched = [logical.get(edge, 0) for edge in edges]
        for edge in edges:
            add(run, f"hit_lengths.usable.{edge}", usable.get(edge, 0))
            if matched != last:
                add(run, f"hit_lengths.logical.{edge}", logical.get(edge, 0))
        last = matched
        model = report["settings"]["model"]
        alike = [other for other in reports if other["settings"]["model"] == model]
        shares = {(s["level"], s["group"], s["option"]): s for s in report["recovery"]}
        for key in {(s["level"], s["group"], s["option"]) for other in alike for s in other["recovery"]}:
            share = shares.get(key, {"repairs": 0, "cost_us": 0.0})
            for name in ("repairs", "cost_us"):
                add(None, f"recovery.{run}.{'.'.join(key)}.{name}", share[name])
    for fact, value in reports[0]["settings"]["rates"]["facts"].items():
        add(None, f"rates.{fact}", value)
    return found
