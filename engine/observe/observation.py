"""One call from a bound rulebook to everything that observes it, in the order in which it must be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, time

from hitproof.engine.observe.counters import Counters
from hitproof.engine.observe.events import EventLog, Limiter
from hitproof.engine.observe.observer import Observer, Observers
from hitproof.engine.observe.redact import Redactor
from hitproof.engine.observe.ring import Ring
from hitproof.engine.observe.thresholds import Thresholds
from hitproof.spec.bound import BoundRulebook

__all__ = ["Observation", "observe"]


@dataclass(frozen=True, slots=True)
class Observation:
    """What observes one engine.

    Args:
        observer: To be told; hand it to `ObservedEngine`, `ObservedTable` and `Recovery`.
        counters: What is counted.
        thresholds: How the rulebook's thresholds stand.
        ring: The last decisions.
        log: Structured log events.
    """

    observer: Observers
    counters: Counters
    thresholds: Thresholds
    ring: Ring
    log: EventLog


def observe(
    bound: BoundRulebook,
    *others: Observer,
    ring: int = 256,
    events_per_second: float = 10.0,
    clock: Callable[[], float] = monotonic,
    wall: Callable[[], float] = time,
) -> Observation:
    """Observe an engine of this rulebook.

    Args:
        bound: The rulebook, bound to a model.
        others: Further observers, told last, such as a `SpanObserver`.
        ring: Decisions that are kept.
        events_per_second: Log events of one kind a second, in the long run.
        clock: Seconds from some fixed moment on, for windows and limits.
        wall: Unix time in seconds, for the ring.

    Raises:
        UsageError: The size of the ring is out of bounds.
    """
    counters, redactor = Counters(bound), Redactor(bound.rulebook)
    log = EventLog(bound, redactor, Limiter(events_per_second, clock=clock))
    thresholds = Thresholds(counters, log.threshold, clock)
    kept = Ring(redactor, ring, wall)
    # Thresholds read the counters, which must have counted before.
    return Observation(Observers(counters, thresholds, kept, log, *others), counters, thresholds, kept, log)
