"""Whether a call of a lease is what the proof's holder does, segment by segment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.facts import Value
from hitproof.spec.leasing import COMPARED
from hitproof.spec.steplog import Facts, LeaseTaken, Seen
from hitproof.verification.concrete import Formula, Reader, Scopes
from hitproof.verification.holder import Holder, Move, Program, State, beginning
from hitproof.verification.model import World
from hitproof.verification.z3_facts import Z3Facts

__all__ = ["Calls", "Noted", "Told"]

Noted = tuple[tuple[str, Value], ...]

_KNOWN_AS = {"epoch": "epoch", "form": "form", "mapped_generation": "mapping"}
"""What the proof calls the note of a fact."""

_CALLS = {"take": ("take",), "confirm": ("confirm",), "use": ("use",), "release": ("release", "let go")}
"""Moves of the proof's holder that a call can be."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of one lease and one segment. Ghosts are not: they are no part of a manager.

    Args:
        at, checked, confirmed, reading: As the proof's `Holder` has them.
        noted: The facts that were noted.
    """

    at: int
    checked: bool = False
    confirmed: bool = False
    reading: bool = False
    noted: Noted = ()

    def __str__(self) -> str:
        words = [name for name in ("checked", "confirmed", "reading") if getattr(self, name)]
        return f"a lease after {self.at} steps ({', '.join(words) or 'not checked'})"


@dataclass(frozen=True, slots=True)
class _Call:
    does: str
    guard: Formula
    kept: tuple[str, ...]
    made: Formula


class Calls:
    """The calls of leases on segments of one group.

    Args:
        bound: The rulebook.
        group: The group.
    """

    def __init__(self, bound: BoundRulebook, group: BoundGroup) -> None:
        leasing = bound.rulebook.leasing
        if leasing is None:
            raise ValueError("there are no leases")
        world = World(bound)
        self._group, self._model = group, world.group(group.id)
        self._program = Program(self._model, leasing, has_bytes=bool(group.constants.get("has_bytes")))
        self._held = self._program.held
        self._compared = tuple(COMPARED[step.does] for step in leasing.confirm)
        self._now = Z3Facts(world.enums, dict(group.facts), "after.", bound.rulebook.engine_owned)
        self._holder = Holder.fresh(self._model, "holder."), Holder.fresh(self._model, "after.holder.")
        state = State(self._model.own, self._holder[0])
        # A release may have to wait for a reader of other segments; up to there it is a step of its own.
        alone = (move for move in self._program.steps_of_holder(state) if move.does == "let go")
        moves = [*self._program.calls_of_holder(state), *alone]
        terms = [(move, self._made(move)) for move in moves]
        reader = Reader(world.enums)
        reader.facts("self", self._model.own, group.facts)
        reader.facts("after", self._now, group.facts)
        for scope, holder in zip(("holder", "holder after"), self._holder, strict=True):
            for name in ("at", "checked", "confirmed", "reading", "epoch", "form", "mapping", "mapped"):
                kind = group.facts["form"].type if name == "form" else None
                reader.constant(scope, name, getattr(holder, name), kind)
        self._calls = [
            _Call(move.does, reader.formula(move.guard), kept, reader.formula(made)) for move, (kept, made) in terms
        ]
        self._fit = reader.formula(self._program.fit(state))
        self._as_noted = reader.formula(self._program.as_noted(state))
        self._begins = reader.formula(z3.And(*beginning(self._model)))

    def begins(self, facts: Facts) -> bool:
        """Whether a segment that was never seen can be so."""
        return self._begins.holds({"self": facts})

    def as_noted(self, facts: Facts, told: Told) -> bool:
        """Whether all that a confirmation compares is as it was noted."""
        return self._as_noted.holds({"self": facts, "holder": self._values(told)})

    def over(self, told: Told) -> bool:
        """Whether every step of the lease has been taken."""
        return told.at == self._program.over

    def after(self, step: LeaseTaken, one: Seen, told: Told, noted: Noted) -> tuple[Told, str]:
        """What is known after a call, or why the call is none of the holder's.

        What the log of a manager leaves out is filled in: a segment counts as checked as soon as it is fit to be read,
        and the device as reading from when a release finds it so, unless it was told before.
        """
        if step.does == "take":
            return self._moved("take", one, told, Told(self._held, noted=noted))
        if step.does == "complete" or step.reading is False:
            told = replace(told, reading=False)
        if not told.checked and told.at == self._held:
            told = replace(told, checked=self._fit.holds({"self": one.before}))
        if step.does == "release" and step.reading and told.checked and not told.reading:
            still = Seen(one.number, one.group, one.before, one.before)
            told, why = self._moved("use", still, told, replace(told, reading=True))
            if why:
                return told, why
        wanted = replace(told, noted=noted)
        if step.does == "confirm" and step.answer and told.checked:
            return self._moved("confirm", one, told, replace(wanted, confirmed=True))
        if step.does == "use" and told.checked:
            return self._moved("use", one, told, replace(wanted, reading=True))
        if step.does == "release":
            wanted = replace(wanted, at=self._held + 1 + step.done)
            if wanted.at != told.at:
                return self._moved("release", one, told, wanted)
        if wanted != told or one.before != one.after:
            return told, f"{told} and its call '{step.does}' has changed what it may not"
        return told, ""

    def _moved(self, does: str, one: Seen, told: Told, after: Told) -> tuple[Told, str]:
        scopes = {
            "self": one.before,
            "after": one.after,
            "holder": self._values(told),
            "holder after": self._values(after),
        }
        for call in self._calls:
            if call.does in _CALLS[does] and self._leads(call, one, scopes):
                return after, ""
        return after, f"{told} and its call '{does}' left {after} and {one.after['pins']} pins of {one.before['pins']}"

    def _leads(self, call: _Call, one: Seen, scopes: Scopes) -> bool:
        kept = all(one.before[name] == one.after[name] for name in call.kept)
        return kept and call.guard.holds(scopes) and call.made.holds(scopes)

    def _made(self, move: Move) -> tuple[tuple[str, ...], Any]:
        """Facts that a move leaves as they are, and what it makes of the others and of the holder."""
        kept, made = [], []
        for name in self._group.facts:
            post, now = move.post.facts(name), self._now(name)
            if post is self._model.own(name):
                kept.append(name)
            else:
                made.append(z3.And(post.known == now.known, z3.Implies(post.known, post.value == now.value)))
        holder, wanted = move.post.holder, self._holder[1]
        names = ["at", "checked", "confirmed", "reading", *(_KNOWN_AS[fact] for fact in self._compared)]
        for name in names:
            same = getattr(holder, name) == getattr(wanted, name)
            made.append(
                z3.And(holder.mapped == wanted.mapped, z3.Implies(holder.mapped, same)) if name == "mapping" else same
            )
        return tuple(kept), z3.And(*made)

    def _values(self, told: Told) -> dict[str, Value]:
        found: dict[str, Value] = {name: getattr(told, name) for name in ("at", "checked", "confirmed", "reading")}
        for fact, value in told.noted:
            found[_KNOWN_AS[fact]] = value
            if fact == "mapped_generation":
                found["mapped"] = value is not None
        return found
