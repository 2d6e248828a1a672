"""The life of one hit after its decision: counters that only fall, and the steps that whatever is reported leads to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from hitproof.spec.condition import Node
from hitproof.spec.errors import Position
from hitproof.spec.facts import Fact, declare_fact
from hitproof.spec.rulefile import Onward, Report

__all__ = [
    "Counter",
    "ENDS",
    "MEASURES",
    "OF_A_REPAIR",
    "ProcessStep",
    "REPORTS",
    "RecoveryProcess",
    "WAYS",
]

REPORTS: tuple[str, ...] = get_args(Report)
"""What can be reported. A runner reports `done`, `failed`, `source_lost` or `transfer_failed` of one repair. The engine
reports `failed` too where what the repair left cannot be mended; `moved` where the lease was not confirmed; `ready`
where nothing fails and it was; `nothing` where a new decision reuses nothing.
"""

OF_A_REPAIR = ("done", "failed", "source_lost", "transfer_failed")
"""The reports that follow a repair which was run; only they can bar its level or quarantine its copy."""

ENDS = ("use", "recompute", "refuse")
"""What ends a recovery; the other ways on are `go_on`, `retry` and `decide`."""

WAYS: tuple[str, ...] = get_args(Onward)
"""All ways on, the ends included."""

MEASURES: Mapping[str, Fact] = {
    "failing": declare_fact("event.failing", "count", {}, because="checks that fail at the length decided"),
    "levels": declare_fact("event.levels", "count", {}, because="recovery levels open, over all segments"),
    "recomputable": declare_fact("event.recomputable", "bool", {}, because="all may be computed from token 0 on"),
}
"""What the engine counts itself and never asks of a runner; steps read them as `event.failing` and so on."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A count that weighs in the measure of the process.

    Args:
        fact: Its name and domain; no value below 0.
        start: Its value after the first decision.
        measure: The measure that it repeats, where its start is one.
    """

    id: str
    fact: Fact
    start: Node
    measure: str | None
    because: str
    where: Position


@dataclass(frozen=True, slots=True)
class ProcessStep:
    """One step of the process.

    Args:
        on: The reports that it answers.
        when: Its guard, over the counters and measures as they were when it was reported.
        takes: Counters that are measured anew once the step's consequence has been carried out.
        sets: Counter to expression, over the counters before and the measures after.
        bars: The level of the option that ran is barred for its segment.
        quarantines: The copy that the repair wrote is set apart.
        then: What follows: `go_on`, `retry`, `decide`, or an end.
    """

    id: str
    on: tuple[str, ...]
    when: Node | None
    takes: tuple[str, ...]
    sets: Mapping[str, Node]
    bars: bool
    quarantines: bool
    then: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class RecoveryProcess:
    """Counters in the order in which they weigh, and steps in the order in which they are asked.

    The measure of a state is the tuple of its counters; a step that does not end must make it less, in the order of
    words in a dictionary.
    """

    counters: tuple[Counter, ...]
    steps: tuple[ProcessStep, ...]
    where: Position
