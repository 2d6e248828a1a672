"""The page on ranks says what the turn does when a rank is lost."""

from __future__ import annotations

import pytest

from tests.docs.console import ROOT
from tests.docs.pages import rows
from tests.engine.ranks.test_crashes import Death, broken, die

PAGE = ROOT / "docs" / "ranks.md"
LOST, REACHED = 2, 0
DEATHS: dict[str, Death] = {
    "while it looks up": ("offers", LOST, "before"),
    "while it prepares": ("prepare", LOST, "before"),
    "while it votes": ("vote", LOST, (REACHED,)),
    "while it publishes": ("commit", LOST, "before"),
    "while it says go": ("go", LOST, (REACHED,)),
    "while it says done": ("done", LOST, (REACHED,)),
}
WHO = {"no": set(), "yes": {0, 1}, "who was reached": {REACHED}}
TABLE = rows(PAGE, "a rank is lost", "others have published", "others may launch", "results are given out")


def test_every_moment_is_told() -> None:
    """The table has a row for each moment, in their order."""
    assert list(DEATHS) == [row[0] for row in TABLE]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_the_table_is_what_happens(row: list[str]) -> None:
    """Of three ranks one is lost, and its last message reaches one of the others."""
    made = die(3, DEATHS[row[0]])
    others = {0, 1}
    published = {rank for rank in others if made.members[rank].published is not None}
    given_out = {rank for rank in others if made.finished.get(rank)}
    assert [] == broken(made)
    assert [WHO[cell] for cell in row[1:]] == [published, made.going & others, given_out]
