"""Every plan of a state, by trying every sequence of options on every piece: what a choice is measured against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hitproof.engine.plain import Env, failing, of_self, options_of, pieces_at, plain_lengths, run, surroundings
from hitproof.engine.plain.attempt import Looked, prefill, step, sum_of
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import Decision, PlanStep
from hitproof.spec.price import UNKNOWN_PRICE
from hitproof.spec.rulebook import LEVELS

__all__ = ["Plan", "TooManyPlans", "all_plans", "longest_match", "mending", "plans_at", "walk"]


class TooManyPlans(Exception):
    """A state has more plans than shall be tried."""


@dataclass(frozen=True)
class Plan:
    """A plan that ends clean; prices in ticks, all unknown ones alike."""

    length: int
    steps: tuple[PlanStep, ...]
    price: int

    @property
    def level(self) -> str | None:
        """The severest level, None without any step; of no reuse it is the last."""
        if not self.length:
            return LEVELS[-1]
        return max((step.level for step in self.steps), key=LEVELS.index, default=None)


def all_plans(bound: BoundRulebook, state: Resolved, most: int) -> list[Plan]:
    """Every plan at every length up to the longest match, and the one that reuses nothing.

    The latter needs tokens and media. Where it is not possible and there is no other, it stands for the refusal.

    Raises:
        TooManyPlans: There are more than `most`.
    """
    nothing = Plan(0, (), min(prefill(bound, state, 0), UNKNOWN_PRICE))
    at_hand = state.request.has_tokens is True and state.request.has_media is True
    found = [nothing] if at_hand else []
    matched = longest_match(bound, state)
    for length in plain_lengths(state):
        if length <= matched:
            rest = prefill(bound, state, length)
            for steps in plans_at(bound, state, length):
                found.append(Plan(length, tuple(steps), min(rest + sum_of(steps), UNKNOWN_PRICE)))
                if len(found) > most:
                    raise TooManyPlans
    return found or [nothing]


def longest_match(bound: BoundRulebook, state: Resolved) -> int:
    """The longest candidate at which no identity check of a mandatory group fails, whatever becomes of its peers."""
    for length in plain_lengths(state):
        found = []
        for group in bound.groups:
            for _, segment, share in pieces_at(group, state, length):
                looked: dict[str, list[Looked]] = {peer: [] for peer in group.peers.values()}
                env = {**surroundings(group, state, length, looked, share), **of_self(segment)}
                needed = group.rules.mandatory and interpret(group.needed, env) is not False
                found += [interpret(c.require, env) for c in group.checks if needed and c.layer == "identity"]
        if all(one is True for one in found):
            return length
    return 0


def plans_at(bound: BoundRulebook, state: Resolved, length: int) -> Iterator[list[PlanStep]]:
    """Every way to bring all pieces of all groups to a clean end; later groups see what became of their peers."""
    pieces = [(group, *piece) for group in bound.groups for piece in pieces_at(group, state, length)]

    def rest(place: int, looked: dict[str, list[Looked]], done: list[PlanStep]) -> Iterator[list[PlanStep]]:
        if place == len(pieces):
            yield done
            return
        group, index, segment, share = pieces[place]
        around = surroundings(group, state, length, looked, share)
        env = {**around, **of_self(segment)}
        failed = failing(group, env)
        ways: Iterator[tuple[Env, list[PlanStep]]] = iter([(segment, [])])
        if failed and group.rules.mandatory:
            ways = mending(bound, group, index, around, segment)
        for after, steps in ways:
            left = failed if not group.rules.mandatory else ()
            one = Looked(group, index, share, segment, env, failed, after, left, steps)
            yield from rest(place + 1, {**looked, group.id: [*looked.get(group.id, ()), one]}, [*done, *steps])

    return rest(0, {}, [])


def mending(
    bound: BoundRulebook, group: BoundGroup, index: int, around: Env, segment: Env
) -> Iterator[tuple[Env, list[PlanStep]]]:
    """Every sequence of options, each of which may run, as long as checks fail; never more steps than failed at first.

    Nothing is asked of a step but that it may run: it may break what held, and it may do so little that another one
    would have done it too.
    """

    def more(after: Env, steps: list[PlanStep], most: int) -> Iterator[tuple[Env, list[PlanStep]]]:
        now = {**around, **of_self(after)}
        failed = failing(group, now)
        if not failed:
            yield after, steps
        elif most:
            for price, option in options_of(group, failed, now):
                then = run(group, option, now, bound.rulebook.engine_owned)
                if then is not None:
                    yield from more(then, [*steps, step(group, index, option, price)], most - 1)

    return more(segment, [], len(failing(group, {**around, **of_self(segment)})))


def walk(bound: BoundRulebook, state: Resolved, decision: Decision) -> list[str]:
    """What is wrong with a decision's plan, step by step by the interpreter: nothing, if it is sound."""
    wrong: list[str] = []
    looked: dict[str, list[Looked]] = {}
    for group in bound.groups:
        looked[group.id] = []
        for index, segment, share in pieces_at(group, state, decision.usable):
            around = surroundings(group, state, decision.usable, looked, share)
            after = segment
            for one in decision.plan:
                if (one.group, one.segment) != (group.id, index):
                    continue
                now = {**around, **of_self(after)}
                options = {option.id: (price, option) for price, option in options_of(group, failing(group, now), now)}
                if one.option not in options:
                    wrong.append(f"{group.id}/{one.option} may not run")
                    continue
                price, option = options[one.option]
                if step(group, index, option, price) != one:
                    wrong.append(f"{group.id}/{one.option} is told otherwise: {one}")
                then = run(group, option, now, bound.rulebook.engine_owned)
                if then is None:
                    wrong.append(f"{group.id}/{one.option} cannot run")
                after = then or after
            env = {**around, **of_self(segment)}
            left = failing(group, {**around, **of_self(after)})
            looked[group.id].append(Looked(group, index, share, segment, env, failing(group, env), after, left, []))
            if left and group.rules.mandatory:
                wrong.append(f"{group.id} is left with {', '.join(left)}")
    return wrong
