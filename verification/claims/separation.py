"""Claim `separation`: a block's bytes are of its owner's object."""

from __future__ import annotations

from itertools import product
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import bind
from hitproof.spec.rulebook import Transition
from hitproof.spec.scenario import Event, Expectation
from hitproof.verification.axioms.blocks import Memory, owns, writes_where
from hitproof.verification.decode import decode_event, decode_scenario, segment_of
from hitproof.verification.encode import Z3Fact, encode
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, make_step

__all__ = ["CLAIM"]


def prove(run: Run) -> None:
    """Two segments stand for any two: the invariant speaks of pairs, and every event changes one segment.

    One segment takes the step, the other is any segment of any group; together they cover all pairs.
    """
    steps = 0
    kinds: dict[tuple[str, str], BoundGroup] = {}
    for group in run.bound.groups:
        if group.constants.get("has_bytes"):
            kinds.setdefault((group.object, _what_matters(group)), group)
    for mover, other in product(kinds.values(), kinds.values()):
        for transition in mover.transitions:
            for source in transition.sources:
                steps += 1
                _Pair(run, mover, other).step(transition, source)
                if run.done:
                    return
    run.covered.append(f"{steps} steps of {len(kinds)} kinds of groups beside each other")


def _what_matters(group: BoundGroup) -> str:
    """The part of a group's transitions that decides who owns a block: guards, and what they do to these facts."""
    facts = ("address", "sealed", "form", "tier", "weights", "attention_config", "adapter", "media", "salt")
    return repr([(t.id, t.when, t.takes, [(f, t.sets[f]) for f in facts if f in t.sets]) for t in group.transitions])


class _Pair:
    def __init__(self, run: Run, mover: BoundGroup, other: BoundGroup) -> None:
        self.run, self.world = run, World(run.bound)
        self.mover = GroupModel(self.world, mover, prefix="s.")
        self.other = GroupModel(self.world, other, prefix="t.")
        self.same_object = mover.object == other.object
        self.memory = Memory.fresh(self.world.ctx)
        kinds = sorted({group.object for group in run.bound.groups})
        self.kind = {name: z3.IntVal(1 + kinds.index(name), ctx=self.world.ctx) for name in kinds}
        # Which write each one's bytes are of; a later write over them is another.
        self.mine, self.others, self.donors = (z3.Int(f"{who}.stamp", ctx=self.world.ctx) for who in ("s", "t", "d"))

    def step(self, transition: Transition, source: str) -> None:
        """The invariant before, the event with what it physically does, and the invariant after."""
        run, world, mover = self.run, self.world, self.mover
        step = make_step(mover, transition, source)
        before = [
            self._pair_holds(mover.own, self.other.own),
            self._content(mover, mover.own, self.memory, self.mine),
            self._content(self.other, self.other.own, self.memory, self.others),
        ]
        premise = [step.guard, *before, *self._fairness(step)]
        if step.donor is not None:
            premise += self._donor(step)
        after, mine = writes_where(step, self.memory, self.kind[mover.group.object], self.mine, self.donors)
        fresh = z3.Int("new_stamp", ctx=world.ctx)
        premise += [fresh != self.mine, fresh != self.others, fresh != self.donors]
        claims = [
            ("pair", self._pair_holds(step.post, self.other.own)),
            ("declared invariants", self._declared(step)),
            ("own bytes", self._content(mover, step.post, after, mine)),
            ("other's bytes", self._content(self.other, self.other.own, after, self.others)),
        ]
        domains = [*mover.own.assumptions, *self.other.own.assumptions, *world.domains()]
        label = f"{mover.group.object}.{transition.id} beside {self.other.group.object}"
        wrong = z3.Not(z3.And([claim for _, claim in claims]))
        soft = [owns(self.other, self.other.own), mover.own("address").known, step.event("address").known]
        found = run.must_not(world.ctx, [*premise, wrong, *domains], label, soft=soft)
        if found is None:
            self._witness(premise, domains)
            return
        self._report(step, found.model, claims, label)

    def _declared(self, step: Step) -> Any:
        """The rulebook's own invariants over pairs, wherever both segments own a block that is known."""
        constants = {f"group.{name}": value for name, value in self.mover.group.constants.items()}
        same = Z3Fact(z3.BoolVal(self.same_object, ctx=self.world.ctx), z3.BoolVal(True, ctx=self.world.ctx))

        def names(path: str) -> Z3Fact:
            scope, _, name = path.partition(".")
            if path == "same_object":
                return same
            return self.other.own(name) if scope == "other" else self.mover.resolve(path, step.post)

        both = z3.And(
            owns(self.mover, step.post),
            owns(self.other, self.other.own),
            step.post("address").known,
            self.other.own("address").known,
        )
        declared = [
            encode(bind(one.require[self.mover.group.object], constants), names, ctx=self.world.ctx).T
            for one in self.run.bound.invariants
            if one.over == "pair"
        ]
        return z3.Implies(both, z3.And(z3.BoolVal(True, ctx=self.world.ctx), *declared))

    def _pair_holds(self, mine: Any, others: Any) -> Any:
        """Co-owners of a block are sealed, of one object and of one identity."""
        meet = z3.And(
            owns(self.mover, mine),
            owns(self.other, others),
            mine("address").known,
            others("address").known,
            mine("address").value == others("address").value,
        )
        if not self.same_object:
            return z3.Not(meet)
        names = ("weights", "attention_config", "adapter", "media", "salt")
        alike = [z3.And(mine(n).known, others(n).known, mine(n).value == others(n).value) for n in names]
        sealed = [z3.And(facts("sealed").known, facts("sealed").value) for facts in (mine, others)]
        return z3.Implies(meet, z3.And(*sealed, *alike))

    def _content(self, model: GroupModel, facts: Any, memory: Memory, stamp: Any) -> Any:
        """The block that a written segment names holds bytes of its object, and of the write that it knows of."""
        kinds = model.group.facts["form"].type
        written = [
            facts("form").value == model.world.enums.member(kinds, name) for name in (model.group.home, "moving")
        ]
        placed = z3.And(z3.Or(written), owns(model, facts), facts("address").known)
        there = facts("address").value
        right = z3.And(memory.kind_at(there) == self.kind[model.group.object], memory.stamp_at(there) == stamp)
        return z3.Implies(placed, right)

    def _fairness(self, step: Step) -> list[Any]:
        """What the environment keeps: the allocator's exclusivity, and the owner rule of the transition itself."""
        transition = step.transition
        apart = z3.Not(
            z3.And(
                owns(self.other, self.other.own),
                self.other.own("address").known,
                self.other.own("address").value == self.mover.own("address").value,
            )
        )
        parts: list[Any] = []
        if transition.owner == "sole":
            parts.append(apart)
        new = step.event("address")
        if "exclusive_allocator" in self.run.assumptions and (transition.allocates or transition.moves):
            free = z3.Not(
                z3.And(
                    owns(self.other, self.other.own),
                    self.other.own("address").known,
                    self.other.own("address").value == new.value,
                )
            )
            parts.append(free)
            if transition.moves:
                parts.append(new.value != self.mover.own("address").value)
        return parts

    def _donor(self, step: Step) -> list[Any]:
        """The donor is a third segment, or the other one itself; it keeps the invariant beside both."""
        assert step.donor is not None
        donor = step.donor
        beside = self._pair_holds(donor, self.other.own)
        content = self._content(self.mover, donor, self.memory, self.donors)
        itself = (
            z3.And(
                *(donor(n).known == self.other.own(n).known for n in ("address", "sealed")),
                *(
                    donor(n).value == self.other.own(n).value
                    for n in ("address", "sealed", "weights", "attention_config", "adapter", "media", "salt")
                ),
            )
            if self.same_object
            else z3.BoolVal(False, ctx=self.world.ctx)
        )
        identity = [donor(n).known for n in ("weights", "attention_config", "adapter", "media", "salt")]
        known = [self.other.own(n).known for n in ("weights", "attention_config", "adapter", "media", "salt")]
        return [z3.Or(beside, z3.And(itself, *known)), content, *identity, *donor.assumptions]

    def _witness(self, premise: list[Any], domains: list[Any]) -> None:
        if self.run.witness is None:
            both = [owns(self.mover, self.mover.own), owns(self.other, self.other.own)]
            if self.run.must(self.world.ctx, [*premise, *both, *domains], "witness") is not None:
                self.run.witness = (
                    f"a segment of {self.mover.group.id} moves while one of {self.other.group.id} owns a block"
                )

    def _report(self, step: Step, found: Any, claims: list[tuple[str, Any]], label: str) -> None:
        broken = [name for name, claim in claims if not z3.is_true(found.eval(claim, model_completion=True))]
        segments = [segment_of(found, self.mover, name="s"), segment_of(found, self.other, name="t")]
        if step.donor is not None:
            segments.append(segment_of(found, self.mover, step.donor, "d"))
        events = [decode_event(found, self.mover, "s", step, donor="d" if step.donor is not None else None)]
        if broken == ["own bytes"]:
            # The old block is free by now: its next owner shows the fault.
            address = found.eval(step.post("address").value, model_completion=True).as_long()
            segments[1] = segments[1].model_copy(update={"facts": _free(segments[1].facts)})
            events.append(Event(segment="t", trigger="allocate", arguments={"address": address}))
        expect = Expectation(violates=["blocks_have_one_owner"])
        if not {"pair", "declared invariants", "own bytes"} & set(broken):
            # No fact tells of the overwritten bytes: the event fires, and both still name the one block.
            address = found.eval(step.post("address").value, model_completion=True).as_long()
            expect = Expectation(facts={"s.address": address, "t.address": address, "s.form": step.transition.target})
        scenario = decode_scenario(
            found,
            self.world,
            "separation",
            f"'{step.transition.id}' lets two owners meet in one block",
            expect,
            segments=segments,
            events=events,
            fill=False,
        )
        self.run.fail(
            f"{label}: {', '.join(broken)} no longer belong to their owner",
            f"{self.mover.group.object}/{step.transition.id}",
            step.transition.where,
            scenario,
        )


def _free(facts: Any) -> dict[str, Any]:
    """A discarded segment with the same counters."""
    kept = {name: facts[name] for name in ("generation", "pins", "epoch", "bound_for") if name in facts}
    return {**kept, "form": "discarded", "tier": "nowhere", "pins": 0}


CLAIM = Claim(
    id="separation",
    sentence="The bytes of a block are of its owner's object, for any number of segments, through allocation, writing, "
    "moving, sharing and freeing; co-owners are sealed and of one object and identity.",
    method="inductive step a transition over two tracked segments and the memory they share",
    assumptions=("exclusive_allocator", "writers_tell"),
    prove=prove,
)
