"""Stories in which another plan than the chosen one may cost less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import Literal, Node, refs, substitute
from hitproof.spec.facts import TOKENS
from hitproof.spec.scenario import Expectation, Scenario
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.encode import encode_number
from hitproof.verification.model import GroupModel, Post, World
from hitproof.verification.run import Run

__all__ = ["at_stated_rates", "earning_stories", "order_stories"]


def order_stories(run: Run) -> Iterator[Scenario]:
    """A repair that costs less than it saves, then one that costs more; the other plan is the repair, or no reuse."""
    for dear in (False, True):
        for group in (one for one in run.whole.groups if one.rules.mandatory):
            for option in group.options:
                question = _Question(run, group)
                saved = question.saved()
                cost = question.price(option.cost, question.model.names)
                formulas = [*question.mends_all(option), cost > saved if dear else cost < saved]
                plan = [] if dear else [f"{group.id}/{option.id}"]
                story = question.story(formulas, plan, "the price does not come first", no_reuse=dear)
                if story is not None:
                    yield story


def earning_stories(run: Run, earning: str) -> Iterator[Scenario]:
    """An option whose price is below 0, and another one that mends everything with it or without."""
    group = run.whole.group(run.group.id)
    first = next(one for one in group.options if one.id == earning)
    for second in group.options:
        if second is first:
            continue
        question = _Question(run, group)
        model = question.model
        post, promises = model.after(first)
        gain = question.price(first.cost, model.names)
        alone = question.price(second.cost, model.names)
        later = question.price(second.cost, lambda path, m=model, p=post: m.resolve(path, p))
        formulas = [
            *question.mends_all(second),
            model.applies(first),
            z3.Or([z3.Not(model.holds(check)) for check in sorted(first.mends)]),
            *promises,
            _applies_after(model, second, post),
            z3.Or([z3.Not(model.holds(check, post)) for check in sorted(second.mends)]),
            gain < 0,
            gain + later < alone,
            alone < question.saved(),
        ]
        plan = [f"{group.id}/{first.id}", f"{group.id}/{second.id}"]
        story = question.story(formulas, plan, f"{group.id}/{first.id} earns by running", no_reuse=False)
        if story is not None:
            yield story


class _Question:
    """A state of one group in which all else is well, at the stated rates."""

    def __init__(self, run: Run, group: BoundGroup) -> None:
        self.run, self.group = run, group
        self.world = World(run.whole)
        self.model = self.world.group(group.id)
        self.rates = {
            path: value for path, value in run.whole.rulebook.environment.items() if path.startswith("runtime.")
        }

    def mends_all(self, option: BoundOption) -> list[Any]:
        """The option may run, and mends all that fails."""
        model = self.model
        return [
            model.applies(option),
            z3.Or([z3.Not(model.holds(check)) for check in sorted(option.mends)]),
            *(model.holds(check.id) for check in self.group.checks if check.id not in option.mends),
        ]

    def price(self, cost: Node, names: Any) -> Any:
        """A price at the stated rates."""
        return self._number(cost, {}, names)

    def saved(self) -> Any:
        """What reuse saves of the prefill, at the stated rates."""
        cost, names = self.run.whole.rulebook.prefill.cost, self.world.shared
        nothing = {"length": Literal(0, TOKENS)}
        return self._number(cost, nothing, names) - self._number(cost, {}, names)

    def story(self, formulas: list[Any], plan: list[str], title: str, *, no_reuse: bool) -> Scenario | None:
        world, model = self.world, self.model
        stated = [world.shared(path).value == value for path, value in self.rates.items() if path in world.shared.paths]
        peers = [peer.accepted() for peer in model.peers.values()]
        n, unit = world.shared("request.length").value, world.shared("request.granularity").value
        usual = [*world.usual(), world.length > 0, n == world.length + 1, unit == 1, model.identity(), *peers, *stated]
        # Without its contract no kernel reads what a repair leaves.
        usual += [model.kernel(name).known for name in world.bound.rulebook.kernel]
        found = self.run.asker.ask(
            world.ctx,
            [*formulas, *usual, *world.domains()],
            soft=lambda: small(world, *world.models.values()),
        )
        if found.status != "sat":
            return None
        length = 0 if no_reuse else found.model.eval(world.length, model_completion=True).as_long()
        return decode_scenario(found.model, world, "cheapest_first", title, Expectation(at=length, cheaper=plan))

    def _number(self, cost: Node, values: Mapping[str, Node], names: Any) -> Any:
        node = substitute(at_stated_rates(cost, self.run.whole), values)
        return encode_number(node, names, ctx=self.world.ctx, enums=self.world.enums)[0]


def at_stated_rates(cost: Node, bound: BoundRulebook) -> Node:
    """A price with the rates that the rulebook states as examples; linear in all that is left open."""
    stated = bound.rulebook.environment
    values: dict[str, Node] = {}
    for ref in refs(cost):
        value = stated.get(ref.path)
        if ref.path.startswith("runtime.") and isinstance(value, int | float):
            values[ref.path] = Literal(value, ref.fact.type)
    return substitute(cost, values)


def _applies_after(model: GroupModel, option: BoundOption, post: Post) -> Any:
    """The option may run on the segment as another one left it."""
    parts = [model.dual(option.when, post).T, *(model.ready(role).value for role in option.peers)]
    if option.own_bytes:
        checks = [one.id for one in model.group.checks if one.layer in ("identity", "block_integrity")]
        parts += [model.holds(check, post) for check in checks if check not in option.mends]
    return z3.And(parts)
