"""Claim `deterministic`: one state, one plan; and no rule that never decides."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.scenario import Expectation
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.model import World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.terms import all_of, any_of, negated

__all__ = ["CLAIM"]

TWINS = "options of one key"


def parts(bound: BoundRulebook) -> list[Part]:
    """One a group for its rules, without their prices; and one with prices where two options have one key."""
    groups = [group for group in bound.groups if group.rules.mandatory]
    twins = [group for group in groups if _twins(group)]
    return [
        *each_group(twins, "checks", "options", "costs", about=(TWINS,)),
        *each_group(groups, "checks", "options", constants=("row_tokens",)),
    ]


def prove(run: Run) -> None:
    """Options are ordered by (cost, level, id): two of one key must never compete. Every rule decides somewhere."""
    if TWINS not in run.part.about:
        _decisive(run, run.group)
        return
    for first, second in _twins(run.group):
        _never_compete(run, run.group, first, second)
        if run.done:
            return


def _twins(group: BoundGroup) -> list[tuple[BoundOption, BoundOption]]:
    pairs = combinations(group.options, 2)
    return [(first, second) for first, second in pairs if (first.level, first.id) == (second.level, second.id)]


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
        soft=lambda: [*small(world, *world.models.values()), *lean],
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


def _decisive(run: Run, group: BoundGroup) -> None:
    """Counts checks that alone can refuse and options that can be wanted; notes what is dead in this group."""
    world = World(run.bound)
    model = world.group(group.id)
    holds = {check.id: model.holds(check.id) for check in group.checks}
    fails = {name: negated(term) for name, term in holds.items()}
    places: dict[str, str] = {}
    questions: list[tuple[str, Any]] = []
    for check in group.checks:
        others = [term for name, term in holds.items() if name != check.id]
        places[f"{group.id}/{check.id} decides"] = str(check.where)
        questions.append((f"{group.id}/{check.id} decides", all_of([fails[check.id], *others], model.true)))
    for option in group.options:
        wanted = any_of([fails[check] for check in sorted(option.mends)], model.false)
        mended = [model.identity(), model.applies(option), wanted]
        places[f"{group.id}/{option.id} is wanted"] = str(option.where)
        questions.append((f"{group.id}/{option.id} is wanted", all_of(mended, model.true)))
    needed = model.needed()
    alive = run.must_each(world.ctx, [*world.usual(), world.length > 0, needed, *world.domains()], questions)
    run.decisive.update(places[label] for label in alive)
    run.count += len(alive)
    if alive:
        run.witness = f"{len(alive)} rules of {group.id} are decisive"
    rules: list[Any] = [*group.checks, *group.options]
    run.rules.update({str(rule.where): rule.rule for rule in rules})


CLAIM = Claim(
    id="deterministic",
    sentence="Equal states get equal plans, whatever the order of the rules; and every rule decides something "
    "somewhere.",
    method="pairs of options with one key must exclude each other; one satisfiability question a rule",
    assumptions=(),
    prove=prove,
    parts=parts,
    covers="{count} rules are decisive",
)
