"""What a request is answered: a hold on what it may read, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import Slot
from hitproof.engine.lease import Lease
from hitproof.spec.decision import Decision, Verdict
from hitproof.spec.memory import Extent, Fence

__all__ = ["Answer", "Guarded", "Held", "Hold"]


class Guarded:
    """A lease whose every step is taken under the manager's lock; `Recovery` takes it for a lease."""

    __slots__ = ("_core", "lease")

    def __init__(self, core: Core, slots: Iterable[Slot]) -> None:
        self._core = core
        with core.lock:
            self.lease: Lease = core.take_lease((slot.facts for slot in slots), core.leasing)

    def confirm(self) -> bool:
        """Whether everything is still as it was noted."""
        with self._core.lock:
            return self.lease.confirm()

    def begin_release(self, fence: Fence | None = None) -> bool:
        """Release, up to a step that must wait."""
        with self._core.lock:
            return self.lease.begin_release(fence)

    def release(self) -> None:
        """Release, where the device reads nothing."""
        self.begin_release()

    def check_integrity(self) -> None:
        """Every pin of the lease is there."""
        with self._core.lock:
            self.lease.check_integrity()


@dataclass(frozen=True, slots=True)
class Held:
    """One segment that a hold reads.

    Args:
        facts: Its facts when it was confirmed last; those of a view, cut to the prompt.
        extent: Its rows, as the published page table leads to them.
        slot: The manager's own record.
    """

    facts: Any
    extent: Extent
    slot: Slot


class Hold:
    """A lease on all that a request reuses, from the decision to the end of the device's last read.

    Attributes:
        prompt: The request.
        usable: Tokens that are reused; 0 where the prompt is computed from its first token on.
        approximate: Whether what is reused is not exact; then what is computed on top of it is not either.
        broken: Why a confirmation failed, as `layer/check`; empty while none has.
    """

    def __init__(
        self,
        core: Core,
        prompt: Prompt,
        usable: int,
        lease: Guarded,
        tables: Mapping[str, tuple[Held, ...]],
        *,
        approximate: bool,
        measures: Callable[[Hold], str],
        ended: Callable[[Hold], None],
    ) -> None:
        self._core, self._lease, self._tables = core, lease, dict(tables)
        self.prompt, self.usable, self.approximate = prompt, usable, approximate
        self.broken = ""
        self._measures, self._ended = measures, ended
        self._open = True

    @property
    def tables(self) -> Mapping[str, tuple[Held, ...]]:
        """What the attention kernels of each group read, in token order; groups without bytes are left out."""
        return self._tables

    def reads(self) -> Iterator[Held]:
        """All segments with bytes that it reads."""
        return (held for table in self._tables.values() for held in table)

    @property
    def lease(self) -> Lease:
        """What stands behind it."""
        return self._lease.lease

    @property
    def open(self) -> bool:
        """Whether the release has not begun."""
        return self._open

    def confirm(self) -> bool:
        """Asked right before the launch: whether what was checked is what would be read.

        Epochs, forms and mapping are compared as the rulebook's `leasing` says, and bytes are measured where the
        manager is told to. After False nothing may be read; release the hold and ask anew.
        """
        self._core.at("confirm")
        if not self._open:
            self.broken = "the hold was released"
        elif not self._lease.confirm():
            self.broken = "check_to_use/moved"
        else:
            self.broken = self._measures(self)
        return not self.broken

    def release(self, fence: Fence | None = None) -> None:
        """Give everything back once the device has completed its last read; a second call does nothing.

        Args:
            fence: Completion of the last read; None where it is complete.
        """
        if not self._open:
            return
        self._open = False
        self._core.at("release")
        if self._lease.begin_release(fence):
            self._ended(self)
        else:
            with self._core.lock:
                self._core.draining.append(self._drained)

    def check_integrity(self) -> None:
        """Every segment that is held has its pin."""
        self._lease.check_integrity()

    def _drained(self) -> bool:
        """Go on with a release that had to wait; whether it is complete."""
        if not self._lease.begin_release():
            return False
        self._ended(self)
        return True


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request.

    Args:
        verdict: As of a decision, after what really ran.
        usable: Tokens that are reused.
        decision: The last decision; None where none was made.
        hold: What the request may read and is promised; None for `defer` and `refuse`.
        why: Why it is deferred or refused, or why less is reused than matched, in plain words.
        coming: Leading tokens that another request is computing right now, where that is more than is usable.
    """

    verdict: Verdict
    usable: int
    decision: Decision | None
    hold: Hold | None
    why: str = ""
    coming: int = 0
