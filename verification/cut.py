"""Rules cut down to what a part of a claim reads, and the key that equal parts have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import bind, reads
from hitproof.spec.errors import InternalError
from hitproof.spec.rulebook import Invariant, Transition
from hitproof.verification.digest import SILENT, digest_of, values_of
from hitproof.verification.parts import ASPECTS, EVERYTHING, PRICED, Part
from hitproof.verification.withheld import SomeConstants, Withheld

__all__ = ["Cut", "Cutter"]

_ASPECT_OF_FIELD = {
    "needed": "checks",
    "raw_first": "checks",
    "raw_to": "checks",
    "resumable": "checks",
    "every": "checks",
    "checks": "checks",
    "options": "options",
    "recompute": "options",
    "transitions": "transitions",
    "dispositions": "dispositions",
    "healthy": "healthy",
    "keys": "keys",
    "layers": "costs",
}
_OBJECT_FIELDS = frozenset({"name", "title", "home", "pieces", "mandatory", "facts", "peers", "where"})
_AROUND = frozenset({"flags", "invariants", "leasing", "rulebook"})
"""Aspects of the rules that belong to no group."""

_RULEBOOK_FIELDS = frozenset(
    {"name", "enums", "request", "runtime", "kernel", "group", "door", "engine_owned", "assumptions", "where"}
)


@dataclass(frozen=True, slots=True)
class Cut(BoundRulebook):
    """A bound rulebook from which everything is withheld that a part does not read.

    Ids of groups, the profile and places in files are left in, to tell a failure; no verdict may rest on them.

    Args:
        whole: What it was cut from, to write and replay a counterexample.
    """

    whole: BoundRulebook


class Cutter:
    """Cuts one bound rulebook for one part after another."""

    def __init__(self, bound: BoundRulebook) -> None:
        self.bound = bound
        self._groups: dict[tuple[object, ...], BoundGroup] = {}
        self._rules: dict[frozenset[str], dict[str, Any]] = {}
        self._keys: dict[tuple[object, ...], str] = {}
        self._digests: dict[int, tuple[object, str]] = {}
        self._common: str | None = None

    def cut(self, part: Part) -> Cut:
        """The rules that a part reads.

        Raises:
            InternalError: The part names an aspect that rules do not have.
        """
        bound = self.bound
        if part.reads == EVERYTHING:
            return Cut(**values_of(bound), whole=bound)
        unknown = sorted(part.reads - ASPECTS)
        if unknown:
            raise InternalError(f"rules have no aspect '{unknown[0]}'")
        names = frozenset(self._order(part.groups))
        groups = tuple(self._group(group, part) for group in bound.groups if group.id in names)
        return Cut(**{**values_of(bound), **self._around(part.reads), "groups": groups}, whole=bound)

    def key(self, part: Part) -> str:
        """Digest of all that the cut leaves and of what the part is about.

        Parts of one claim and one rulebook with equal keys have one proof: whatever tells them apart was withheld.
        """
        cut = self.cut(part)
        if part.reads == EVERYTHING:
            return digest_of(part.about, cut.rulebook.digest, cut.profile.model_dump_json())
        order = self._order(part.groups)
        number = {name: index for index, name in enumerate(order)}
        groups = {group.id: group for group in cut.groups}
        contents = [self._group_key(groups[name], part) for name in order]
        wiring = [sorted((role, number[peer]) for role, peer in groups[name].peers.items()) for name in order]
        places = [number[name] for name in groups]
        return digest_of(part.about, len(part.groups), contents, wiring, places, self._around_key(part))

    def lasting_key(self, part: Part) -> str:
        """The same for proofs that outlive a run: with what every proof of a rulebook may read, and no run changes."""
        if self._common is None:
            left = _RULEBOOK_FIELDS - {"name", "where"}
            values = values_of(self.bound.rulebook)
            self._common = digest_of({name: values[name] for name in left})
        return digest_of(self.key(part), self._common)

    def _order(self, names: tuple[str, ...]) -> list[str]:
        """The part's groups, then the peers that they read, in an order that no id decides."""
        order = list(dict.fromkeys(names))
        for name in order:
            peers = self.bound.group(name).peers
            order += [peers[role] for role in sorted(peers) if peers[role] not in order]
        return order

    def _group(self, group: BoundGroup, part: Part) -> BoundGroup:
        """One group with what the part reads of it."""
        place = (group.id, part.reads, part.constants, part.free)
        if place not in self._groups:
            left: dict[str, Any] = {
                field: Withheld(f"{field} of {group.id}")
                for field, aspect in _ASPECT_OF_FIELD.items()
                if aspect not in part.reads
            }
            if "options" in part.reads and "costs" not in part.reads:
                left["options"] = tuple(map(_unpriced, group.options))
                left["recompute"] = group.recompute and _unpriced(group.recompute)
            if "transitions" in part.reads and part.free:
                left["transitions"] = _unbound(group, part.free)
            left["rules"] = _trimmed(group.rules, _OBJECT_FIELDS, "rulebook" in part.reads)
            left["constants"] = SomeConstants(group.constants, self._allowed(group, part))
            self._groups[place] = replace(group, **left)
        return self._groups[place]

    def _allowed(self, group: BoundGroup, part: Part) -> frozenset[str]:
        allowed = frozenset(group.constants) - PRICED if part.constants is None else part.constants
        if "costs" in part.reads:
            allowed |= PRICED
        if "invariants" in part.reads:
            allowed |= _constants_read(self.bound.invariants, group.object)
        return allowed - part.free

    def _around(self, aspects: frozenset[str]) -> dict[str, Any]:
        """What is not of one group: the rulebook's own fields, flags, invariants and whatever else is bound."""
        aspects &= _AROUND
        if aspects not in self._rules:
            whole = "rulebook" in aspects
            around = {
                name: value if whole or name in aspects else Withheld(name)
                for name, value in values_of(self.bound).items()
                if name not in ("rulebook", "profile", "groups")
            }
            kept = _RULEBOOK_FIELDS | (aspects & {"leasing"})
            self._rules[aspects] = {**around, "rulebook": _trimmed(self.bound.rulebook, kept, whole)}
        return self._rules[aspects]

    def _group_key(self, group: BoundGroup, part: Part) -> str:
        place = (group.id, part.reads, part.constants, part.free)
        if place not in self._keys:
            told = [
                self._digest_of(value) if isinstance(value, tuple) else value
                for field, value in values_of(group).items()
                if field not in ("id", "peers", "rules")
            ]
            rules = {**values_of(group.rules), "facts": self._digest_of(group.rules.facts)}
            self._keys[place] = digest_of(told, {name: part for name, part in rules.items() if name not in SILENT})
        return self._keys[place]

    def _around_key(self, part: Part) -> str:
        aspects = part.reads & _AROUND
        if (aspects,) not in self._keys:
            around = dict(self._around(aspects))
            if "rulebook" in aspects:
                around["rulebook"] = self.bound.rulebook.digest
            self._keys[aspects,] = digest_of(around)
        return self._keys[aspects,]

    def _digest_of(self, value: object) -> str:
        """The digest of a value that many cuts share."""
        if id(value) not in self._digests:
            self._digests[id(value)] = value, digest_of(value)
        return self._digests[id(value)][1]


def _trimmed(rules: Any, kept: frozenset[str], whole: bool) -> Any:
    """Rules of an object or of a rulebook with only these fields left."""
    if whole:
        return rules
    return replace(rules, **{name: Withheld(name) for name in values_of(rules) if name not in kept})


def _unpriced(option: BoundOption) -> BoundOption:
    cost: Any = Withheld(f"the cost of {option.rule}")
    return replace(option, cost=cost)


def _unbound(group: BoundGroup, free: frozenset[str]) -> tuple[Transition, ...]:
    """A group's events, with these constants unbound again where facts are set to them."""
    paths = {f"group.{name}" for name in free}
    values = {f"group.{name}": value for name, value in group.constants.items() if name not in free}
    return tuple(
        replace(
            bound,
            sets={
                fact: bind(rule.sets[fact], values, scopes=()) if paths & reads(rule.sets[fact]) else node
                for fact, node in bound.sets.items()
            },
        )
        for bound, rule in zip(group.transitions, group.rules.transitions, strict=True)
    )


def _constants_read(invariants: tuple[Invariant, ...], name: str) -> frozenset[str]:
    """Constants of the group that the rulebook's invariants over this object read."""
    paths = [path for one in invariants if name in one.require for path in reads(one.require[name])]
    return frozenset(path.removeprefix("group.") for path in paths if path.startswith("group."))
