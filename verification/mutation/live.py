"""Facts of a group that matter: what some rule reads, or the engine itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Node, reads
from hitproof.spec.rulebook import Transition

__all__ = ["live_facts", "live_in_forms"]

ALWAYS = frozenset({"form", "tier", "generation", "published", "pins", "epoch"})
"""Facts that count in every form."""

BY_THE_ENGINE = frozenset(
    {
        *("address", "bytes", "end", "epoch", "filed", "form", "generation", "mapped_generation", "marks", "matched"),
        *("measured", "offset", "pins", "published", "recorded", "sealed", "start", "stride", "tier"),
        *("idle_us", "origin_address", "pool_epoch"),
    }
)
"""Facts that the engine or whoever carries a plan out reads without a rule."""


def live_facts(bound: BoundRulebook, group: BoundGroup) -> frozenset[str]:
    """Facts of a group's segments that may change what is decided, planned, found, or made of them by events."""
    return _read(bound, group, group.transitions)


def _read(bound: BoundRulebook, group: BoundGroup, events: Sequence[Transition]) -> frozenset[str]:
    """Facts that decisions read, and these events."""
    found = set(BY_THE_ENGINE & set(group.facts))
    found.update(field for key in group.keys for field in (*key.fields, *key.begins.values()))
    nodes: list[Node | None] = [group.needed, group.raw_first, group.raw_to]
    nodes += [check.require for check in group.checks]
    options = [*group.options, *([group.recompute] if group.recompute else [])]
    nodes += [node for option in options for node in (option.when, option.cost, *option.effect.chooses.values())]
    nodes += [one.when for one in events]
    nodes += [one.when for one in group.dispositions]
    nodes += [one.require[group.object] for one in bound.invariants if group.object in one.require]
    nodes += [flag.unless[group.object] for flag in bound.flags if group.object in flag.unless]
    found |= _own(nodes)
    found |= _read_of_others(bound, group)
    assigned = [
        (fact, node)
        for effects in (*(option.effect.sets for option in options), *(one.sets for one in events))
        for fact, node in effects.items()
    ]
    while True:
        more = _own(node for fact, node in assigned if fact in found) - found
        if not more:
            return frozenset(found)
        found |= more


def live_in_forms(bound: BoundRulebook, group: BoundGroup) -> dict[str, frozenset[str]]:
    """By form the facts that matter there: in forms that nobody finds, those alone that events read or hand on."""
    whole, found = _read(bound, group, ()), frozenset({group.home, "moving", "demoted"})
    forms = {form for one in group.transitions for form in (*one.sources, one.target)}
    live = {form: set(whole if form in found else ALWAYS & set(group.facts)) for form in forms}
    while True:
        size = sum(map(len, live.values()))
        for one in group.transitions:
            changed = {*one.sets, *one.takes, *one.forgets}
            handed = set() if one.donor else live[one.target] - changed
            read = _own([one.when, *(node for fact, node in one.sets.items() if fact in live[one.target])])
            for form in one.sources:
                live[form] |= (handed | read) & set(group.facts)
        if sum(map(len, live.values())) == size:
            return {form: frozenset(facts) for form, facts in live.items()}


def _own(nodes: Iterable[Node | None]) -> set[str]:
    """Facts of the segment itself, or of one like it, that expressions read."""
    paths = [path for node in nodes if node is not None for path in reads(node)]
    return {path.partition(".")[2] for path in paths if path.partition(".")[0] in ("self", "other", "donor")}


def _read_of_others(bound: BoundRulebook, group: BoundGroup) -> set[str]:
    """Facts that groups read whose peer this one is."""
    found: set[str] = set()
    for other in bound.groups:
        roles = {role for role, peer in other.peers.items() if peer == group.id}
        nodes: list[Node] = [check.require for check in other.checks]
        for option in other.options:
            nodes += [option.when, option.cost, *option.effect.sets.values()]
        nodes += [one.when for one in other.dispositions]
        paths = [path.partition(".") for node in nodes for path in reads(node)]
        found |= {name for role, _, name in paths if role in roles}
    return found
