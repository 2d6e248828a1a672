"""What the engine answers: a verdict with lengths, plan, flags and reasons; always a value, never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hitproof.spec.facts import Value

__all__ = ["Decision", "Execution", "PlanStep", "Reason", "SEVERITY", "Verdict"]

Verdict = Literal["miss", "reuse", "repair", "rebuild", "recompute", "defer", "refuse"]
Execution = Literal["synchronous", "asynchronous"]
SEVERITY = {"in_place": "repair", "intra_layer": "rebuild", "full_recompute": "recompute"}
"""The verdict of a plan by its severest recovery level (article 4.3)."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One repair of the plan, in the order in which the repairs run.

    Args:
        group: Group id.
        segment: Index of the segment within the group, in token order.
        option: Recovery option's id.
        repair: Repair's name.
        level: Recovery level.
        joint: Name of the joint repair that it is part of, else None; a joint repair is paid once, at its dearest.
        cost_us: Price in microseconds, None where unknown.
    """

    group: str
    segment: int
    option: str
    repair: str
    level: str
    joint: str | None
    cost_us: float | None


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that did not hold, with what it read: a check at the longest logical length, or one of admission.

    Args:
        rule: `group/check`, or `admission/rule`.
        layer: Layer of the check; `admission` else.
        conjunct: Text of the first part that was not surely true.
        values: Facts which that part read; None is unknown.
        because: The rule's own sentence.
        place: File, line and column of the rule.
    """

    rule: str
    layer: str
    conjunct: str
    values: Mapping[str, Value]
    because: str
    place: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one request.

    Args:
        verdict: `miss`: nothing committed matches. `reuse`: clean. `repair`, `rebuild`: the severest level used.
            `recompute`: state matched, but nothing is reused. `defer`, `refuse`: not now; not at all.
        logical: Longest length, in tokens, at which identity matches in every group.
        usable: Tokens that may be reused, after the plan.
        plan: Repairs to run first.
        cost_us: Price of the plan's repairs.
        total_us: The same with the prefill of what is not reused.
        failed: `group/check` ids that did not hold at the longest logical length.
        reasons: The same with values, where the engine was asked to explain.
        dispositions: Group to what becomes of its entry: keep, purge or quarantine.
        flags: `eager`, `copy_on_write`.
        digest: Digest of the rulebook that decided; empty where no explanation was asked for.
        execution: Whether the plan's repairs run on the request's hot path or beside other work.
        admission: Rules of admission that the plan which was wanted broke, with values; empty without a policy.
        promised: What the admitted request must be promised of each pool; empty without a policy.
    """

    verdict: Verdict
    logical: int
    usable: int
    plan: tuple[PlanStep, ...] = ()
    cost_us: float = 0.0
    total_us: float = 0.0
    failed: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    dispositions: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    digest: str = ""
    execution: Execution = "synchronous"
    admission: tuple[Reason, ...] = ()
    promised: Mapping[str, int] = field(default_factory=dict)

    @property
    def clamped(self) -> bool:
        """True where fewer tokens are reused than matched."""
        return self.usable < self.logical
