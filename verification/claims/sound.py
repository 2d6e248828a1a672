"""Claim `sound`: what is reused is what a query reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.scenario import Expectation
from hitproof.spec.seen import ConjunctSeen, RuleSeen
from hitproof.verification.axioms.events import KNOWN_EVENTS, physically
from hitproof.verification.axioms.held import HELD, held_parts
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import decode_event, decode_scenario, decode_value, segment_of, small
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, steps
from hitproof.verification.terms import all_of, any_of, negated

__all__ = ["CLAIM"]

CHECKS, EVENTS = "checks", "events"
HELD_ROWS, TRUTHFUL_FACTS = "verification/axioms/held.py", "verification/axioms/truth.py"


def parts(bound: BoundRulebook) -> list[Part]:
    """Two a group: its checks, and its events."""
    eventful = [group for group in bound.groups if group.transitions]
    return [
        *each_group(bound.groups, "checks", about=(CHECKS,), constants=HELD),
        *each_group(eventful, "transitions", about=(EVENTS,), constants=("has_bytes",), free=("stride",)),
    ]


def prove(run: Run) -> None:
    """Facts stay truthful through every event, and truthful facts that are accepted mean that the rows are there."""
    if CHECKS in run.part.about:
        _accepted_means_held(run, run.group)
    else:
        _events_keep_truth(run, run.group)


def _accepted_means_held(run: Run, group: BoundGroup) -> None:
    world = World(run.bound)
    model = world.group(group.id)
    truth = Truth.fresh(world.ctx, f"{group.id}.")
    position = z3.Int("position", ctx=world.ctx)
    base = [
        model.accepted(),
        *model.peers_accepted(),
        *fingerprints(truth, run.assumptions),
        *(clause for _, clause in truthful(model, model.own, truth)),
        *world.usual(),
        world.length > 0,
    ]
    for peer in model.peers.values():
        peer_truth = Truth.fresh(world.ctx, f"{group.id}.{peer.group.id}.")
        base += [clause for _, clause in truthful(peer, peer.own, peer_truth)]
    if not _ends_with_a_whole_row(run, model, base):
        return
    wanted, parts = held_parts(model, truth, position)
    missing = z3.Not(z3.And([part for _, part in parts]))
    label = f"{group.id}: accepted means held"
    answer = run.must_not(
        world.ctx,
        [*base, wanted, missing, *world.domains()],
        label,
        soft=lambda: [*small(world, *world.models.values()), position <= 0],
        wrong=missing,
    )
    if answer is None:
        if run.must(world.ctx, [*base, model.needed(), *world.domains()], f"{group.id}: witness") is None:
            run.gaps.append(f"{group.id} is never accepted, so nothing was said about it")
        else:
            run.witness = f"{group.id} can be accepted at a length above 0"
        return
    found = answer.model
    length = found.eval(world.length, model_completion=True).as_long()
    where = found.eval(position, model_completion=True)
    told = [name for name, part in parts if not z3.is_true(found.eval(part, model_completion=True))]
    rule, place = _blame(group, told[0])
    run.fail(
        f"{group.id} is accepted at length {length}, but what a query reads at {where} is not there: {', '.join(told)}",
        rule,
        place,
        decode_scenario(
            found,
            world,
            "sound",
            f"{group.id} is accepted and does not hold what is read",
            Expectation(accepted=True, ready=[group.id], at=length),
        ),
        axioms=[_untrue("what a query reads there", HELD_ROWS, f"at {length} tokens", told, model, model.own, found)],
    )


def _ends_with_a_whole_row(run: Run, model: GroupModel, base: list[Any]) -> bool:
    """Of several pieces, one begins where the one before it ends: no accepted piece ends inside of a row."""
    world, group = model.world, model.group
    rows = int(group.constants.get("row_tokens", 1))
    if rows == 1 or group.rules.pieces != "span":
        return True
    inside = model.own("end").value % rows != 0
    question = [*base, model.needed(), inside, *world.domains()]
    label = f"{group.id}: accepted pieces end with whole rows"
    found = run.must_not(world.ctx, question, label, soft=lambda: small(world, *world.models.values()), wrong=inside)
    if found is None:
        return True
    length = found.model.eval(world.length, model_completion=True).as_long()
    rule, place = _blame(group, "end")
    sentence = f"{group.id} is accepted at length {length} though it ends inside of a row, where the next piece begins"
    expect = Expectation(accepted=True, ready=[group.id], at=length)
    run.fail(sentence, rule, place, decode_scenario(found.model, world, "sound", sentence, expect))
    return False


def _events_keep_truth(run: Run, group: BoundGroup) -> None:
    world = World(run.bound)
    model = world.group(group.id)
    events: dict[str, _Event] = {}
    for step in steps(model):
        run.count += 1
        if step.transition.id not in KNOWN_EVENTS:
            run.gaps.append(f"{group.id}: no axiom says what the event '{step.transition.id}' does to bytes")
            continue
        event = _Event.of(run, model, step)
        if event is not None:
            events[f"{group.id}: {step.transition.id} from {step.source}"] = event
    base = [clause for _, clause in truthful(model, model.own, _truth(model, "self"))]
    base += [world.shared("runtime.pool_epoch").known, *world.domains()]
    found = run.must_none(world.ctx, base, [(label, event.breaks) for label, event in events.items()])
    if found is not None:
        _report_event(run, world, model, events[found[0]], found[1].model)
        return
    fires = any_of([event.fires for event in events.values()], model.false)
    if run.must(world.ctx, [*base, fires], f"{group.id}: an event") is not None:
        run.witness = f"events happen to truthful segments of {group.id}"


def _truth(model: GroupModel, who: str) -> Truth:
    return Truth.fresh(model.world.ctx, f"{model.group.id}.{who}.")


@dataclass(frozen=True)
class _Event:
    """One event from one form: when it happens, and what is untruthful after it."""

    step: Step
    fires: Any
    clauses: list[tuple[str, Any]]
    breaks: Any

    @classmethod
    def of(cls, run: Run, model: GroupModel, step: Step) -> _Event | None:
        truth, donor = _truth(model, "self"), _truth(model, "donor")
        moved = physically(model, step, truth, donor, run.assumptions)
        if moved is None:
            return None
        after, said = moved
        premise = [
            step.guard,
            *said,
            *(formula for ghost in (truth, donor, after) for formula in fingerprints(ghost, run.assumptions)),
        ]
        if step.donor is not None:
            premise += [clause for _, clause in truthful(model, step.donor, donor)]
            premise += step.donor.assumptions
        clauses = truthful(model, step.post, after)
        untrue = negated(all_of([clause for _, clause in clauses], model.true))
        fires = all_of(premise, model.true)
        return cls(step, fires, clauses, all_of([fires, untrue], model.true))


def _report_event(run: Run, world: World, model: GroupModel, event: _Event, found: Any) -> None:
    group, step = model.group, event.step
    names = [name for name, clause in event.clauses if z3.is_false(found.eval(clause, model_completion=True))]
    facts = {
        f"s.{fact}": decode_value(found, declared, step.post(fact))
        for fact, declared in group.facts.items()
        if declared.type.kind != "set"
    }
    segments = [segment_of(found, model, name="s")]
    if step.donor is not None:
        segments.append(segment_of(found, model, step.donor, "d"))
    run.fail(
        f"after '{step.transition.id}' the facts of {group.id} claim what its bytes need not be: {', '.join(names)}",
        f"{group.object}/{step.transition.id}",
        step.transition.where,
        decode_scenario(
            found,
            world,
            "sound",
            f"'{step.transition.id}' leaves facts that are not truthful",
            Expectation(facts=facts),
            segments=segments,
            events=[decode_event(found, model, "s", step, donor="d" if step.donor is not None else None)],
            fill=False,
        ),
        axioms=[_untrue("what the bytes are", TRUTHFUL_FACTS, "after event 1", names, model, step.post, found)],
    )


def _untrue(what: str, place: str, moment: str, names: list[str], model: GroupModel, own: Any, found: Any) -> RuleSeen:
    """The parts of an axiom that fail, each with the fact that it is named after."""
    facts = model.group.facts
    parts = [
        ConjunctSeen(
            text=name,
            holds=False,
            values={f"self.{name}": decode_value(found, facts[name], own(name))} if name in facts else {},
        )
        for name in names
    ]
    return RuleSeen(rule=what, place=place, moment=moment, conjuncts=parts)


def _blame(group: BoundGroup, fact: str) -> tuple[str, object]:
    """The check that reads the fact and should have refused; where none does, the object that lacks it."""
    names = {"self.start", "self.end"} if fact in ("start", "end") else {f"self.{fact}"}
    reading = [check for check in group.checks if names & reads(check.require)]
    if not reading:
        return f"{group.object} (no check reads self.{fact})", group.rules.where
    last = [check for check in reading if check.layer == "group_intersection"] or reading
    return last[0].rule, last[0].where


CLAIM = Claim(
    id="sound",
    sentence="Whatever is reused at a length is there in full: every row that a query at or after it reads is held, "
    "committed, whole, readable, and of the request's identity.",
    method="inductive invariant over ghost content, then validity for a free position",
    assumptions=("fingerprints_tell", "writers_tell", "bytes_change_only_by_events"),
    prove=prove,
    parts=parts,
    covers="{count} events keep facts truthful",
)
