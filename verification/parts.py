"""Parts of a claim: what each is about, and what of the rules its proof reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hitproof.spec.bound import BoundGroup, BoundRulebook

__all__ = ["ASPECTS", "EVERYTHING", "PRICED", "Part", "each_group", "whole_part"]

ASPECTS = frozenset(
    {"checks", "costs", "dispositions", "flags", "healthy", "invariants", "keys", "leasing", "options", "rulebook"}
    | {"transitions"}
)
"""What a proof may read of rules, beside the facts, the home form and the peers of its groups."""

EVERYTHING = frozenset({"everything"})
"""Instead of aspects: the proof reads the rulebook and the profile as they are, and serves no other model."""

PRICED = frozenset({"layer_count", "ranks", "top_k"})
"""Constants of a group that only set prices: they are withheld from who does not read costs."""


@dataclass(frozen=True)
class Part:
    """A share of a claim that is proved by itself, once for all groups and models that agree in what it reads.

    Args:
        label: What it is about, for messages.
        groups: Ids of the groups that it is about; the peers that they read come with them.
        about: What else tells it from other parts of its claim: an option's id, a form, a setting.
        reads: Some of `ASPECTS`, or `EVERYTHING`. What is not named is withheld from the proof.
        constants: Constants of the groups that the proof reads beside those that stand in conditions; without, all
            that say what bytes are and which of them are read.
        free: Constants that stay unbound where events set facts to them: one proof then holds for all values in their
            domain. Where it fails, the part is proved again with the group's own values.
    """

    label: str
    groups: tuple[str, ...]
    about: tuple[str, ...] = ()
    reads: frozenset[str] = frozenset({"checks"})
    constants: frozenset[str] | None = None
    free: frozenset[str] = frozenset()


def each_group(
    groups: Iterable[BoundGroup],
    *aspects: str,
    constants: Iterable[str] | None = None,
    about: Iterable[str] = (),
    free: Iterable[str] = (),
) -> list[Part]:
    """One part a group, which reads these aspects of it and of its peers."""
    more, names = tuple(about), None if constants is None else frozenset(constants)
    reads, unbound = frozenset(aspects), frozenset(free)
    return [Part(" ".join((group.id, *more)), (group.id,), more, reads, names, unbound) for group in groups]


def whole_part(bound: BoundRulebook) -> Part:
    """The only part of a claim that is proved in one piece for a model."""
    return Part("all groups", tuple(group.id for group in bound.groups), reads=EVERYTHING)
