"""Everybody beside one holder of one segment: events of the form machine, other holders, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import z3

from hitproof.verification.axioms.content import left_as_it_was
from hitproof.verification.axioms.truth import Truth
from hitproof.verification.encode import Z3Fact
from hitproof.verification.holder import Move, Program, State, but, pins_by
from hitproof.verification.steps import make_step
from hitproof.verification.terms import all_of, any_of, choice, implies, negated

__all__ = ["Bystanders"]


class Bystanders:
    """What may happen to a segment between two steps of its holder.

    Attributes:
        unknown: Events of which no axiom says what they do; they are left out, and no proof may pass over them.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.model = program, program.model
        self._ctx, self._where = program.model.world.ctx, program.leasing.where
        self._truth = Truth.fresh(self._ctx, f"{program.model.own.prefix}noted.")
        self.unknown: set[str] = set()

    def events(self, state: State, tag: str = "") -> Iterator[Move]:
        """Events of the form machine, whoever lets them happen."""
        model, holder = self.model, state.holder
        for transition in model.group.transitions:
            for source in transition.sources:
                own = None if state.facts is model.own else state.facts
                step = make_step(model, transition, source, own, tag)
                kept = left_as_it_was(model, step, state.facts, self._truth)
                if kept is None:
                    self.unknown.add(transition.id)
                    continue
                intact = all_of((holder.intact, kept), model.true)
                after = State(step.post, replace(holder, intact=intact))
                rule = f"{model.group.object}/{transition.id}"
                label = f"{transition.id} from {source}"
                yield Move(label, step.guard, after, rule, transition.where, transition.id, step)

    def others(self, state: State) -> Iterator[Move]:
        """Pins of other holders: whoever gives one back has one, so that the tracked holder's own is not touched."""
        mine = choice(self.program.pinned(state.holder), z3.IntVal(1, ctx=self._ctx), z3.IntVal(0, ctx=self._ctx))
        pins = state.facts("pins").value
        more = State(pins_by(state.facts, self.model, 1), state.holder)
        yield Move("another one pins", self.model.true, more, "leasing/take", self._where, "others")
        spare = any_of((pins > mine, all_of((state.holder.robbed, pins > 0), self.model.true)), self.model.false)
        less = State(pins_by(state.facts, self.model, -1), state.holder)
        yield Move("another one unpins", spare, less, "leasing/release", self._where, "others")

    def faults(self, state: State, tag: str = "") -> Iterator[Move]:
        """What rules do not allow and a confirmation must tell: a pin given back by who had none, a changed entry."""
        holder, model, true = state.holder, self.model, self.model.true
        pins = state.facts("pins").value
        robbed = State(pins_by(state.facts, self.model, -1), replace(holder, robbed=true))
        guard = all_of((self.program.pinned(holder), pins == 1), true)
        yield Move("a pin is lost", guard, robbed, "leasing/take", self._where, "fault")
        if self.program.has_bytes:
            other = Z3Fact(z3.Int(f"{tag}other.mapping", ctx=self._ctx), z3.Bool(f"{tag}other.mapped", ctx=self._ctx))
            fact = model.group.facts["mapped_generation"]
            inside = implies(other.known, model.world.enums.within(fact, other.value))
            facts = but(state.facts, model, mapped_generation=other)
            after = State(facts, replace(holder, diverted=true, intact=model.false))
            guard = all_of((self.program.noted(holder), inside, negated(self.program.same_mapping(after))), true)
            yield Move("the page table entry is changed", guard, after, "leasing/confirm", self._where, "fault")
