"""Writes down every step that a running manager takes: events of segments and calls of leases, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock, get_ident
from types import TracebackType
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Hold
from hitproof.engine.cache.slot import Slot
from hitproof.engine.event import EventContext
from hitproof.engine.lease import Lease
from hitproof.engine.observe.observed import Fires
from hitproof.spec.facts import Value
from hitproof.spec.leasing import Leasing
from hitproof.spec.memory import Fence
from hitproof.spec.steplog import Call, EventTaken, Facts, FaultDone, LeaseTaken, Restored, Seen, StepTaken

__all__ = ["LoggedLease", "StepLog", "Turnstile"]


class StepLog:
    """Listens to one manager from its first step on; to be made before anybody uses the manager.

    Facts are copied as they are told, so that a log can be read while the manager goes on.

    Args:
        core: The manager's state.
        told: Gets each step, in the order in which they happened.
        unlocked: Called right before a step that is taken without the lock: there others may come in between.
    """

    def __init__(
        self, core: Core, told: Callable[[StepTaken], object], unlocked: Callable[[], object] = lambda: None
    ) -> None:
        self._core, self.told, self._unlocked = core, told, unlocked
        self._numbers: dict[int, tuple[int, Any]] = {}
        """By identity of a segment's facts, which are kept, so that no two have the same."""
        self._leases = 0
        self._restore = core.restore
        self.lock = Turnstile()
        core.lock = self.lock
        core.table = _Logged(core.table, self)
        core.restore = self._restored  # type: ignore[method-assign]
        core.take_lease = self._lease

    def used(self, hold: Hold) -> None:
        """The device begins to read what a hold leads to."""
        self._still(hold, "use")

    def completed(self, hold: Hold) -> None:
        """The device has read what a hold leads to."""
        self._still(hold, "complete")

    def faulted(self, slot: Slot, change: Callable[[Any], object]) -> None:
        """Change a segment's facts as no rule does, and tell that it was a fault."""
        with self.lock:
            before = slot.facts.as_dict()
            change(slot.facts)
            self.told(FaultDone(self.seen(slot.facts, before)))

    def now(self) -> list[Seen]:
        """Every segment that there is, as it is."""
        with self._core.lock:
            slots = [slot for group in self._core.slots.values() for slot in group]
            return [self.seen(slot.facts, slot.facts.as_dict()) for slot in slots]

    def _still(self, hold: Hold, does: Call) -> None:
        lease = hold.lease
        if isinstance(lease, LoggedLease):
            with self._core.lock:
                lease.still(does)

    def fire(self, fires: Fires, segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen, and tell it."""
        locked = self.ready()
        before, arguments = segment.as_dict(), dict(context.arguments)
        donor = None if context.donor is None else context.donor.as_dict()
        runtime, kernel = context.runtime.as_dict(), context.kernel.as_dict()
        done = fires.fire(segment, trigger, context)
        seen = self.seen(segment, before)
        self.told(EventTaken(seen, trigger, done, arguments, runtime, kernel, donor, context.sole, locked))
        return done

    def ready(self) -> bool:
        """Whether the lock is held; where it is not, others may come in between here."""
        if not self.lock.mine:
            self._unlocked()
        return self.lock.mine

    def seen(self, segment: Any, before: Facts) -> Seen:
        """A segment before and after a step."""
        known = self._numbers.get(id(segment))
        if known is None:
            known = self._numbers[id(segment)] = len(self._numbers) + 1, segment
        return Seen(known[0], segment.group, before, segment.as_dict())

    def _lease(self, segments: Iterable[Any], leasing: Leasing) -> Lease:
        held = tuple({id(segment): segment for segment in segments}.values())
        self._leases += 1
        return LoggedLease.taken(self, self._leases, held, leasing)

    def _restored(self, slot: Slot, values: Mapping[str, Value]) -> None:
        locked = self.ready()
        before = slot.facts.as_dict()
        self._restore(slot, values)
        self.told(Restored(self.seen(slot.facts, before), locked))


class LoggedLease(Lease):
    """A lease that tells each of its calls."""

    __slots__ = ("_asked", "log", "number")

    log: StepLog
    number: int
    _asked: _Asked | None

    @classmethod
    def taken(cls, log: StepLog, number: int, segments: tuple[Any, ...], leasing: Leasing) -> LoggedLease:
        """Take a lease, and tell it."""
        locked, before = log.ready(), [segment.as_dict() for segment in segments]
        lease = cls.take(segments, leasing)
        lease.log, lease.number, lease._asked = log, number, None
        lease.tell("take", before, locked)
        return lease

    def confirm(self) -> bool:
        """Whether everything still is as it was noted."""
        locked, before = self.log.ready(), self._facts()
        answer = super().confirm()
        self.tell("confirm", before, locked, answer=answer)
        return answer

    def begin_release(self, fence: Fence | None = None) -> bool:
        """Release, up to a step that must wait."""
        locked, before = self.log.ready(), self._facts()
        if fence is not None and self._asked is None:
            self._asked = _Asked(fence)
        if self._asked is not None:
            self._asked.answers.clear()
        over = super().begin_release(None if fence is None else self._asked)
        reading = False if self._asked is None else self._asked.reading()
        self.tell("release", before, locked, reading=reading)
        return over

    def tell(self, does: Call, before: list[Facts], locked: bool, **more: Any) -> None:
        """Write a call down."""
        seen = tuple(self.log.seen(one, old) for one, old in zip(self.segments, before, strict=True))
        noted = tuple({fact: values[place] for fact, values in self._seen.items()} for place in range(len(seen)))
        done = -1 if self._held else self._done
        self.log.told(LeaseTaken(self.number, does, seen, noted, done, locked=locked, **more))

    def still(self, does: Call) -> None:
        """Write down that the device does something, which changes no segment."""
        self.tell(does, self._facts(), locked=True)

    def _facts(self) -> list[Facts]:
        return [segment.as_dict() for segment in self.segments]


class _Asked:
    """A fence that remembers what it answered during a call."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence
        self.answers: list[bool] = []

    def done(self) -> bool:
        """Whether the device has read."""
        self.answers.append(self._fence.done())
        return self.answers[-1]

    def wait(self) -> None:
        """Wait until the device has read."""
        self._fence.wait()
        self.answers.append(True)

    def reading(self) -> bool:
        """Whether the device was reading when its lease asked; one that did not ask is answered for."""
        return not (self.answers[-1] if self.answers else self._fence.done())


class _Logged:
    """The form machine's table, with a log."""

    def __init__(self, fires: Fires, log: StepLog) -> None:
        self._fires, self._log = fires, log

    def fire(self, segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen, and tell it."""
        return self._log.fire(self._fires, segment, trigger, context)


class Turnstile:
    """A lock that may be taken again by whoever has it, and that knows who has it."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._owner, self._depth = 0, 0

    @property
    def mine(self) -> bool:
        """Whether the calling thread has it."""
        return self._owner == get_ident()

    def __enter__(self) -> bool:
        self._lock.acquire()
        self._owner = get_ident()
        self._depth += 1
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
        self._lock.release()
