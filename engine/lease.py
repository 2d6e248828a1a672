"""Leases: what a decision rests on is pinned and remembered, so that it is still there when it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from hitproof.spec.errors import InternalError
from hitproof.spec.leasing import COMPARED, Leasing
from hitproof.spec.memory import Fence

__all__ = ["Lease"]


class Lease:
    """A shared hold on segments, from the check to the end of the use (article 6.3), as the rulebook's `leasing` says.

    Pins keep others away: events that move, free or overwrite bytes want none. Epochs, forms and the generation under
    which a block is mapped tell of what happened nevertheless. Which of this is done, and in which order, is the
    rulebook's to say; what it leaves out is not done.

    A segment is any object with `group`, `pins`, and the facts that are compared. A lease and the form machine deal in
    the same pins; whoever shares segments between threads holds one lock around each call of either, and waits for a
    fence outside of it: `begin_release` does not wait.
    """

    __slots__ = ("_compared", "_done", "_fence", "_held", "_leasing", "_pinned", "_seen", "_segments")

    def __init__(self, segments: tuple[Any, ...], leasing: Leasing) -> None:
        self._segments, self._leasing = segments, leasing
        self._compared = tuple(COMPARED[step.does] for step in leasing.confirm)
        self._seen: Mapping[str, tuple[Any, ...]] = {}
        self._pinned: tuple[Any, ...] = ()
        self._held, self._done = True, 0
        self._fence: Fence | None = None

    @classmethod
    def take(cls, segments: Iterable[Any], leasing: Leasing) -> Self:
        """Carry out the steps of the phase `take`; all segments are pinned or none.

        Args:
            segments: All that the decision reads, peers too; one that is named twice is pinned once.
            leasing: What the rulebook declares.

        Raises:
            InternalError: The pins of a segment are not known.
        """
        lease = cls(tuple({id(segment): segment for segment in segments}.values()), leasing)
        for step in leasing.take:
            if step.does == "pin":
                lease._pin()
            else:
                lease._note()
        return lease

    @property
    def held(self) -> bool:
        """Whether the release has not begun yet."""
        return self._held

    @property
    def released(self) -> bool:
        """Whether every step of the release has been carried out."""
        return not self._held and self._done == len(self._leasing.release)

    @property
    def segments(self) -> tuple[Any, ...]:
        """The segments that it holds, each once."""
        return self._segments

    def confirm(self) -> bool:
        """Whether every segment still is, in all that is compared, what was noted; changes nothing.

        Raises:
            InternalError: The release has begun, so nothing stands behind an answer.
        """
        self._must_be_held()
        return all(self._read(fact) == self._seen[fact] for fact in self._compared)

    def rebase(self) -> None:
        """Note anew, after the holder's own repair has been published.

        Raises:
            InternalError: The release has begun.
        """
        self._must_be_held()
        self._note()

    def begin_release(self, fence: Fence | None = None) -> bool:
        """Carry out the steps of the release up to one that must wait; called again, go on from there.

        Args:
            fence: Done once the device has completed the last read; None where nothing is under way. The first call
                says so for all later ones.

        Returns:
            Whether all steps have been carried out.

        Raises:
            InternalError: A later call names another fence. Or somebody else took a pin of this lease; the other pins
                are given back all the same.
        """
        return self._go_on(fence, wait=False)

    def release(self, fence: Fence | None = None) -> None:
        """Carry out all steps of the release that are left, and wait where they must; a second call does nothing.

        Args:
            fence: As for `begin_release`.

        Raises:
            InternalError: As for `begin_release`.
        """
        self._go_on(fence, wait=True)

    def check_integrity(self) -> None:
        """Prove the lease's own promise: from its step `pin` to its step `unpin` each of its segments has a pin.

        Raises:
            InternalError: One has none.
        """
        for segment in self._pinned:
            if _pins_of(segment) < 1:
                raise InternalError(f"a leased segment of group '{segment.group}' has no pin")

    def __enter__(self) -> Lease:
        self._must_be_held()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _must_be_held(self) -> None:
        if not self._held:
            raise InternalError("a lease is used after its release")

    def _read(self, fact: str) -> tuple[Any, ...]:
        return tuple([getattr(segment, fact) for segment in self._segments])

    def _note(self) -> None:
        self._seen = {fact: self._read(fact) for fact in self._compared}

    def _pin(self) -> None:
        for segment in self._segments:
            _pins_of(segment)
        for segment in self._segments:
            segment.pins += 1
        self._pinned = self._segments

    def _unpin(self) -> None:
        """Give back the pins that were added, and no others."""
        pinned, self._pinned = self._pinned, ()
        robbed = None
        for segment in pinned:
            if type(segment.pins) is int and segment.pins > 0:
                segment.pins -= 1
            else:
                robbed = segment
        if robbed is not None:
            raise InternalError(f"a segment of group '{robbed.group}' lost the pin of a lease")

    def _go_on(self, fence: Fence | None, *, wait: bool) -> bool:
        if self._held:
            self._held, self._fence = False, fence
        elif fence is not None and fence is not self._fence:
            raise InternalError("a lease that is being released waits for another fence")
        steps = self._leasing.release
        while self._done < len(steps):
            if steps[self._done].does == "unpin":
                # Counted first: a step that fails is not carried out twice.
                self._done += 1
                self._unpin()
                continue
            if self._fence is not None and not self._fence.done():
                if not wait:
                    return False
                self._fence.wait()
            self._done += 1
        return True


def _pins_of(segment: Any) -> int:
    pins = segment.pins
    if type(pins) is not int or pins < 0:
        raise InternalError(f"the pins of a segment of group '{segment.group}' are {pins!r}, not a count")
    return pins
