"""A log of what a running cache manager did to segments and leases, step by step, for the verifier to judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hitproof.spec.facts import Value

__all__ = ["Call", "EventTaken", "Facts", "FaultDone", "LeaseTaken", "Restored", "Seen", "StepTaken"]

Facts = Mapping[str, Value]

Call = Literal["take", "confirm", "use", "complete", "release"]
"""What a lease is asked to do, and what the device does by it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One segment, right before a step and right after it.

    Args:
        number: Which one; a slot keeps its number over all that it holds.
        group: Its group.
        before, after: All its facts.
    """

    number: int
    group: str
    before: Facts
    after: Facts


@dataclass(frozen=True, slots=True)
class EventTaken:
    """An event of the form machine was asked for.

    Args:
        segment: To which it happened, or not.
        event: Its id.
        happened: Whether it did.
        arguments, runtime, kernel, donor, sole: What it read beside the segment; see `engine.event`.
        locked: Whether the manager's lock was held by whoever asked.
    """

    segment: Seen
    event: str
    happened: bool
    arguments: Mapping[str, object]
    runtime: Facts
    kernel: Facts
    donor: Facts | None
    sole: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """A segment's facts were stated as a tier told them, after a start."""

    segment: Seen
    locked: bool


@dataclass(frozen=True, slots=True)
class LeaseTaken:
    """A call of a lease.

    Args:
        lease: Which one.
        does: The call.
        segments: All that it holds.
        noted: For each, what the lease remembers after the call: facts that a confirmation compares.
        done: Steps of the release that have been carried out after the call; -1 before the release has begun.
        answer: What a confirmation said.
        reading: Whether the device was reading when the call ended; None where the lease does not know.
        locked: Whether the manager's lock was held.
    """

    lease: int
    does: Call
    segments: tuple[Seen, ...]
    noted: tuple[Facts, ...]
    done: int = -1
    answer: bool | None = None
    reading: bool | None = None
    locked: bool = True


@dataclass(frozen=True, slots=True)
class FaultDone:
    """Something outside of the rules changed a segment, on purpose: a pin was lost, or a page table entry changed."""

    segment: Seen


StepTaken = EventTaken | Restored | LeaseTaken | FaultDone
