"""What a comparison of two rulebooks answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from hitproof.spec.scenario import Scenario

__all__ = ["DiffReport", "Difference", "Relation", "Witness", "joint_relation", "relation_of"]

Relation = Literal["equal", "stricter", "looser", "incomparable", "undecided"]
"""Of the newer rulebook to the older one: it accepts the same, less, more, or some more and some less."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Witness(_Model):
    """A state that one rulebook accepts and the other refuses.

    Args:
        direction: Which of the two accepts it.
        scenario: The state; its expectation is that of the newer rulebook.
        replayed: The engine was seen to accept it by one rulebook and to refuse it by the other.
        why: Why it could not be replayed.
    """

    direction: Literal["newly_accepted", "newly_refused"]
    scenario: Scenario
    replayed: bool
    why: str = ""


class Difference(_Model):
    """One place where the rulebooks differ in meaning.

    Args:
        what: `hit`: whole hits at a length. `group`: one group's checks. `option`, `transition`: one rule. `section`:
            a part of the rulebook that is only compared as it stands.
        profiles: Models in which they differ so.
        subject: Group, rule id or section.
        relation: Of the newer to the older.
        sentence: What differs, in plain words.
        witnesses: States that tell them apart.
    """

    what: Literal["hit", "group", "option", "transition", "section"]
    profiles: list[str]
    subject: str
    relation: Relation
    sentence: str
    witnesses: list[Witness] = []


class DiffReport(_Model):
    """All differences, and how the rulebooks relate altogether.

    Args:
        old, new: Digests of the rulebooks.
        relation: Of the newer to the older, over everything that is compared.
        prices: Sections that set prices and policies and differ; they accept nothing, so the relation is without them.
    """

    old: str
    new: str
    profiles: list[str]
    relation: Relation
    differences: list[Difference]
    prices: list[str]


def relation_of(more: str, less: str) -> Relation:
    """The relation from the solver's answers: can something be newly accepted, can something be newly refused?"""
    if "unknown" in (more, less):
        return "undecided"
    if more == "sat":
        return "incomparable" if less == "sat" else "looser"
    return "stricter" if less == "sat" else "equal"


def joint_relation(relations: Iterable[Relation]) -> Relation:
    """The relation of a whole from those of its parts."""
    found = set(relations) - {"equal"}
    if not found:
        return "equal"
    if "undecided" in found:
        return "undecided" if found <= {"undecided", "stricter"} else "incomparable"
    return next(iter(found)) if len(found) == 1 else "incomparable"
