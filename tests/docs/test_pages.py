"""The written pages keep step with the code: links, claims, errors, decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitproof.engine.event import ImpossibleEventError
from hitproof.spec.errors import HitproofError
from hitproof.spec.proof import CLAIMS
from hitproof.verification import MUTANTS
from hitproof.verification.claims import ALL_CLAIMS
from tests.docs.console import ROOT
from tests.docs.pages import PAGES, first_line, headings, links, rows, squeezed

CLAIMS_PAGE = ROOT / "docs" / "claims.md"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def section(page: Path, heading: str) -> str:
    """The text below one heading of the second level."""
    text = page.read_text("utf-8")
    start = text.index(f"## {heading}\n")
    end = text.find("\n## ", start)
    return squeezed(text[start : end if end >= 0 else None])


def codes(base: type[HitproofError]) -> Iterator[str]:
    """The codes of an error class and of all that derive from it."""
    yield base.code
    for derived in base.__subclasses__():
        yield from codes(derived)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page leads to a file or folder, and every anchor to a heading."""
    gone = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if target.startswith(("http://", "https://")):
            continue
        place = (page.parent / target).resolve() if target else page
        anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in _titles(place)]
        if not place.exists() or (anchor and anchor not in anchors):
            gone.append(link)
    assert not gone


def _titles(place: Path) -> list[str]:
    return [] if place.suffix != ".md" or not place.exists() else headings(place, 2) + headings(place, 3)


@pytest.mark.parametrize("claim", ALL_CLAIMS.values(), ids=lambda claim: claim.id)
def test_claims_are_told_as_they_are(claim: object) -> None:
    """The page has each claim's sentence, method, assumptions and mutants, and says what is not proved."""
    told = ALL_CLAIMS[claim.id]  # type: ignore[attr-defined]
    text = section(CLAIMS_PAGE, f"`{told.id}`")
    assert squeezed(told.sentence) in text
    assert squeezed(told.method[1:]) in text
    assert "**Not proved.**" in text
    for assumption in told.assumptions:
        assert assumption in text
    for mutant in MUTANTS:
        assert (f"`{mutant.id}` ({mutant.profile}): {squeezed(mutant.change)}." in text) == (mutant.claim == told.id)


def test_every_claim_and_assumption_has_its_line() -> None:
    """The page tells the required claims in their order, and explains each assumption that one of them uses."""
    told = [heading.strip("`") for heading in headings(CLAIMS_PAGE, 2) if heading.startswith("`")]
    assert list(CLAIMS) == told
    explained = {name.strip("`") for name, _ in rows(CLAIMS_PAGE, "assumption", "what it says")}
    assert {name for claim in ALL_CLAIMS.values() for name in claim.assumptions} == explained


def test_every_error_code_has_its_paragraph() -> None:
    """The page has one heading for each code, and none that no error carries."""
    assert ImpossibleEventError.code == "event"
    told = [heading.strip("`") for heading in headings(ROOT / "docs" / "errors.md", 2)]
    assert sorted({*codes(HitproofError), "internal"}) == sorted(told)


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_decisions_have_number_and_parts(page: Path) -> None:
    """A record's title begins with the number of its file; context, decision and consequences follow."""
    assert first_line(page).startswith(f"# {page.stem[:3]}: ")
    assert ["Context", "Decision", "Consequences"] == headings(page, 2)


def test_decisions_are_numbered_without_a_gap() -> None:
    """Numbers count from 001, each once."""
    assert [f"{number:03}" for number in range(1, len(DECISIONS) + 1)] == [page.stem[:3] for page in DECISIONS]


def test_design_notes_that_rules_name_exist() -> None:
    """A rule whose source is a design note names a record that is there."""
    numbers = {page.stem[:3] for page in DECISIONS}
    texts = [path.read_text("utf-8") for path in (ROOT / "rules").rglob("*.yaml")]
    named = {number for text in texts for number in re.findall(r"design note (\d{3})", text)}
    assert named
    assert named <= numbers
