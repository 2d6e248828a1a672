"""The written pages of the repository: their files, code blocks, tables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.console import ROOT

__all__ = ["PAGES", "blocks", "first_line", "headings", "links", "rows", "squeezed"]

PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]))
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


def blocks(page: Path, language: str) -> list[str]:
    """The contents of a page's code blocks in one language."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return pattern.findall(page.read_text("utf-8"))


def rows(page: Path, *titles: str) -> list[list[str]]:
    """The cells of the table of a page that has these column titles."""
    head = f"| {' | '.join(titles)} |"
    lines = iter(page.read_text("utf-8").splitlines())
    if head not in lines:
        raise LookupError(f"{page.name} has no table {head}")
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


def headings(page: Path, level: int) -> list[str]:
    """The texts of a page's headings of one level."""
    return re.findall(rf"^{'#' * level} (.+)$", _FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links, code blocks aside."""
    yield from _LINK.findall(_FENCED.sub("", page.read_text("utf-8")))


def first_line(page: Path) -> str:
    """The first line of a page."""
    return page.read_text("utf-8").split("\n", 1)[0]


def squeezed(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())
