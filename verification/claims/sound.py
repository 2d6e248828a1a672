"""Claim `sound`: what is reused is what a query reads."""

from __future__ import annotations

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import reads
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.events import KNOWN_EVENTS, physically
from hitproof.verification.axioms.held import held_parts
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import decode_event, decode_scenario, decode_value, segment_of, small
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import Step, machines, steps

__all__ = ["CLAIM"]


def prove(run: Run) -> None:
    """Facts stay truthful through every event, and truthful facts that are accepted mean that the rows are there."""
    events = 0
    for group in run.bound.groups:
        _accepted_means_held(run, group)
        if run.done:
            return
    for group in machines(run.bound.groups):
        events += _events_keep_truth(run, group)
        if run.done:
            return
    run.witness = "every group can be accepted at a length above 0"
    run.covered.append(f"{events} events keep facts truthful")


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
    wanted, parts = held_parts(model, truth, position)
    missing = z3.Not(z3.And([part for _, part in parts]))
    label = f"{group.id}: accepted means held"
    answer = run.must_not(
        world.ctx,
        [*base, wanted, missing, *world.domains()],
        label,
        soft=[*small(world, *world.models.values()), position <= 0],
    )
    if answer is None:
        if run.must(world.ctx, [*base, model.needed(), *world.domains()], f"{group.id}: witness") is None:
            run.gaps.append(f"{group.id} is never accepted, so nothing was said about it")
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
            Expectation(accepted=True, at=length),
        ),
    )


def _events_keep_truth(run: Run, group: BoundGroup) -> int:
    count = 0
    world = World(run.bound)
    model = world.group(group.id)
    for step in steps(model):
        count += 1
        if step.transition.id not in KNOWN_EVENTS:
            run.gaps.append(f"{group.id}: no axiom says what the event '{step.transition.id}' does to bytes")
            continue
        _event_keeps_truth(run, world, model, step)
        if run.done:
            break
    return count


def _event_keeps_truth(run: Run, world: World, model: GroupModel, step: Step) -> None:
    group = model.group
    truth, donor = (Truth.fresh(world.ctx, f"{group.id}.{who}.") for who in ("self", "donor"))
    moved = physically(model, step, truth, donor, run.assumptions)
    if moved is None:
        return
    after, said = moved
    premise = [
        step.guard,
        *(clause for _, clause in truthful(model, model.own, truth)),
        *said,
        *(formula for ghost in (truth, donor, after) for formula in fingerprints(ghost, run.assumptions)),
        world.shared("runtime.pool_epoch").known,
    ]
    if step.donor is not None:
        premise += [clause for _, clause in truthful(model, step.donor, donor)]
        premise += step.donor.assumptions
    clauses = truthful(model, step.post, after)
    premise += world.domains()
    label = f"{group.id}: {step.transition.id}"
    broken = z3.Not(z3.And([clause for _, clause in clauses]))
    answer = run.must_not(world.ctx, [*premise, broken], label)
    if answer is None:
        return
    found = answer.model
    names = [name for name, clause in clauses if z3.is_false(found.eval(clause, model_completion=True))]
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
    )


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
)
