"""Claim `separation`: a block's bytes are of its owner's object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import bind
from hitproof.spec.scenario import Event, Expectation, Scenario
from hitproof.verification.axioms.blocks import Memory, owns, writes_where
from hitproof.verification.axioms.events import KNOWN_EVENTS
from hitproof.verification.axioms.truth import IDENTITY
from hitproof.verification.decode import decode_event, decode_scenario, decode_value, segment_of
from hitproof.verification.encode import Z3Fact, Z3Facts, encode
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, steps
from hitproof.verification.terms import all_of, any_of, equal, implies, negated

__all__ = ["CLAIM"]


def parts(bound: BoundRulebook) -> list[Part]:
    """One a group with bytes: its segment takes the step, beside any segment of any object that there is."""
    homes = tuple(sorted({rules.home for rules in bound.rulebook.objects.values()}))
    reads, free = frozenset({"transitions", "invariants"}), frozenset({"stride"})
    return [
        Part(f"{group.id} beside any other", (group.id,), homes, reads, constants=frozenset(), free=free)
        for group in bound.groups
        if group.constants.get("has_bytes")
    ]


def prove(run: Run) -> None:
    """Two segments stand for any two: the invariant speaks of pairs, and every event changes one segment.

    One segment takes the step, the other is any segment of any group; together they cover all pairs.
    """
    pair = _Pair(run, run.group)
    moves = {f"{step.transition.id} from {step.source}": pair.step(step) for step in steps(pair.mover)}
    run.count += len(moves)
    for name in sorted({move.step.transition.id for move in moves.values()} - KNOWN_EVENTS):
        run.gaps.append(f"{run.group.object}: no axiom says what the event '{name}' does to memory")
    found = run.must_none(
        pair.world.ctx,
        [*pair.before(), *pair.domains()],
        [(f"{run.group.object}.{name}", move.breaks) for name, move in moves.items()],
        soft=lambda: pair.wishes(moves.values()),
    )
    if found is not None:
        label, answer = found
        pair.report(moves[label.removeprefix(f"{run.group.object}.")], answer.model, label)
        return
    both = [owns(pair.mover, pair.mover.own), owns(pair.mover, pair.other)]
    fires = any_of([move.fires for move in moves.values()], pair.mover.false)
    if run.must(pair.world.ctx, [*pair.before(), *both, fires, *pair.domains()], "witness") is not None:
        run.witness = f"a segment of {run.group.id} moves while another one owns a block"


@dataclass(frozen=True)
class _Move:
    """One event: when it can happen beside the other segment, what must hold after it, and that it does not."""

    step: Step
    fires: Any
    claims: list[tuple[str, Any]]
    breaks: Any


class _Pair:
    """The segment that takes steps, and another one: of the same object, or of any other with its home form."""

    def __init__(self, run: Run, mover: BoundGroup) -> None:
        self.run, self.world = run, World(run.bound)
        self.mover = GroupModel(self.world, mover, prefix="s.")
        enums, ctx, forms = self.world.enums, self.world.ctx, mover.facts["form"].type
        self.true = self.world.true
        self.other = Z3Facts(enums, dict(mover.facts), "t.", run.bound.rulebook.engine_owned)
        self.memory = Memory.fresh(ctx)
        self.kind, self.other_kind = z3.IntVal(1, ctx=ctx), z3.Int("kind.of.t", ctx=ctx)
        self.same_object = equal(self.kind, self.other_kind)
        self.home, self.other_home = enums.member(forms, mover.home), z3.Const("home.of.t", enums.sort(forms))
        # Another object's home form may be the same one.
        self.homes = {name: equal(self.other_home, enums.member(forms, name)) for name in run.part.about}
        # Which write each one's bytes are of; a later write over them is another.
        self.mine, self.others, self.donors = (z3.Int(f"stamp.of.{who}", ctx=ctx) for who in ("s", "t", "d"))
        constants = {f"group.{name}": value for name, value in mover.constants.items()}
        self.declared = [
            bind(one.require[mover.object], constants) for one in run.bound.invariants if one.over == "pair"
        ]

    def before(self) -> list[Any]:
        """The invariant, and what the other segment may be."""
        fresh = z3.Int("new_stamp", ctx=self.world.ctx)
        return [
            self.other_kind >= self.kind,
            any_of(list(self.homes.values()), self.mover.false),
            implies(self.same_object, equal(self.home, self.other_home)),
            self._pair_holds(self.mover.own, self.other),
            self._content(self.mover.own, self.memory, self.mine, self.kind, self.home),
            self._others_content(self.memory),
            *(fresh != stamp for stamp in (self.mine, self.others, self.donors)),
        ]

    def domains(self) -> list[Any]:
        """Domains of both segments and of what they share."""
        return [*self.mover.domains(), *self.other.assumptions, *self.world.domains()]

    def step(self, step: Step) -> _Move:
        """The event with what it physically does, and the invariant after."""
        premise = [step.guard, *self._fairness(step)]
        if step.donor is not None:
            premise += self._donor(step, step.donor)
        after, mine = writes_where(step, self.memory, self.kind, self.mine, self.donors)
        claims = [
            ("pair", self._pair_holds(step.post, self.other)),
            ("declared invariants", self._invariants(step)),
            ("own bytes", self._content(step.post, after, mine, self.kind, self.home)),
            ("other's bytes", self._others_content(after)),
        ]
        fires = all_of(premise, self.true)
        wrong = negated(all_of([claim for _, claim in claims], self.true))
        return _Move(step, fires, claims, all_of((fires, wrong), self.true))

    def wishes(self, moves: Iterable[_Move]) -> list[Any]:
        """A failure is easiest to tell if the other segment is of an object that this model has, in a known block."""
        here = [self.homes[group.home] for group in self._partners() if group.home in self.homes]
        placed = [self.mover.own("address").known, *(move.step.event("address").known for move in moves)]
        return [
            any_of([self.same_object, *here], self.mover.false),
            self.same_object,
            owns(self.mover, self.other),
            *placed,
        ]

    def _partners(self) -> list[BoundGroup]:
        """Groups of the model whose segments own blocks, of other objects than the mover's."""
        name = self.mover.group.object
        return [g for g in self.run.whole.groups if g.object != name and g.constants.get("has_bytes")]

    def _invariants(self, step: Step) -> Any:
        """The rulebook's own invariants over pairs, wherever both segments own a block that is known."""
        same = Z3Fact(self.same_object, self.true)

        def names(path: str) -> Z3Fact:
            scope, _, name = path.partition(".")
            if path == "same_object":
                return same
            return self.other(name) if scope == "other" else self.mover.resolve(path, step.post)

        both = [
            owns(self.mover, step.post),
            owns(self.mover, self.other),
            step.post("address").known,
            self.other("address").known,
        ]
        enums, ctx = self.world.enums, self.world.ctx
        declared = [encode(node, names, ctx=ctx, enums=enums).T for node in self.declared]
        return implies(all_of(both, self.true), all_of(declared, self.true))

    def _pair_holds(self, mine: Any, others: Any) -> Any:
        """Co-owners of a block are sealed, of one object and of one identity."""
        meet = [
            owns(self.mover, mine),
            owns(self.mover, others),
            mine("address").known,
            others("address").known,
            equal(mine("address").value, others("address").value),
        ]
        pairs = [(mine(name), others(name)) for name in IDENTITY]
        alike = [term for a, b in pairs for term in (a.known, b.known, equal(a.value, b.value))]
        sealed = [term for facts in (mine, others) for term in (facts("sealed").known, facts("sealed").value)]
        return implies(all_of(meet, self.true), all_of([self.same_object, *sealed, *alike], self.true))

    def _content(self, facts: Any, memory: Memory, stamp: Any, kind: Any, home: Any) -> Any:
        """The block that a written segment names holds bytes of its object, and of the write that it knows of."""
        moving = self.world.enums.member(self.mover.group.facts["form"].type, "moving")
        form, there = facts("form").value, facts("address").value
        written = any_of((equal(form, home), equal(form, moving)), self.mover.false)
        placed = all_of((written, owns(self.mover, facts), facts("address").known), self.true)
        right = all_of((equal(memory.kind_at(there), kind), equal(memory.stamp_at(there), stamp)), self.true)
        return implies(placed, right)

    def _others_content(self, memory: Memory) -> Any:
        return self._content(self.other, memory, self.others, self.other_kind, self.other_home)

    def _fairness(self, step: Step) -> list[Any]:
        """What the environment keeps: the allocator's exclusivity, and the owner rule of the transition itself."""
        transition, own, new = step.transition, self.mover.own("address"), step.event("address")

        def apart(address: Any) -> Any:
            theirs = self.other("address")
            meet = (owns(self.mover, self.other), theirs.known, equal(theirs.value, address))
            return negated(all_of(meet, self.true))

        parts: list[Any] = []
        if transition.owner == "sole":
            parts.append(apart(own.value))
        if "exclusive_allocator" in self.run.assumptions and (transition.allocates or transition.moves):
            parts.append(apart(new.value))
            if transition.moves:
                parts.append(new.value != own.value)
        return parts

    def _donor(self, step: Step, donor: Z3Facts) -> list[Any]:
        """The donor is a third segment, or the other one itself; it keeps the invariant beside both."""
        other = self.other
        itself = [
            self.same_object,
            *(donor(n).known == other(n).known for n in ("address", "sealed")),
            *(equal(donor(n).value, other(n).value) for n in ("address", "sealed", *IDENTITY)),
            *(other(n).known for n in IDENTITY),
        ]
        return [
            any_of((self._pair_holds(donor, other), all_of(itself, self.true)), self.mover.false),
            self._content(donor, self.memory, self.donors, self.kind, self.home),
            *(donor(n).known for n in IDENTITY),
            *donor.assumptions,
        ]

    def _partner(self, found: Any) -> GroupModel | None:
        """The group whose segment is the other one; None where the model has none of that home form."""
        if z3.is_true(found.eval(self.same_object, model_completion=True)):
            return GroupModel(self.world, self.mover.group, prefix="t.")
        homes = [name for name, here in self.homes.items() if z3.is_true(found.eval(here, model_completion=True))]
        return next((GroupModel(self.world, g, prefix="t.") for g in self._partners() if g.home in homes), None)

    def report(self, move: _Move, found: Any, label: str) -> None:
        """Tell a failure as the story of two segments and the event between them."""
        step, mover, other = move.step, self.mover, self._partner(found)
        broken = [name for name, claim in move.claims if not z3.is_true(found.eval(claim, model_completion=True))]
        scenario = None if other is None else self._story(move, found, other, broken)
        beside = "another" if other is None else other.group.object
        self.run.fail(
            f"{label} beside {beside}: {', '.join(broken)} no longer belong to their owner",
            f"{mover.group.object}/{step.transition.id}",
            step.transition.where,
            scenario,
        )

    def _story(self, move: _Move, found: Any, other: GroupModel, broken: list[str]) -> Scenario:
        step, mover = move.step, self.mover
        segments = [segment_of(found, mover, name="s"), segment_of(found, other, name="t")]
        if step.donor is not None:
            segments.append(segment_of(found, mover, step.donor, "d"))
        events = [decode_event(found, mover, "s", step, donor="d" if step.donor is not None else None)]
        if broken == ["own bytes"]:
            # The old block is free by now: its next owner shows the fault.
            address = found.eval(step.post("address").value, model_completion=True).as_long()
            segments[1] = segments[1].model_copy(update={"facts": _free(segments[1].facts)})
            events.append(Event(segment="t", trigger="allocate", arguments={"address": address}))
        expect = Expectation(violates=["blocks_have_one_owner"])
        if not {"pair", "declared invariants", "own bytes"} & set(broken):
            # No fact tells of the overwritten bytes: the event fires, and both still name the one block.
            named = {"s": step.post("address"), "t": self.other("address")}
            places = {
                f"{who}.address": decode_value(found, mover.group.facts["address"], at) for who, at in named.items()
            }
            expect = Expectation(facts={**places, "s.form": step.transition.target})
        return decode_scenario(
            found,
            self.world,
            "separation",
            f"'{step.transition.id}' lets two owners meet in one block",
            expect,
            segments=segments,
            events=events,
            fill=False,
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
    parts=parts,
    covers="{count} steps, each beside any other segment",
)
