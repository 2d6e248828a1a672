"""What a recovery ends with: always a value, never an exception for a hit that was refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hitproof.engine.lease import Lease
from hitproof.engine.outcome import Outcome
from hitproof.spec.decision import Decision, PlanStep, Verdict

__all__ = ["Recovered", "StepTaken"]


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One step of the process.

    Args:
        step: Its id in the rulebook.
        report: What it answered.
        repair: The repair that the report was about, None where none ran.
        counters: The counters after it, in the order in which they weigh.
        seconds: Wall time that the turn took; two runs that differ in it alone are equal.
    """

    step: str
    report: str
    repair: PlanStep | None
    counters: Mapping[str, int]
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The end of a recovery.

    Args:
        verdict: As of a decision, after what really ran; `recompute` and `refuse` where it was given up.
        usable: Tokens that may be reused; 0 unless the verdict is `reuse`, `repair` or `rebuild`.
        decision: The last decision.
        steps: The steps taken.
        counters: The counters at the end; empty where the first decision reused nothing.
        copies: What was mended, by group and index of the piece (-1 where nothing was held): private segments, for the
            caller to publish all together. Empty unless the verdict is `repair` or `rebuild`.
        lease: Held on all that was looked up, for the caller to release after the last read; None unless tokens may be
            reused. `rebase` it once the copies are published.
        quarantined: Repairs whose copies are not to be trusted, and not to be given out again.
        barred: Recovery levels that are not tried any more, by group and index of the piece.
        outlook: What the usable length reads; None where none is usable.
        halted: Which step, or which report without a step, broke the promise that a process ends; None for a rulebook
            whose claim `terminates` holds.
    """

    verdict: Verdict
    usable: int
    decision: Decision
    steps: tuple[StepTaken, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[tuple[str, int], Any] = field(default_factory=dict)
    lease: Lease | None = None
    quarantined: tuple[PlanStep, ...] = ()
    barred: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    halted: str | None = None
    outlook: Outcome | None = field(default=None, compare=False)
