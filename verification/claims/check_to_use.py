"""Claim `check_to_use`: what is read is what was checked, whoever comes in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Node, bind
from hitproof.spec.leasing import Leasing
from hitproof.spec.scenario import Expectation
from hitproof.verification.bystanders import Bystanders
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.holder import Holder, Move, Program, State, at_rest, beginning
from hitproof.verification.lease_stories import tell
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.spacer import Candidate, search
from hitproof.verification.template import Clause, goals, template
from hitproof.verification.terms import all_of, any_of, negated
from hitproof.verification.traces import DEEPEST, SHORT, Trace, shortest

__all__ = ["CLAIM"]

CHECKS, HELD = "checks", "held"


def parts(bound: BoundRulebook) -> list[Part]:
    """Two a group: what its checks let through, and its form machine beside a lease."""
    eventful = [group for group in bound.groups if group.transitions]
    return [
        *each_group(bound.groups, "checks", "options", about=(CHECKS,), constants=("has_bytes", "row_tokens")),
        *each_group(
            eventful,
            *("transitions", "leasing", "invariants"),
            about=(HELD,),
            constants=("has_bytes",),
            free=("stride",),
        ),
    ]


def prove(run: Run) -> None:
    """What passes its checks is at rest; a lease on what is at rest holds it until the device has read it."""
    if CHECKS in run.part.about:
        _checked_is_at_rest(run, run.group)
        return
    leasing = run.bound.rulebook.leasing
    if leasing is None:
        run.gaps.append("the rulebook does not say how leases are taken")
    else:
        _Lease(run, run.group, leasing).prove()


def _checked_is_at_rest(run: Run, group: BoundGroup) -> None:
    world = World(run.bound)
    model = world.group(group.id)
    home = world.enums.member(group.facts["form"].type, group.home)
    accepted = [model.accepted(), model.needed(), *world.usual()]
    holds = [model.own("form").value == home]
    if group.constants.get("has_bytes"):
        holds += [model.own("sealed").known, model.own("sealed").value]
    found = run.must_not(
        world.ctx,
        [*accepted, negated(all_of(holds, world.true)), *world.domains()],
        f"{group.id}: accepted means at home and sealed",
        soft=lambda: small(world, *world.models.values()),
    )
    if found is None:
        _sources_are_at_rest(run, model)
        if run.must(world.ctx, [*accepted, *world.domains()], f"{group.id}: witness") is not None:
            run.witness = f"{group.id} can be accepted"
        return
    length = found.model.eval(world.length, model_completion=True).as_long()
    run.fail(
        f"{group.id} is accepted at length {length}, and its segment is not at home, or its owner may still write it",
        group.object,
        group.rules.where,
        decode_scenario(
            found.model,
            world,
            "check_to_use",
            f"{group.id} is accepted while its bytes are under way or may still be written",
            Expectation(accepted=True, ready=[group.id], at=length),
        ),
    )


def _sources_are_at_rest(run: Run, model: GroupModel) -> None:
    """What a repair reads of the segment itself is not under way."""
    world, group = model.world, model.group
    options = {f"{group.id}/{one.id}": one for one in group.options if one.own_bytes}
    applies = []
    for name, option in options.items():
        failing = any_of([negated(model.holds(check)) for check in sorted(option.mends)], model.false)
        applies.append((name, all_of((model.applies(option), failing), model.true)))
    away = negated(at_rest(model, model.own("form").value))
    found = run.must_none(
        world.ctx,
        [away, model.needed(), world.length > 0, *world.usual(), *world.domains()],
        applies,
        soft=lambda: small(world, *world.models.values()),
    )
    if found is None:
        return
    name, answer = found
    length = answer.model.eval(world.length, model_completion=True).as_long()
    run.fail(
        f"{name} reads bytes of a segment that is under way",
        options[name].rule,
        options[name].where,
        decode_scenario(
            answer.model,
            world,
            "check_to_use",
            f"{name} reads what may change meanwhile, whoever holds it",
            Expectation(option=name, at=length, leaves={}),
        ),
    )


@dataclass(frozen=True)
class _Kept:
    """One step and what it could break."""

    move: Move
    claims: list[Clause]
    breaks: Any


class _Lease:
    """One group's form machine beside one holder of one of its segments."""

    def __init__(self, run: Run, group: BoundGroup, leasing: Leasing) -> None:
        self.run, self.group, self.leasing = run, group, leasing
        self.world = World(run.bound)
        self.model = GroupModel(self.world, group, prefix="s.")
        self.program = Program(self.model, leasing, has_bytes=bool(group.constants.get("has_bytes")))
        self.others = Bystanders(self.program)
        self.declared = declared(run.bound, group)
        self.before = State(self.model.own, Holder.fresh(self.model, "holder."))

    def prove(self) -> None:
        """Every step keeps the template and the goals."""
        moves = list(self._moves())
        for name in sorted(self.others.unknown):
            self.run.gaps.append(f"{self.group.object}: no axiom says what the event '{name}' does to a reader")
        beginning_fails = negated(all_of([claim for _, claim in self._invariant(self.before, None)], self.model.true))
        starts = [*self.before.holder.starts(), beginning_fails, *self._domains()]
        if self.run.must_not(self.world.ctx, starts, "the beginning") is not None:
            self.run.gaps.append(f"{self.group.object}: the template does not hold before a lease is taken")
        found = self._broken(moves, None)
        if found is not None:
            self._fails(moves, *found)
        if self.run.counterexample is None and not self.run.gaps:
            self._witness()

    def _broken(self, moves: list[Move], more: Candidate | None) -> tuple[Move, str] | None:
        """The first step that breaks the template, the goals, or what was found beside them; and what it breaks."""
        kept: dict[str, _Kept] = {}
        for move in moves:
            # Events of one name may leave from one form by several rules.
            again = sum(other.label == move.label for other in moves[: len(kept)])
            kept[f"{self.group.object}: {move.label}{f' ({again + 1})' if again else ''}"] = self._kept(move, more)
        base = [*self._domains(), *(formula for _, formula in self._invariant(self.before, more))]
        found = self.run.must_none(self.world.ctx, base, [(label, one.breaks) for label, one in kept.items()])
        if found is None:
            self.run.count += len(kept)
            return None
        label, answer = found
        broken = [name for name, claim in kept[label].claims if not _true(answer.model, claim)]
        return kept[label].move, f"{label} breaks: {', '.join(broken)}"

    def _fails(self, moves: list[Move], move: Move, why: str) -> None:
        """The template does not carry: a story is searched in which a goal fails, then what else holds of segments."""
        if self.run.part.free:
            # It is asked again with the group's own constants; a story is worth its search only there.
            self.run.gaps.append(why)
            return
        trace = self._story(SHORT)
        if trace is None and self._holds_with_more(moves):
            return
        trace = trace or self._story(DEEPEST)
        if trace is None:
            self.run.gaps.append(f"{why}; no story of {DEEPEST} steps shows a failure, and no invariant was found")
            return
        sentence, scenario = tell(trace)
        self.run.fail(f"{self.group.id}: {sentence} ({why})", move.rule, move.where, scenario)

    def _story(self, deepest: int) -> Trace | None:
        return shortest(self.run, self.group, self.leasing, self.declared, deepest)

    def _holds_with_more(self, moves: list[Move]) -> bool:
        """Whether the template carries together with what Spacer finds; the beginning and every step are asked anew."""
        facts = self.model.own
        starts = beginning(self.model)
        wrong = any_of([self._kept(move, None).breaks for move in moves], self.model.false)
        breaks = all_of([*(formula for _, formula in self._invariant(self.before, None)), wrong], self.model.true)
        found = search(self.program, moves, starts, breaks, self._domains())
        if found is None:
            return False
        begun = self.run.must_not(self.world.ctx, [*starts, negated(found(facts)), *self._domains()], "the beginning")
        return begun is None and self._broken(moves, found) is None

    def _moves(self) -> Iterator[Move]:
        program, state = self.program, self.before
        yield from program.steps_of_holder(state)
        yield from self.others.events(state)
        yield from self.others.others(state)
        yield from self.others.faults(state)

    def _kept(self, move: Move, more: Candidate | None) -> _Kept:
        claims = self._invariant(move.post, more)
        wrong = negated(all_of([claim for _, claim in claims], self.model.true))
        return _Kept(move, claims, all_of((move.guard, wrong), self.model.true))

    def _invariant(self, state: State, more: Candidate | None) -> list[Clause]:
        found = [] if more is None else [("what Spacer found", more(state.facts))]
        return [*goals(self.program, state, self.declared), *template(self.program, state), *found]

    def _domains(self) -> list[Any]:
        return [*self.model.domains(), *self.world.domains()]

    def _witness(self) -> None:
        """A segment at home is pinned, noted, checked, confirmed and read."""
        program, state = self.program, self.before
        guards = [*state.holder.starts(), at_rest(self.model, state.facts("form").value)]
        for does in ("take", "check", "confirm", "use"):
            move = next(one for one in program.calls_of_holder(state) if one.does == does)
            guards.append(move.guard)
            state = move.post
        if self.run.must(self.world.ctx, [*guards, *self._domains()], "witness") is not None:
            self.run.witness = f"a lease on a segment of {self.group.id} is taken, confirmed and read by"


def declared(bound: BoundRulebook, group: BoundGroup) -> Sequence[tuple[str, Node]]:
    """The rulebook's own invariants over leases, for one group."""
    constants = {f"group.{name}": value for name, value in group.constants.items()}
    return [(one.id, bind(one.require[group.object], constants)) for one in bound.invariants if one.over == "lease"]


def _true(found: Any, claim: Any) -> bool:
    return str(found.eval(claim, model_completion=True)) == "True"


CLAIM = Claim(
    id="check_to_use",
    sentence="What the device reads by a confirmed lease is what was noted before the check, content and place, until "
    "it has completed, for any number of segments and requests; a confirmation tells of every change, even where a pin "
    "was lost or a page table entry was changed; events that keep the epoch keep what a reader reads.",
    method="template invariant over one holder and one segment, beside every event and every other holder; where it "
    "does not carry, together with what Spacer finds, checked anew",
    assumptions=(
        "bytes_change_only_by_events",
        "counters_never_wrap",
        "events_happen_one_by_one",
        "mapping_tells",
        "the claim separation",
    ),
    prove=prove,
    parts=parts,
    covers="{count} steps of a lease and of everybody else, each from any state",
)
