"""What one length would take: every group judged and mended, peers first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hitproof.engine.plain.pieces import needed_span, pieces_at
from hitproof.engine.plain.repairs import UNPRICED, Env, failing, of_self, options_of, run
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import PlanStep

__all__ = ["Attempt", "Looked", "attempt", "prefill", "step", "surroundings"]


@dataclass
class Looked:
    """One piece at one length; `index` is -1 where nothing is held.

    Args:
        before, env, failed: Its facts, all that its rules read, and the checks that failed at first.
        after, left, steps: Its facts after the repairs, the checks that fail still, and the repairs.
    """

    group: BoundGroup
    index: int
    share: tuple[int, int]
    before: Env
    env: Env
    failed: tuple[str, ...]
    after: Env
    left: tuple[str, ...]
    steps: list[PlanStep]


@dataclass
class Attempt:
    """All pieces of all groups at one length, peers first."""

    length: int
    prefill: float
    looked: dict[str, list[Looked]]

    @property
    def mandatory(self) -> Iterator[Looked]:
        """Pieces that a length needs, in the order of the groups."""
        return (one for pieces in self.looked.values() for one in pieces if one.group.rules.mandatory)

    @property
    def clean(self) -> bool:
        """No check fails any more."""
        return not any(one.left for one in self.mandatory)

    @property
    def matches(self) -> bool:
        """Identity holds in every group, before any repair."""
        return not any(
            check.layer == "identity" and check.id in one.failed for one in self.mandatory for check in one.group.checks
        )

    @property
    def steps(self) -> list[PlanStep]:
        """The repairs."""
        return [step for one in self.mandatory for step in one.steps]

    @property
    def cost(self) -> float:
        """Microseconds of all repairs; what is joint is paid once, at its dearest."""
        joint: dict[str, float] = {}
        alone = 0.0
        for step in self.steps:
            price = UNPRICED if step.cost_us is None else step.cost_us
            if step.joint is None:
                alone += price
            else:
                joint[step.joint] = max(price, joint.get(step.joint, 0.0))
        return alone + sum(joint.values())

    @property
    def total(self) -> float:
        """Microseconds of the repairs and of the prefill behind the length."""
        return self.prefill + self.cost


def attempt(bound: BoundRulebook, state: Resolved, length: int) -> Attempt:
    """Judge and mend every group at one length, each after its peers."""
    looked: dict[str, list[Looked]] = {}
    for group in bound.groups:
        looked[group.id] = [
            _look(bound, group, surroundings(group, state, length, looked, share), index, segment, share)
            for index, segment, share in pieces_at(group, state, length)
        ]
    return Attempt(length, prefill(bound, state, length), looked)


def surroundings(
    group: BoundGroup, state: Resolved, length: int, looked: Mapping[str, Sequence[Looked]], share: tuple[int, int]
) -> Env:
    """All that the rules of a piece may read beside the piece itself; its peers as they are after their repairs."""
    return {
        **state.request.as_dict("request."),
        **state.runtime.as_dict("runtime."),
        **state.kernels[group.id].as_dict("kernel."),
        "length": length,
        "share.first": share[0],
        "share.to": share[1],
        **_peers(group, length, looked, share),
    }


def _look(
    bound: BoundRulebook, group: BoundGroup, around: Env, index: int, segment: Env, share: tuple[int, int]
) -> Looked:
    env = {**around, **of_self(segment)}
    failed = failing(group, env)
    result = Looked(group, index, share, segment, env, failed, segment, failed, [])
    while result.left and group.rules.mandatory:
        now = {**around, **of_self(result.after)}
        options = options_of(group, result.left, now)
        if not options:
            break
        price, option = options[0]
        after = run(group, option, now, bound.rulebook.engine_owned)
        if after is None:
            break
        left = failing(group, {**around, **of_self(after)})
        if not set(left) < set(result.left):
            break
        result.after, result.left = after, left
        result.steps.append(step(group, index, option, price))
    if len(result.steps) > 1 and not result.left:
        _drop_vain_steps(bound, group, result)
    return result


def _drop_vain_steps(bound: BoundRulebook, group: BoundGroup, done: Looked) -> None:
    """Where the last repair makes the bytes anew and would have served at once, no dearer, the others were in vain."""
    last = next(option for option in group.options if option.id == done.steps[-1].option)
    alone = {option.id: price for price, option in options_of(group, done.failed, done.env)}
    if last.own_bytes or last.id not in alone:
        return
    after = run(group, last, done.env, bound.rulebook.engine_owned)
    paid = sum(UNPRICED if one.cost_us is None else one.cost_us for one in done.steps)
    if after is None or failing(group, {**done.env, **of_self(after)}) or alone[last.id] > paid:
        return
    done.after = after
    done.steps[:] = [step(group, done.index, last, alone[last.id])]


def _peers(group: BoundGroup, length: int, looked: Mapping[str, Sequence[Looked]], share: tuple[int, int]) -> Env:
    """Each role's segment after its repair: the only one, or the first that answers for all that this piece needs."""
    first, to = needed_span(group, length)
    low, high = max(share[0], first), min(share[1], to)
    env: Env = {}
    for role, peer in group.peers.items():
        pieces = looked[peer]
        fitting = [one for one in pieces if len(pieces) == 1 or (one.share[0] <= low and high <= one.share[1])]
        env[f"{role}.ready"] = bool(fitting) and not fitting[0].left
        for fact, value in fitting[0].after.items() if fitting else ():
            env[f"{role}.{fact}"] = value
    return env


def prefill(bound: BoundRulebook, state: Resolved, length: int) -> float:
    """Microseconds of computing everything behind a length; infinite where unknown."""
    env = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime."), "length": length}
    price = interpret(bound.rulebook.prefill.cost, env)
    return UNPRICED if price is None else float(price)


def step(group: BoundGroup, index: int, option: BoundOption, price: float) -> PlanStep:
    """A step of the plan; an unknown price is None there."""
    told = None if price == UNPRICED else price
    return PlanStep(group.id, index, option.id, option.repair, option.level, option.joint, told)
