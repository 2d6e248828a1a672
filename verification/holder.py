"""Whoever holds a segment by a lease, as a program over the rulebook's steps.

One holder and one segment stand for any: what is said of the pair is said of every pair. Whoever else there is may come
in between any two steps, in `bystanders.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import z3

from hitproof.spec.errors import Position
from hitproof.spec.leasing import LeaseStep, Leasing
from hitproof.verification.encode import Z3Fact
from hitproof.verification.model import GroupModel, Post
from hitproof.verification.steps import Step
from hitproof.verification.terms import all_of, any_of, equal, implies, negated

__all__ = ["Facts", "Holder", "Move", "Program", "State", "at_rest", "beginning", "but", "pins_by"]

Facts = Callable[[str], Z3Fact]


@dataclass(frozen=True, slots=True)
class Holder:
    """What there is to know of one holder and one segment; each value is a term.

    Args:
        at: How many of the program's steps have been taken.
        checked: The decision read the segment and found it fit to be read.
        confirmed: The last confirmation, if any, said that all is as noted.
        reading: The device reads.
        misled: A confirmation said that all is as noted, and it was not.
        robbed: A pin of the segment was given back by somebody who had none.
        diverted: The page table entry was changed since the note, and not by an event.
        intact: What the segment holds, and where, is as it was when it was noted.
        epoch: The epoch that was noted.
        form: The form that was noted.
        mapping: The generation of the mapping that was noted.
        mapped: Whether that was known.
    """

    at: Any
    checked: Any
    confirmed: Any
    reading: Any
    misled: Any
    robbed: Any
    diverted: Any
    intact: Any
    epoch: Any
    form: Any
    mapping: Any
    mapped: Any

    @classmethod
    def fresh(cls, model: GroupModel, tag: str) -> Holder:
        """A holder of whom nothing is known."""
        ctx, form = model.world.ctx, model.own("form").value.sort()
        terms = {
            field.name: z3.Int(f"{tag}{field.name}", ctx=ctx)
            if field.name in ("at", "epoch", "mapping")
            else z3.Const(f"{tag}form", form)
            if field.name == "form"
            else z3.Bool(f"{tag}{field.name}", ctx=ctx)
            for field in fields(cls)
        }
        return cls(**terms)

    def starts(self) -> list[Any]:
        """Nobody holds anything yet."""
        told = (self.checked, self.confirmed, self.reading, self.misled, self.robbed, self.diverted)
        return [self.at == 0, *(negated(term) for term in told)]

    def differs(self, other: Holder) -> list[tuple[Any, Any]]:
        """Pairs of terms in which two holders are not the same term."""
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        return [(mine, theirs) for mine, theirs in pairs if mine is not theirs]


@dataclass(frozen=True, slots=True)
class State:
    """A segment's facts, and its holder."""

    facts: Facts
    holder: Holder


@dataclass(frozen=True, slots=True)
class Move:
    """Something that may happen.

    Args:
        label: What, in words.
        guard: When.
        post: The state afterwards.
        rule: Id of the rule that says so.
        where: Its place.
        does: The holder's call that it is, `fault` for one of the faults, else an id of an event or `others`.
        step: The event of the form machine, where it is one.
    """

    label: str
    guard: Any
    post: State
    rule: str
    where: Position
    does: str
    step: Step | None = None


def at_rest(model: GroupModel, form: Any) -> Any:
    """Bytes are read only where a segment is at home or, by a copy to the device, below; else they are under way."""
    kind = model.group.facts["form"].type
    names = dict.fromkeys((model.group.home, "demoted"))
    return any_of([equal(form, model.world.enums.member(kind, name)) for name in names], model.false)


def beginning(model: GroupModel) -> list[Any]:
    """What a segment can be when a manager starts, held by nobody: nothing yet, or what a disk has kept."""
    facts, enums = model.group.facts, model.world.enums
    at_first = [
        all_of([equal(model.own(name).value, enums.member(facts[name].type, one)) for name, one in told], model.true)
        for told in ((("form", "discarded"), ("tier", "nowhere")), (("form", "demoted"), ("tier", "disk")))
    ]
    return [any_of(at_first, model.false), model.own("pins").value == 0]


class Program:
    """The steps of a lease in the rulebook's order: those of `take`, a stay, those of `release`.

    Args:
        model: The segment's group.
        leasing: The rulebook's section.
        has_bytes: Whether a page table leads to the segment.
    """

    def __init__(self, model: GroupModel, leasing: Leasing, *, has_bytes: bool) -> None:
        self.model, self.leasing, self.has_bytes = model, leasing, has_bytes
        self.held = len(leasing.take)
        """Here check, confirmation and use take place."""
        self.over = self.held + 1 + len(leasing.release)
        self._ctx = model.world.ctx

    def fit(self, state: State) -> Any:
        """A check can have let it through: it is at rest, and at home its owner writes its bytes no more."""
        home = self.model.world.enums.member(self.model.group.facts["form"].type, self.model.group.home)
        form, resting = state.facts("form").value, at_rest(self.model, state.facts("form").value)
        if not self.has_bytes:
            return resting
        sealed = state.facts("sealed")
        closed = all_of((sealed.known, sealed.value), self.model.true)
        return all_of((resting, implies(equal(form, home), closed)), self.model.true)

    def _place(self, phase: tuple[LeaseStep, ...], does: str) -> int | None:
        return next((index for index, step in enumerate(phase) if step.does == does), None)

    def _between(self, holder: Holder, low: int | None, high: int) -> Any:
        """As many steps have been taken as `low` or more, and no more than `high`."""
        return self.model.false if low is None else all_of((holder.at >= low, holder.at <= high), self.model.true)

    def noted(self, holder: Holder) -> Any:
        """Something was noted, and the lease is not over."""
        place = self._place(self.leasing.take, "note")
        return self._between(holder, None if place is None else place + 1, self.over - 1)

    def pinned(self, holder: Holder) -> Any:
        """The holder's own pin is on the segment."""
        place, back = self._place(self.leasing.take, "pin"), self._place(self.leasing.release, "unpin")
        until = self.over if back is None else self.held + 1 + back
        return self._between(holder, None if place is None else place + 1, until)

    def may_read(self, holder: Holder) -> Any:
        """No step has been taken that waits until the device has read."""
        fence = self._place(self.leasing.release, "fence")
        return holder.at >= self.held if fence is None else self._between(holder, self.held, self.held + 1 + fence)

    def honest(self, holder: Holder) -> Any:
        """No fault has happened."""
        return all_of((negated(holder.robbed), negated(holder.diverted)), self.model.true)

    def same_mapping(self, state: State) -> Any:
        """The page table's generation is what was noted; unknown and still unknown counts as the same."""
        now, holder = state.facts("mapped_generation"), state.holder
        same = implies(now.known, equal(now.value, holder.mapping))
        return all_of((equal(now.known, holder.mapped), same), self.model.true)

    def as_noted(self, state: State) -> Any:
        """What a confirmation compares is what was noted."""
        compared = {
            "compare_epochs": lambda: equal(state.facts("epoch").value, state.holder.epoch),
            "compare_forms": lambda: equal(state.facts("form").value, state.holder.form),
            "compare_mapping": lambda: self.same_mapping(state),
        }
        return all_of([compared[step.does]() for step in self.leasing.confirm], self.model.true)

    def steps_of_holder(self, state: State) -> Iterator[Move]:
        """Every step by itself: others may come in between any two."""
        phases = (*self.leasing.take, None, *self.leasing.release)
        for index, step in enumerate(phases):
            if step is None:
                yield from self.stay(state)
            else:
                guard, post = self._taken(state, index, step)
                yield self._move(f"the step {step.id}", guard, post, step, "take" if index < self.held else "release")

    def stay(self, state: State) -> Iterator[Move]:
        """What is done while everything is held: check, note anew, confirm, launch, complete, and begin to release."""
        holder, true = state.holder, self.model.true
        here = holder.at == self.held
        yes, no = true, self.model.false
        yield self._call("check", all_of((here, self.fit(state)), true), state, checked=yes)
        if self._place(self.leasing.take, "note") is not None:
            anew = self._note(state)
            quiet = all_of((here, negated(holder.reading)), true)
            post = State(state.facts, replace(anew, checked=no, confirmed=no))
            yield Move("it notes anew", quiet, post, "leasing/take", self.leasing.where, "rebase")
        same = all_of((here, holder.checked, self.as_noted(state)), true)
        misled = any_of((holder.misled, negated(holder.intact)), no)
        yield self._call("confirm", same, state, confirmed=yes, misled=misled)
        yield self._call("use", all_of((here, holder.checked, holder.confirmed), true), state, reading=yes)
        yield self._call("complete", holder.reading, state, reading=no)
        yield self._call("let go", here, state, at=self._number(self.held + 1))

    def calls_of_holder(self, state: State) -> Iterator[Move]:
        """The same, with each phase as one step, as far as it goes: what a manager does under its lock."""
        begin = State(state.facts, state.holder)
        guard = state.holder.at == 0
        for index, step in enumerate(self.leasing.take):
            _, begin = self._taken(begin, index, step)
        yield Move("it takes the lease", guard, begin, "leasing/take", self.leasing.where, "take")
        yield from (move for move in self.stay(state) if move.does not in ("let go", "rebase"))
        fence, last = self._place(self.leasing.release, "fence"), len(self.leasing.release)
        reading = state.holder.reading
        if fence is None:
            yield self._released(state, self.held, 0, last, self.model.true)
            return
        yield self._released(state, self.held, 0, last, negated(reading))
        yield self._released(state, self.held, 0, fence, reading)
        yield self._released(state, self.held + 1 + fence, fence, last, negated(reading))

    def _released(self, state: State, start: int, first: int, stop: int, when: Any) -> Move:
        """Steps of the release from one to before another, as one call."""
        after = State(state.facts, replace(state.holder, at=self._number(self.held + 1 + first)))
        guards = [state.holder.at == start, when]
        for index in range(first, stop):
            step = self.leasing.release[index]
            if step.does == "unpin":
                guards.append(after.facts("pins").value >= 1)
            _, after = self._taken(after, self.held + 1 + index, step)
        guard = all_of(guards, self.model.true)
        return Move("it releases", guard, after, "leasing/release", self.leasing.where, "release")

    def _taken(self, state: State, index: int, step: LeaseStep) -> tuple[Any, State]:
        """One step of a phase: when it can be taken, and the state after."""
        holder, facts, true = state.holder, state.facts, self.model.true
        guard = [holder.at == index]
        if step.does == "pin":
            facts = pins_by(state.facts, self.model, 1)
        elif step.does == "unpin":
            facts = pins_by(state.facts, self.model, -1)
            guard.append(state.facts("pins").value >= 1)
        elif step.does == "note":
            holder = self._note(state)
        elif step.does == "fence":
            guard.append(negated(holder.reading))
        return all_of(guard, true), State(facts, replace(holder, at=self._number(index + 1)))

    def _note(self, state: State) -> Holder:
        mapping = state.facts("mapped_generation")
        return replace(
            state.holder,
            epoch=state.facts("epoch").value,
            form=state.facts("form").value,
            mapping=mapping.value,
            mapped=mapping.known,
            intact=self.model.true,
            diverted=self.model.false,
        )

    def _call(self, does: str, guard: Any, state: State, **changes: Any) -> Move:
        after = State(state.facts, replace(state.holder, **changes))
        return Move(does, guard, after, "leasing/confirm", self.leasing.where, does)

    def _move(self, label: str, guard: Any, post: State, step: LeaseStep, does: str) -> Move:
        return Move(label, guard, post, f"leasing/{step.id}", step.where, does)

    def _number(self, value: int) -> Any:
        return z3.IntVal(value, ctx=self._ctx)


def pins_by(facts: Facts, model: GroupModel, by: int) -> Facts:
    """The same facts with so many pins more."""
    pins = facts("pins")
    return but(facts, model, pins=Z3Fact(pins.value + by, pins.known))


def but(facts: Facts, model: GroupModel, **changes: Z3Fact) -> Facts:
    """The same facts with some replaced."""
    return Post({**{name: facts(name) for name in model.group.facts}, **changes})
