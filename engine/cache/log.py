"""Writes down every step that a running manager takes: events of segments and calls of leases, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from threading import RLock, get_ident
from types import TracebackType
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Hold
from hitproof.engine.cache.slot import Slot
from hitproof.engine.event import EventContext, ImpossibleEventError
from hitproof.engine.lease import Lease
from hitproof.spec.facts import Value
from hitproof.spec.leasing import Leasing
from hitproof.spec.memory import Fence
from hitproof.spec.steplog import EventTaken, FaultDone, LeaseTaken, Restored, Seen, StepTaken

__all__ = ["StepLog"]


class StepLog:
    """Listens to one manager from its first step on; to be made before the manager is used by anybody.

    What it is told of it copies at once, so that a log can be read while the manager goes on. It holds every segment
    that it saw.

    Args:
        core: The manager's state.
        told: Gets each step, in the order in which they happened.
        unlocked: Called right before a step that is taken without the lock: there others may come in between.
    """

    def __init__(
        self, core: Core, told: Callable[[StepTaken], None], unlocked: Callable[[], None] = lambda: None
    ) -> None:
        self._core, self._told, self._unlocked = core, told, unlocked
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._leases = 0
        self.lock = _Turnstile()
        core.lock = self.lock  # type: ignore[assignment]
        core._table = _Fires(core._table, self)  # type: ignore[assignment]
        self._restore = core.restore
        core.restore = self._restored  # type: ignore[method-assign]
        core.take_lease = self._lease

    def used(self, hold: Hold) -> None:
        """The device begins to read what a hold leads to."""
        self._noted(hold._lease._lease, "use")

    def completed(self, hold: Hold) -> None:
        """The device has read what a hold leads to."""
        self._noted(hold._lease._lease, "complete")

    def faulted(self, slot: Slot, change: Callable[[Any], None]) -> None:
        """Change a segment's facts as no rule does, and tell that it was a fault."""
        before = slot.facts.as_dict()
        change(slot.facts)
        self._told(FaultDone(self._seen(slot.facts, before)))

    def facts_now(self) -> dict[int, Mapping[str, Value]]:
        """Facts of every segment that there is, by its number."""
        slots = [slot for group in self._core.slots.values() for slot in group]
        return {self._number(slot.facts): slot.facts.as_dict() for slot in slots}

    def fire(self, fires: Callable[[], bool], segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen, and tell it."""
        locked = self._ready()
        before = segment.as_dict()
        donor = None if context.donor is None else context.donor.as_dict()
        runtime, kernel = context.runtime.as_dict(), context.kernel.as_dict()
        happened = fires()
        step = EventTaken(
            self._seen(segment, before),
            trigger,
            happened,
            dict(context.arguments),  # type: ignore[arg-type]
            runtime,
            kernel,
            donor,
            context.sole,
            locked,
        )
        self._told(step)
        return happened

    def call(self, lease: _Logged, does: Any, run: Callable[[], bool]) -> bool:
        """Let a lease do something, and tell it."""
        locked = self._ready()
        before = [segment.as_dict() for segment in lease.segments]
        try:
            answer = run()
        finally:
            seen = tuple(self._seen(one, old) for one, old in zip(lease.segments, before, strict=True))
            reading = lease.reading()
            told = run_answer(does, locals().get("answer"))
            self._told(
                LeaseTaken(lease.number, does, seen, lease.remembers(), lease.steps, told, reading, locked)
            )
        return answer

    def _lease(self, segments: Iterable[Any], leasing: Leasing) -> Lease:
        locked = self._ready()
        held = tuple({id(segment): segment for segment in segments}.values())
        before = [segment.as_dict() for segment in held]
        lease = _Logged.take(held, leasing)
        self._leases += 1
        lease.log, lease.number = self, self._leases
        seen = tuple(self._seen(one, old) for one, old in zip(held, before, strict=True))
        self._told(LeaseTaken(lease.number, "take", seen, lease.remembers(), locked=locked))
        return lease

    def _noted(self, lease: Any, does: Any) -> None:
        with self._core.lock:
            self.call(lease, does, lambda: True)

    def _restored(self, slot: Slot, values: Mapping[str, Value]) -> None:
        locked = self._ready()
        before = slot.facts.as_dict()
        self._restore(slot, values)
        self._told(Restored(self._seen(slot.facts, before), locked))

    def _ready(self) -> bool:
        locked = self.lock.mine
        if not locked:
            self._unlocked()
        return locked

    def _seen(self, segment: Any, before: Mapping[str, Value]) -> Seen:
        return Seen(self._number(segment), segment.group, before, segment.as_dict())

    def _number(self, segment: Any) -> int:
        known = self._numbers.get(id(segment))
        if known is None:
            known = self._numbers[id(segment)] = len(self._numbers) + 1, segment
        return known[0]
