"""Rules about the system's load: admission, execution, order of waiting, demotion, retention, and policies of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.spec.condition import Node
from hitproof.spec.decision import Execution
from hitproof.spec.errors import Position

__all__ = [
    "AdmissionRule",
    "DemotionRule",
    "ExecutionRule",
    "Policy",
    "PolicyRules",
    "Pool",
    "RetentionRule",
    "Waiting",
]


@dataclass(frozen=True, slots=True)
class Pool:
    """Something of which there is so much and no more (article 6.1).

    Args:
        capacity, used, reserved: Run-time facts: how much there is, is taken, and is promised to requests under way.
        demand: What a request with this plan will take in all, and what is therefore promised to it.
    """

    id: str
    capacity: str
    used: str
    reserved: str
    demand: Node
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class AdmissionRule:
    """What a plan must keep to be admitted.

    Args:
        otherwise: `clamp`: a plan that reuses less is looked for. `defer`: the request waits where no other plan is
            admitted. `refuse`: it is turned away where no other plan is admitted.
    """

    id: str
    require: Node
    otherwise: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class ExecutionRule:
    """When a plan's repairs run beside other requests' work; the first rule that surely holds decides."""

    id: str
    when: Node
    then: Execution
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class Waiting:
    """The order of waiting requests: those past `aged` first, by arrival; then by `rank`, least first."""

    rank: Node
    aged: Node
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class DemotionRule:
    """Which segments leave the device before they must, per object; the least `rank` goes first."""

    id: str
    when: Mapping[str, Node]
    rank: Mapping[str, Node]
    to: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Which boundaries keep the state that belongs to one length: windows, compressor and recurrent states.

    Args:
        keep: Condition over `boundary`, `last` and `period`, all in blocks.
        follows: `block`: what is kept moves through the tiers with its block. `device`: it is lost with it.
    """

    id: str
    keep: Node
    follows: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class Policy:
    """A named selection of rules; deciding without one only validates and chooses.

    Args:
        minimise: Price of a plan; None is recovery and prefill, one after the other.
        repairs: Repairs that it may run; None is all.
        admission, execution, demotion: Ids of the rules that take part, in their order.
        waiting: `ranked` by the rulebook's `waiting:`, or by `arrival`.
        retention: Id of the retention rule.
    """

    id: str
    minimise: Node | None
    repairs: frozenset[str] | None
    admission: tuple[str, ...]
    execution: tuple[str, ...]
    waiting: str
    demotion: tuple[str, ...]
    retention: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """All of it."""

    pools: Mapping[str, Pool]
    admission: Mapping[str, AdmissionRule]
    execution: Mapping[str, ExecutionRule]
    waiting: Waiting | None
    demotion: Mapping[str, DemotionRule]
    retention: Mapping[str, RetentionRule]
    policies: Mapping[str, Policy]
