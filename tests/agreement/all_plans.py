"""Every plan that ends clean, by trying every sequence of options: what a choice is measured against."""

from __future__ import annotations

from collections.abc import Iterator

from hitproof.engine.plain import (
    Attempt,
    Env,
    Looked,
    failing,
    of_self,
    options_of,
    pieces_at,
    prefill,
    run,
    step,
    surroundings,
)
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.decision import PlanStep

MOST_STEPS = 3
"""Longest sequence of options that is tried on one piece."""


def all_plans(bound: BoundRulebook, state: Resolved, length: int) -> Iterator[Attempt]:
    """Every way to bring all groups to a clean end at one length; later groups see what became of their peers."""

    def groups(rest: tuple[BoundGroup, ...], looked: dict[str, list[Looked]]) -> Iterator[Attempt]:
        if not rest:
            yield Attempt(length, prefill(bound, state, length), looked)
            return
        for pieces in _pieces(bound, state, length, rest[0], looked):
            yield from groups(rest[1:], {**looked, rest[0].id: pieces})

    return groups(bound.groups, {})


def mending(bound: BoundRulebook, group: BoundGroup, around: Env, segment: Env) -> Iterator[tuple[Env, list[PlanStep]]]:
    """Every sequence of options, each of which may run, after which no check of a piece fails."""

    def more(after: Env, steps: list[PlanStep]) -> Iterator[tuple[Env, list[PlanStep]]]:
        now = {**around, **of_self(after)}
        failed = failing(group, now)
        if not failed:
            yield after, steps
        elif len(steps) < MOST_STEPS:
            for price, option in options_of(group, failed, now):
                then = run(group, option, now, bound.rulebook.engine_owned)
                if then is not None:
                    yield from more(then, [*steps, step(group, -1, option, price)])

    return more(segment, [])


def _pieces(
    bound: BoundRulebook, state: Resolved, length: int, group: BoundGroup, looked: dict[str, list[Looked]]
) -> Iterator[list[Looked]]:
    chain = pieces_at(group, state, length)

    def pieces(done: list[Looked]) -> Iterator[list[Looked]]:
        if len(done) == len(chain):
            yield done
            return
        index, segment, share = chain[len(done)]
        around = surroundings(group, state, length, looked, share)
        env = {**around, **of_self(segment)}
        failed = failing(group, env)
        if not group.rules.mandatory:
            yield from pieces([*done, Looked(group, index, share, segment, env, failed, segment, failed, [])])
            return
        for after, steps in mending(bound, group, around, segment):
            yield from pieces([*done, Looked(group, index, share, segment, env, failed, after, (), steps)])

    return pieces([])
