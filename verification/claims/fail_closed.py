"""Claim `fail_closed`: not knowing never lets anything through."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import Node, reads
from hitproof.spec.scenario import Expectation
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.encode import Z3Fact, encode
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.terms import all_of, negated

__all__ = ["CLAIM"]


def parts(bound: BoundRulebook) -> list[Part]:
    """One a group; its conditions are all that matters, with the peers that they read."""
    return each_group([group for group in bound.groups if group.rules.mandatory], "checks", constants=("row_tokens",))


def prove(run: Run) -> None:
    """For each fact that may be unknown: what is accepted without it would be accepted whatever its value."""
    group = run.group
    world = World(run.bound)
    model = world.group(group.id)
    premise = [*world.usual(), world.length > 0, model.needed()]
    facts = {}
    for path in sorted({path for check in group.checks for path in reads(check.require)} | reads(group.needed)):
        fact = _Unknown(model, path)
        if not z3.is_true(z3.simplify(model.names(path).known)):
            facts[f"{group.id}: {path} unknown"] = fact
    run.count += len(facts)
    accepted = model.accepted()
    base = [*premise, *model.peers_accepted(), *world.domains()]
    found = run.must_none(
        world.ctx,
        base,
        [(label, fact.matters()) for label, fact in facts.items()],
        soft=lambda: small(world, *world.models.values()),
    )
    if found is not None:
        label, answer = found
        _report(run, model, facts[label], answer.model)
    elif run.must(world.ctx, [*premise, accepted, *world.domains()], f"{group.id}: witness") is not None:
        run.witness = f"{group.id} can be accepted, so that its facts matter"


class _Unknown:
    """One fact made unknown, beside the same fact with any value of its domain."""

    def __init__(self, model: GroupModel, path: str) -> None:
        self.model, self.path = model, path
        self.fact = model.names(path)
        checks = model.group.checks
        self.reading = [check for check in checks if path in reads(check.require)]
        self.others = [model.dual(check.require).T for check in checks if path not in reads(check.require)]
        unknown, known = (Z3Fact(self.fact.value, rail) for rail in (model.false, model.true))
        self.without = [_with(model, check.require, path, unknown) for check in self.reading]
        self.known = [_with(model, check.require, path, known) for check in self.reading]

    def matters(self) -> Any:
        """Accepted without the fact, and refused for some value of it."""
        true = self.model.true
        # The value is any that the fact's domain admits: `known` of a free fact says just that.
        inside = self.fact.known
        return all_of([inside, *self.without, negated(all_of(self.known, true)), *self.others], true)


def _report(run: Run, model: GroupModel, fact: _Unknown, found: Any) -> None:
    world, group = model.world, model.group
    length = found.eval(world.length, model_completion=True).as_long()
    guilty = next(
        (
            check
            for check, term in zip(fact.reading, fact.known, strict=True)
            if not z3.is_true(found.eval(term, model_completion=True))
        ),
        fact.reading[0],
    )
    scenario = decode_scenario(
        found,
        world,
        "fail_closed",
        f"{fact.path} is unknown, and {group.id} is accepted",
        Expectation(accepted=True, at=length),
    )
    run.fail(
        f"{group.id} is accepted while {fact.path} is unknown, though a known value would be refused",
        guilty.rule,
        guilty.where,
        _forget(scenario.model_copy(), group, fact.path),
    )


def _with(model: GroupModel, node: Node, path: str, fact: Z3Fact) -> Any:
    names = model.names
    world = model.world
    return encode(node, lambda one: fact if one == path else names(one), ctx=world.ctx, enums=world.enums).T


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
    parts=parts,
    covers="{count} facts",
)
