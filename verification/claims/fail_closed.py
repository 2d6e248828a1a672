"""Claim `fail_closed`: not knowing never lets anything through."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import Node, reads
from hitproof.spec.scenario import Expectation
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.encode import Z3Fact, encode
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Claim, Run

__all__ = ["CLAIM"]


def prove(run: Run) -> None:
    """For each fact that may be unknown: what is accepted without it would be accepted whatever its value."""
    facts = 0
    for group in run.bound.groups:
        if not group.rules.mandatory:
            continue
        paths = sorted({path for check in group.checks for path in reads(check.require)} | reads(group.needed))
        for path in paths:
            facts += _unknown_is_safe(run, group, path)
            if run.done:
                return
    run.covered.append(f"{facts} facts")


def _unknown_is_safe(run: Run, group: BoundGroup, path: str) -> int:
    world = World(run.bound)
    model = world.group(group.id)
    fact = model.names(path)
    if z3.is_true(z3.simplify(fact.known)):
        return 0
    reading = [check for check in group.checks if path in reads(check.require)]
    unread = [check for check in group.checks if path not in reads(check.require)]
    without = [
        _with(model, check.require, path, Z3Fact(fact.value, z3.BoolVal(False, ctx=world.ctx))) for check in reading
    ]
    # The value is any that the fact's domain admits: `known` of a free fact says just that.
    inside = fact.known
    known = [
        _with(model, check.require, path, Z3Fact(fact.value, z3.BoolVal(True, ctx=world.ctx))) for check in reading
    ]
    true = z3.BoolVal(True, ctx=world.ctx)
    accepted = z3.And(true, *without)
    refused = z3.Not(z3.And(true, *known))
    base = [*world.usual(), world.length > 0, model.needed()]
    others = [*model.peers_accepted(), *(model.dual(check.require).T for check in unread)]
    label = f"{group.id}: {path} unknown"
    found = run.must_not(
        world.ctx,
        [*base, inside, accepted, refused, *others, *world.domains()],
        label,
        soft=small(world, *world.models.values()),
    )
    if found is None:
        if run.witness is None and run.must(
            world.ctx, [*base, model.accepted(), *world.domains()], f"{group.id}: witness"
        ):
            run.witness = f"{group.id} can be accepted, so that its facts matter"
        return 1
    length = found.model.eval(world.length, model_completion=True).as_long()
    guilty = next(
        (
            c
            for c, term in zip(reading, known, strict=True)
            if not z3.is_true(found.model.eval(term, model_completion=True))
        ),
        reading[0],
    )
    scenario = decode_scenario(
        found.model,
        world,
        "fail_closed",
        f"{path} is unknown, and {group.id} is accepted",
        Expectation(accepted=True, at=length),
    )
    run.fail(
        f"{group.id} is accepted while {path} is unknown, though a known value would be refused",
        guilty.rule,
        guilty.where,
        _forget(scenario.model_copy(), group, path),
    )
    return 1


def _with(model: GroupModel, node: Node, path: str, fact: Z3Fact) -> Any:
    names = model.names
    return encode(node, lambda one: fact if one == path else names(one), ctx=model.world.ctx).T


def _forget(scenario: Any, group: BoundGroup, path: str) -> Any:
    """The same scenario with the fact made unknown."""
    scope, _, name = path.partition(".")
    if scope in ("request", "runtime"):
        return scenario.model_copy(update={scope: {**getattr(scenario, scope), name: None}})
    if scope == "kernel":
        kernels = {**scenario.kernels, group.id: {**scenario.kernels.get(group.id, {}), name: None}}
        return scenario.model_copy(update={"kernels": kernels})
    owner = group.id if scope == "self" else group.peers[scope]
    segments = [
        segment
        if segment.group != owner
        else segment.model_copy(update={"facts": {k: v for k, v in segment.facts.items() if k != name}})
        for segment in scenario.segments
    ]
    return scenario.model_copy(update={"segments": segments})


CLAIM = Claim(
    id="fail_closed",
    sentence="What is accepted while some fact is unknown would be accepted whatever that fact's value were.",
    method="one validity question a fact: the same state with the fact unknown and with any value in its domain",
    assumptions=(),
    prove=prove,
)
