"""Whether two rulebooks that differ in one place decide, plan and change segments alike in every state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.verification.axioms.blocks import owns
from hitproof.verification.axioms.keys import Named, names_what_is_held
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.digest import digest_of
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.mutation.live import live_facts, live_in_forms
from hitproof.verification.mutation.processes import processes_are_equal
from hitproof.verification.solve import Asker
from hitproof.verification.steps import Step, make_step
from hitproof.verification.terms import all_of, any_of, equal, negated

__all__ = ["around_is_equal", "groups_are_equal"]

_SOLVED = ("checks", "options", "recompute", "transitions")
_AS_WRITTEN = ("needed", "raw_first", "raw_to", "resumable", "every", "dispositions", "keys", "peers", "constants")


def around_is_equal(asker: Asker, one: BoundRulebook, other: BoundRulebook) -> bool:
    """Whether what belongs to no group is the same in both; recoveries may be written otherwise and go alike."""

    def around(bound: BoundRulebook) -> str:
        book = bound.rulebook
        parts = (book.leasing, book.policy, book.choosing, book.prefill, book.door, book.assumptions)
        return digest_of(bound.flags, bound.invariants, *parts)

    return around(one) == around(other) and processes_are_equal(asker, one, other)


def groups_are_equal(asker: Asker, one: BoundRulebook, other: BoundRulebook, name: str) -> bool:
    """Whether a group is judged, mended and changed alike by both, from every state whose facts are truthful.

    Peers are taken to be ready in both or in neither: each group is compared by itself, and peers go in no circle.
    False too where the solver gives up, or where the two differ in what it is not asked about.
    """
    mine, theirs = one.group(name), other.group(name)
    if any(digest_of(getattr(mine, field)) != digest_of(getattr(theirs, field)) for field in _AS_WRITTEN):
        return False
    pair = _Pair(one, other, mine, theirs)
    questions: list[Any] = []
    if digest_of(mine.checks, mine.options, mine.recompute) != digest_of(
        theirs.checks, theirs.options, theirs.recompute
    ):
        if not pair.options_are_comparable():
            return False
        questions += [*pair.checks_differ(), *pair.options_differ()]
    if digest_of(mine.transitions) != digest_of(theirs.transitions):
        if not pair.events_are_comparable():
            return False
        questions += pair.events_differ()
    return all(asker.ask(pair.world.ctx, [*pair.premise(), one]).status == "unsat" for one in questions)


class _Pair:
    """One group's state, read by two rulebooks."""

    def __init__(self, one: BoundRulebook, other: BoundRulebook, mine: BoundGroup, theirs: BoundGroup) -> None:
        self.mine, self.theirs = mine, theirs
        self.world = World(one)
        self.beside = World(other, beside=self.world)
        self.beside.shared = self.world.shared
        self.model = self.world.group(mine.id)
        self.twin = self.beside.group(theirs.id)
        self.twin.own, self.twin.kernel = self.model.own, self.model.kernel
        for role, peer in self.model.peers.items():
            self.twin.peers[role].own = peer.own
            self.twin._ready[role] = self.model.ready(role)
        self.truth = Truth.fresh(self.world.ctx, f"{mine.id}.")
        self.assumptions = frozenset(one.rulebook.assumptions)
        self.live = live_facts(one, mine) | live_facts(other, theirs)

    def premise(self) -> list[Any]:
        """Facts are truthful and in their domains; the length is one that a decision proposes."""
        return [
            *(clause for _, clause in truthful(self.model, self.model.own, self.truth)),
            *fingerprints(self.truth, self.assumptions),
            *(clause for _, clause in names_what_is_held(self.model, self.model.own, Named.fresh(self.model, "s."))),
            *self.world.usual(),
            *self.world.domains(),
            *self.beside.domains(),
        ]

    def options_are_comparable(self) -> bool:
        """Whether the options that both have are of equal prices and repairs."""

        def told(option: BoundOption) -> str:
            return digest_of(option.level, option.repair, option.joint, option.cost, option.history)

        mine, theirs = ({option.id: told(option) for option in _options(one)} for one in (self.mine, self.theirs))
        unique = len(mine) == len(_options(self.mine)) and len(theirs) == len(_options(self.theirs))
        return unique and all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())

    def checks_differ(self) -> Iterator[Any]:
        """A check that one has and the other has not holds where all others do; of common ones each holds in both."""
        mine = {check.id: self.model.holds(check.id) for check in self.mine.checks}
        theirs = {check.id: self.twin.holds(check.id) for check in self.theirs.checks}
        identity = [self.model.identity() != self.twin.identity()]
        same = [mine[name] != theirs[name] for name in mine if name in theirs]
        only = [negated(term) for name, term in {**mine, **theirs}.items() if (name in mine) != (name in theirs)]
        differ = any_of([*identity, *same, *only], self.model.false)
        yield all_of([*self.model.peers_accepted(), differ], self.model.true)

    def options_differ(self) -> Iterator[Any]:
        """An option that is wanted by one alone, which may have it alone, or that leaves facts of its own."""
        base = [*self.model.peers_accepted(), self.model.identity(), self.world.length > 0, self.model.needed()]
        differ = []
        named = {option.id: option for option in self.theirs.options}
        differ += [self._wanted(self.model, one) for one in self.mine.options if one.id not in named]
        differ += [self._wanted(self.twin, one) for name, one in named.items() if name not in self._ids()]
        for mine in self.mine.options:
            theirs = named.get(mine.id, mine)
            if digest_of(mine) == digest_of(theirs) and digest_of(self.mine.checks) == digest_of(self.theirs.checks):
                continue
            wanted = self._wanted(self.model, mine)
            differ.append(wanted != self._wanted(self.twin, theirs))
            differ += [all_of([wanted, one], self.model.true) for one in self._effects_differ(mine, theirs)]
        if differ:
            yield all_of([*base, any_of(differ, self.model.false)], self.model.true)
        again, twin = self.mine.recompute, self.theirs.recompute
        if (again is None) != (twin is None):
            yield self.model.true
        elif again is not None and twin is not None and digest_of(again) != digest_of(twin):
            yield self.model.dual(again.when).T != self.twin.dual(twin.when).T

    def _ids(self) -> set[str]:
        return {option.id for option in self.mine.options}

    def _wanted(self, model: GroupModel, option: BoundOption) -> Any:
        failing = any_of([negated(model.holds(check)) for check in sorted(option.mends)], model.false)
        return all_of([model.applies(option), failing], model.true)

    def _effects_differ(self, mine: BoundOption, theirs: BoundOption) -> Iterator[Any]:
        if digest_of(mine.effect.chooses) != digest_of(theirs.effect.chooses):
            (_, one), (_, other) = self.model.after(mine), self.twin.after(theirs)
            yield all_of(one, self.model.true) != all_of(other, self.model.true)
        before, after = self.model.after(mine)[0], self.twin.after(theirs)[0]
        yield from self._facts_differ(before, after, self.live)
        for name in self.live & set(self.mine.facts):
            if mine.effect.renews != theirs.effect.renews and name in ("recorded", "measured"):
                yield self.model.true

    def _facts_differ(self, one: Post, other: Post, live: frozenset[str]) -> Iterator[Any]:
        for name in sorted(live & set(self.mine.facts)):
            here, there = one(name), other(name)
            if here is there:
                continue
            same = equal(here.known, there.known)
            values = z3.Implies(here.known, equal(here.value, there.value))
            yield negated(z3.And(same, values))

    def events_are_comparable(self) -> bool:
        """Whether both have the same events, with equal orders to whoever carries them out."""

        def told(group: BoundGroup) -> list[str]:
            # What is filed is told by the fact `published`; owners are asked about where there can be another one.
            plain = [replace(one, when=None, takes=(), sets={}, forgets=(), pins="any") for one in group.transitions]
            return [digest_of(replace(one, sources=(), keeps_prefix=False, key="", owner="")) for one in plain]

        return told(self.mine) == told(self.theirs)

    def events_differ(self) -> Iterator[Any]:
        """An event that one alone lets happen, or that leaves other facts."""
        bound, beside = self.world.bound, self.beside.bound
        live, others = live_in_forms(bound, self.mine), live_in_forms(beside, self.theirs)
        for mine, theirs in zip(self.mine.transitions, self.theirs.transitions, strict=True):
            if digest_of(mine) == digest_of(theirs):
                continue
            if set(mine.sources) != set(theirs.sources):
                yield self.model.true
                return
            for source in mine.sources:
                one, other = make_step(self.model, mine, source), make_step(self.twin, theirs, source)
                happens = self._happens(one)
                yield happens != self._happens(other)
                if mine.owner != theirs.owner:
                    yield all_of([happens, owns(self.model, self.model.own)], self.model.true)
                differ = any_of(
                    list(self._facts_differ(one.post, other.post, live[mine.target] | others[mine.target])),
                    self.model.false,
                )
                yield all_of([happens, differ], self.model.true)

    def _happens(self, step: Step) -> Any:
        assumed: Iterable[Any] = [] if step.donor is None else step.donor.assumptions
        return all_of([step.guard, *assumed], self.model.true)


def _options(group: BoundGroup) -> list[BoundOption]:
    return [*group.options, *([group.recompute] if group.recompute is not None else [])]
