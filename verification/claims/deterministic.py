"""Claim `deterministic`: one state, one plan; and no rule that never decides."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption
from hitproof.spec.scenario import Expectation
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.model import World
from hitproof.verification.run import Claim, Run

__all__ = ["CLAIM"]


def prove(run: Run) -> None:
    """Options are ordered by (cost, level, id): two of one key must never compete. Every rule decides somewhere."""
    alive = 0
    for group in run.bound.groups:
        if not group.rules.mandatory:
            continue
        for first, second in combinations(group.options, 2):
            if (first.level, first.id) == (second.level, second.id):
                _never_compete(run, group, first, second)
        alive += _decisive(run, group)
        if run.done:
            return
    run.covered.append(f"{alive} rules are decisive")


def _never_compete(run: Run, group: BoundGroup, first: BoundOption, second: BoundOption) -> None:
    world = World(run.bound)
    model = world.group(group.id)
    both = [model.applies(first), model.applies(second), model.identity(), *world.usual(), world.length > 0]
    common = sorted(first.mends & second.mends)
    failing = z3.Or([z3.Not(model.holds(check)) for check in common]) if common else z3.BoolVal(False, ctx=world.ctx)
    others = [model.holds(c.id) for c in group.checks if c.id not in common]
    prices = [model.number(option.cost) for option in (first, second)]
    same = z3.And(prices[0][1], prices[1][1], prices[0][0] == prices[1][0])
    lean = [prices[0][0] < 1]
    found = run.must_not(
        world.ctx,
        [*both, failing, *others, same, *world.domains()],
        f"{group.id}: {first.id} twice",
        soft=[*small(world, *world.models.values()), *lean],
    )
    if found is None:
        return
    length = found.model.eval(world.length, model_completion=True).as_long()
    run.fail(
        f"{group.id} has two options with one key (cost, level, '{first.id}'): "
        f"repair '{first.repair}' and '{second.repair}'",
        second.rule,
        second.where,
        decode_scenario(
            found.model,
            world,
            "deterministic",
            f"two options named {first.id} compete",
            Expectation(length=length, competing=[first.repair, second.repair]),
        ),
    )


def _decisive(run: Run, group: BoundGroup) -> int:
    """Counts checks that alone can refuse and options that can be wanted; notes what is dead in this profile."""
    world = World(run.bound)
    model = world.group(group.id)
    base = [*world.usual(), world.length > 0, model.needed()]
    alive = 0
    for check in group.checks:
        others = [model.holds(other.id) for other in group.checks if other.id != check.id]
        question = [*base, z3.Not(model.holds(check.id)), *others, *world.domains()]
        if run.must(world.ctx, question, f"{group.id}/{check.id} decides") is not None:
            run.decisive.add(str(check.where))
            alive += 1
    for option in group.options:
        wanted = z3.Or([z3.Not(model.holds(check)) for check in sorted(option.mends)])
        question = [*base, model.identity(), model.applies(option), wanted, *world.domains()]
        if run.must(world.ctx, question, f"{group.id}/{option.id} is wanted") is not None:
            run.decisive.add(str(option.where))
            alive += 1
    run.witness = run.witness or (f"{alive} rules of {group.id} are decisive" if alive else None)
    _note_rules(run, group)
    return alive


def _note_rules(run: Run, group: BoundGroup) -> None:
    rules: list[Any] = [*group.checks, *group.options]
    run.rules.update({str(rule.where): rule.rule for rule in rules})


CLAIM = Claim(
    id="deterministic",
    sentence="Equal states get equal plans, whatever the order of the rules; and every rule decides something "
    "somewhere.",
    method="pairs of options with one key must exclude each other; one satisfiability question a rule",
    assumptions=(),
    prove=prove,
)
