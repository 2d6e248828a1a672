"""Recovery options, transitions and the rest of a rulebook, compared rule by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.rulebook import Rulebook, Transition
from hitproof.verification.diff.report import Difference, Relation, relation_of
from hitproof.verification.digest import digest_of, values_of
from hitproof.verification.model import World
from hitproof.verification.solve import Asker
from hitproof.verification.steps import make_step
from hitproof.verification.terms import negated

__all__ = ["PRICES", "options", "prices", "sections", "transitions"]

PRICES = ("choosing", "policy", "prefill", "thresholds", "environment")
"""Parts of a rulebook that say what costs what and what is watched; no hit is accepted or refused by them."""

SECTIONS = (
    "assumptions",
    "door",
    "enums",
    "engine_owned",
    "flags",
    "group",
    "group_defaults",
    "invariants",
    "joint",
    "kernel",
    "keys",
    "leasing",
    "recovering",
    "repairs",
    "request",
    "runtime",
)
"""Parts that are compared as they stand, in whatever order."""


def options(old: BoundRulebook, new: BoundRulebook, asker: Asker) -> Iterator[Difference]:
    """Options that apply in other states, do something else, or are only in one of the rulebooks."""
    for name in _common(old, new):
        before, after = ({one.id: one for one in book.group(name).options} for book in (old, new))
        for option, relation, said in _one_sided(before, after, "option"):
            yield _difference(new, "option", f"{name}/{option}", relation, said)
        for option in sorted(before.keys() & after.keys()):
            was, now = before[option], after[option]
            if _meaning(was) == _meaning(now):
                continue
            relation = _effects(was, now)
            if relation == "equal":
                relation = _conditions(old, new, name, option, asker)
            if relation != "equal":
                yield _difference(new, "option", f"{name}/{option}", relation, f"'{option}' {_verb(relation)}")


def transitions(old: BoundRulebook, new: BoundRulebook, asker: Asker) -> Iterator[Difference]:
    """Events that happen in other states, do something else, or are only in one of the rulebooks."""
    for name in _common(old, new):
        before, after = (_by_event(book.group(name)) for book in (old, new))
        for event, relation, said in _one_sided(before, after, "transition"):
            yield _difference(new, "transition", f"{name}/{event}", relation, said)
        for event in sorted(before.keys() & after.keys()):
            was, now = before[event], after[event]
            if [digest_of(one) for one in was] == [digest_of(one) for one in now]:
                continue
            single = len(was) == len(now) == 1
            relation = _events(old, new, name, was[0], now[0], asker) if single else "undecided"
            if relation != "equal":
                yield _difference(new, "transition", f"{name}/{event}", relation, f"'{event}' {_verb(relation)}")


def sections(old: Rulebook, new: Rulebook) -> Iterator[tuple[str, Relation]]:
    """Parts that differ and are not compared by what they accept."""
    for name in SECTIONS:
        if _unordered(getattr(old, name)) != _unordered(getattr(new, name)):
            yield name, "undecided"
    for what in sorted(old.objects.keys() ^ new.objects.keys()):
        yield f"object {what}", "incomparable"
    for what in sorted(old.objects.keys() & new.objects.keys()):
        if _unordered(old.dispositions.get(what, ())) != _unordered(new.dispositions.get(what, ())):
            yield f"dispositions of {what}", "undecided"


def prices(old: Rulebook, new: Rulebook) -> list[str]:
    """Parts that set prices and policies, and differ."""
    found = [name for name in PRICES if _unordered(getattr(old, name)) != _unordered(getattr(new, name))]
    for what in sorted(old.objects.keys() & new.objects.keys()):
        costs = [{one.id: digest_of(one.cost) for one in book.objects[what].options} for book in (old, new)]
        if any(costs[0][name] != costs[1][name] for name in costs[0].keys() & costs[1].keys()):
            found.append(f"costs of {what}")
    return found


def _conditions(old: BoundRulebook, new: BoundRulebook, name: str, option: str, asker: Asker) -> Relation:
    """How the states relate in which an option may run."""
    before = World(old)
    after = World(new, beside=before)
    was, now = (model.applies(_option(model.group, option)) for model in (before.group(name), after.group(name)))
    domains = [*before.domains(), *after.domains(), *after.usual()]
    more = asker.ask(before.ctx, [now, negated(was), *domains]).status
    less = asker.ask(before.ctx, [was, negated(now), *domains]).status
    return relation_of(more, less)


def _events(
    old: BoundRulebook, new: BoundRulebook, name: str, was: Transition, now: Transition, asker: Asker
) -> Relation:
    """How the states relate in which an event may happen, where it does the same in them."""
    asked = ("when", "pins", "owner", "sources")
    does = [{k: v for k, v in values_of(one).items() if k not in asked} for one in (was, now)]
    if digest_of(does[0]) != digest_of(does[1]) or set(was.sources) != set(now.sources):
        return "incomparable"
    strictness = {"any": 0, "exclusive": 1, "unpinned": 1, "sole": 1}
    if was.owner != now.owner:
        return "stricter" if strictness.get(now.owner, 0) > strictness.get(was.owner, 0) else "looser"
    relations = set()
    for source in was.sources:
        before = World(old)
        after = World(new, beside=before)
        guards = [make_step(world.group(name), one, source).guard for world, one in ((before, was), (after, now))]
        domains = [*before.domains(), *after.domains()]
        more = asker.ask(before.ctx, [guards[1], negated(guards[0]), *domains]).status
        less = asker.ask(before.ctx, [guards[0], negated(guards[1]), *domains]).status
        relations.add(relation_of(more, less))
    relations.discard("equal")
    if not relations:
        return "equal"
    return relations.pop() if len(relations) == 1 else "incomparable"


def _effects(was: BoundOption, now: BoundOption) -> Relation:
    """How two options of one id relate where they apply in the same states."""
    silent = ("when", "cost", "mends", "peers", "own_bytes", "rule", "where")
    does = [{k: v for k, v in values_of(one).items() if k not in silent} for one in (was, now)]
    if digest_of(does[0]) != digest_of(does[1]):
        return "incomparable"
    if was.mends == now.mends:
        return "equal"
    if was.mends < now.mends:
        return "looser"
    return "stricter" if now.mends < was.mends else "incomparable"


def _meaning(option: BoundOption) -> str:
    return digest_of({k: v for k, v in values_of(option).items() if k not in ("cost", "rule")})


def _option(group: BoundGroup, name: str) -> BoundOption:
    return next(one for one in group.options if one.id == name)


def _by_event(group: BoundGroup) -> dict[str, list[Transition]]:
    found: dict[str, list[Transition]] = {}
    for one in group.transitions:
        found.setdefault(one.id, []).append(one)
    return found


def _one_sided(before: Mapping[str, Any], after: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Relation, str]]:
    for name in sorted(before.keys() - after.keys()):
        yield name, "stricter", f"the {kind} '{name}' is no more"
    for name in sorted(after.keys() - before.keys()):
        yield name, "looser", f"the {kind} '{name}' is new"


def _common(old: BoundRulebook, new: BoundRulebook) -> list[str]:
    ids = {group.id for group in new.groups}
    return [group.id for group in old.groups if group.id in ids]


def _difference(new: BoundRulebook, what: Any, subject: str, relation: Relation, sentence: str) -> Difference:
    return Difference(what=what, profiles=[new.profile.profile], subject=subject, relation=relation, sentence=sentence)


def _verb(relation: Relation) -> str:
    return {
        "equal": "is the same",
        "stricter": "happens in fewer states",
        "looser": "happens in more states",
        "incomparable": "does something else",
        "undecided": "could not be compared",
    }[relation]


def _unordered(value: Any) -> Any:
    """The same for lists of rules in another order; rules of one id keep theirs."""
    if isinstance(value, tuple) and value and all(hasattr(one, "id") for one in value):
        return sorted(digest_of(one) for one in value)
    if isinstance(value, Mapping):
        return sorted((str(name), _unordered(one)) for name, one in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return sorted(map(str, value)) if isinstance(value, frozenset | set) else digest_of(tuple(value))
    return digest_of(value)
