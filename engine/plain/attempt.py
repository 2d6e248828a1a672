"""What one length would take: all pieces of all groups, each as it was found and as it is after its repairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hitproof.engine.plain.pieces import needed_span
from hitproof.engine.plain.repairs import Env
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup, BoundOption, BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import PlanStep
from hitproof.spec.price import UNKNOWN_PRICE, microseconds, ticks
from hitproof.spec.rulebook import LEVELS

__all__ = [
    "Attempt",
    "Looked",
    "can_compute",
    "in_order",
    "peers_as_found",
    "prefill",
    "step",
    "sum_of",
    "surroundings",
]


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

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the options."""
        return tuple(step.option for step in self.steps)


@dataclass
class Attempt:
    """All pieces of all groups at one length, peers first; prices are in ticks."""

    length: int
    prefill: int
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
    def cost(self) -> int:
        """Price of all repairs; what is joint is paid once, at its dearest."""
        return sum_of(self.steps)

    @property
    def total(self) -> int:
        """Price of the repairs and of the prefill behind the length."""
        return self.prefill + self.cost

    @property
    def level(self) -> int:
        """The severest level of a repair, -1 without any."""
        return max((LEVELS.index(step.level) for step in self.steps), default=-1)

    @property
    def ids(self) -> tuple[tuple[str, ...], ...]:
        """Ids of the options, piece by piece."""
        return tuple(one.ids for one in self.mandatory)


def sum_of(steps: Sequence[PlanStep]) -> int:
    """Price of several repairs in ticks; what is joint is paid once, at its dearest."""
    joint = {step.joint: 0 for step in steps if step.joint is not None}
    alone = 0
    for step in steps:
        if step.joint is None:
            alone += ticks(step.cost_us)
        else:
            joint[step.joint] = max(ticks(step.cost_us), joint[step.joint])
    return alone + sum(joint.values())


def in_order(
    bound: BoundRulebook, price: int, length: int, level: int, steps: int, ids: tuple[object, ...]
) -> tuple[object, ...]:
    """What sorts plans by the order that the rulebook declares, the best first."""
    parts: dict[str, object] = {
        "price": price,
        "longer_length": -length,
        "lower_level": level,
        "fewer_steps": steps,
        "option_id": ids,
    }
    return tuple(parts[name] for name in bound.rulebook.choosing.order)


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


def _peers(group: BoundGroup, length: int, looked: Mapping[str, Sequence[Looked]], share: tuple[int, int]) -> Env:
    """Each role's segment after its repair, and whether it is ready."""
    env: Env = {}
    for role, peer in _peers_for(group, length, looked, share):
        env[f"{role}.ready"] = peer is not None and not peer.left
        env.update({f"{role}.{fact}": value for fact, value in peer.after.items()} if peer else {})
    return env


def peers_as_found(told: Attempt, one: Looked) -> Env:
    """The facts of each role's segment before any repair; unknown where it has none."""
    found = _peers_for(one.group, told.length, told.looked, one.share)
    return {f"{role}.{fact}": peer.before.get(fact) for role, peer in found if peer for fact in peer.group.facts}


def _peers_for(
    group: BoundGroup, length: int, looked: Mapping[str, Sequence[Looked]], share: tuple[int, int]
) -> Iterator[tuple[str, Looked | None]]:
    """Each role's piece: the only one, or the first that answers for all that this piece needs."""
    first, to = needed_span(group, length)
    low, high = max(share[0], first), min(share[1], to)
    for role, peer in group.peers.items():
        pieces = looked[peer]
        fitting = [one for one in pieces if len(pieces) == 1 or (one.share[0] <= low and high <= one.share[1])]
        yield role, fitting[0] if fitting else None


def prefill(bound: BoundRulebook, state: Resolved, length: int) -> int:
    """Price of computing everything behind a length, in ticks."""
    env = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime."), "length": length}
    return ticks(interpret(bound.rulebook.prefill.cost, env))


def can_compute(bound: BoundRulebook, state: Resolved) -> bool:
    """Whether the request brings what every group is computed from, from token 0 on."""
    request = state.request.as_dict("request.")
    return all(one.recompute and interpret(one.recompute.when, request) is True for one in bound.groups)


def step(group: BoundGroup, index: int, option: BoundOption, price: int) -> PlanStep:
    """A step of the plan, its price told in microseconds; an unknown one is None there."""
    told = None if price >= UNKNOWN_PRICE else microseconds(price)
    return PlanStep(group.id, index, option.id, option.repair, option.level, option.joint, told)
