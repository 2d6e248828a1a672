"""What the scheduler tells the workers to load and to save, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hitproof.engine import Engine, load
from hitproof.integrations.gate import PageSeal
from hitproof.spec.profile import Profile

__all__ = ["Load", "Page", "PageFacts", "PagePlan", "seals_of"]


@dataclass(frozen=True, slots=True)
class Page:
    """One block of one group.

    Args:
        key: Its name in the folder.
        group: Its group for the gate.
        block: The block that it comes from, or goes into.
        start, end: Its tokens.
        digest: vLLM's hash of all tokens up to `end`.
        identity: Identity facts of the request.
    """

    key: str
    group: str
    block: int
    start: int
    end: int
    digest: bytes
    identity: Mapping[str, str | None]

    def asked(self) -> dict[str, Any]:
        """How a page is sealed, and asked for."""
        return {"start": self.start, "end": self.end, "digest": self.digest, "identity": self.identity}


@dataclass(frozen=True, slots=True)
class Load:
    """The pages of one request; it uses all of them or none.

    Args:
        request: Its id.
        tokens: Tokens that they are worth.
        pages: Its pages.
    """

    request: str
    tokens: int
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What workers need to know once, to judge pages as the scheduler would.

    Args:
        profile: The profile with vLLM's groups, as data.
        ids: The profile's id of each group.
        layers: Names of the layers of each group.
        contracts: What each group's kernel reads.
        usual: Identity facts that hold unless a page states others.
    """

    profile: Mapping[str, Any]
    ids: Mapping[str, str]
    layers: Mapping[str, tuple[str, ...]]
    contracts: Mapping[str, Mapping[str, str]]
    usual: Mapping[str, str]


@dataclass(slots=True)
class PagePlan:
    """One step's loads and saves.

    Args:
        loads: Requests whose pages are loaded.
        saves: Pages that are saved after the step.
        facts: Known from the first step on that has any.
    """

    loads: list[Load] = field(default_factory=list)
    saves: list[Page] = field(default_factory=list)
    facts: PageFacts | None = None


def seals_of(facts: PageFacts, secret: bytes | None, engine: Engine | None = None) -> dict[str, PageSeal]:
    """A seal for each group.

    Args:
        facts: What is judged by.
        secret: Key of all servers that trust one another.
        engine: Loaded anew where left out.
    """
    judge = engine or load(Profile.model_validate(facts.profile))
    return {
        name: PageSeal(judge, facts.ids[name], identity=facts.usual, contract=facts.contracts[name], secret=secret)
        for name in facts.ids
    }
