"""Tables of the page: each figure is there as text, and exactly as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from hitproof.cli.page.markup import Content, tag

__all__ = ["Cell", "Head", "Row", "table"]

SHORT = 20
"""Characters of a row's name that fit into its column for sure."""


@dataclass(frozen=True, slots=True)
class Head:
    """A column's title, or that of several; `labels` marks titles of row names, which stand on the left."""

    title: str
    columns: int = 1
    rows: int = 1
    labels: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure: how it reads, which one it is, and its exact value."""

    text: str
    figure: str | None = None
    value: float | int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row's names, from the general to the special, and its figures; `run` is the run that they are of."""

    names: Sequence[str]
    cells: Sequence[Cell]
    run: int | None = None


def table(name: str, caption: str, heads: Iterable[Iterable[Head]], rows: Sequence[Row]) -> Markup:
    """A table; names that repeat in the first column are written once and span their rows.

    Args:
        name: Its id on the page.
        caption: What it shows.
        heads: Rows of titles.
        rows: What stands below them.
    """
    head = tag("thead", *(tag("tr", *map(_head, line)) for line in heads))
    body: list[Content] = []
    for _, group in groupby(rows, key=lambda row: row.names[0]):
        together = list(group)
        lines = [_line(row, len(together) if place == 0 else 0) for place, row in enumerate(together)]
        body.append(tag("tbody", *lines))
    whole = tag("table", tag("caption", caption), head, *body, id=name)
    return tag("div", whole, class_="scroll", role="group", aria_label=caption, tabindex=0)


def _head(head: Head) -> Markup:
    return tag(
        "th",
        head.title,
        scope="colgroup" if head.columns > 1 else "col",
        colspan=head.columns if head.columns > 1 else None,
        rowspan=head.rows if head.rows > 1 else None,
        class_="name" if head.labels else None,
        title=head.note,
    )


def _line(row: Row, span: int) -> Markup:
    first, *others = row.names
    # A row of one name is its own group, so a name that repeats there is written again.
    alone = not others
    names = [_name(name, "row") for name in others]
    if span or alone:
        spanning = span if span > 1 and not alone else None
        names.insert(0, _name(first, "rowgroup" if spanning else "row", spanning))
    cells = [
        tag("td", cell.text, data_figure=cell.figure, data_value=None if cell.value is None else repr(cell.value))
        for cell in row.cells
    ]
    return tag("tr", *names, *cells, data_run=row.run)


def _name(name: str, scope: str, span: int | None = None) -> Markup:
    # What does not fit is cut by the style; the title has all of it.
    return tag("th", name, scope=scope, rowspan=span, class_="name", title=name if len(name) > SHORT else None)
