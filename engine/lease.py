"""Leases: what a decision rests on is pinned and remembered, so that it is still there when it is used."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any

from hitproof.spec.errors import InternalError

__all__ = ["Lease"]


class Lease:
    """A shared hold on segments, from the check to the end of the use (article 6.3).

    Pins keep others away: events that move, free or overwrite bytes want none. Epochs tell of what happened
    nevertheless. A lease and the form machine deal in the same pins; whoever shares segments between threads
    holds one lock around each call of either.
    """

    __slots__ = ("_held", "_seen", "_segments")

    def __init__(self, segments: tuple[Any, ...], seen: tuple[tuple[int, str], ...]) -> None:
        self._segments, self._seen = segments, seen
        self._held = True

    @classmethod
    def take(cls, segments: Iterable[Any]) -> Lease:
        """Pin segments, then read their epochs and forms; all are pinned or none.

        Args:
            segments: All that the decision reads, peers too; one that is named twice is pinned once.

        Raises:
            InternalError: The pins of a segment are not known.
        """
        chosen = tuple({id(segment): segment for segment in segments}.values())
        for segment in chosen:
            _pins_of(segment)
        for segment in chosen:
            segment.pins += 1
        return cls(chosen, _read(chosen))

    @property
    def held(self) -> bool:
        """Whether the lease has not been released yet."""
        return self._held

    @property
    def segments(self) -> tuple[Any, ...]:
        """The segments that it pins, each once."""
        return self._segments

    def confirm(self) -> bool:
        """Whether every segment still has the epoch and the form that were read; changes nothing.

        Raises:
            InternalError: The lease was released, so nothing stands behind an answer.
        """
        self._must_be_held()
        return _read(self._segments) == self._seen

    def rebase(self) -> None:
        """Read epochs and forms anew, after the holder's own repair has been published.

        Raises:
            InternalError: The lease was released.
        """
        self._must_be_held()
        self._seen = _read(self._segments)

    def release(self) -> None:
        """Give the pins back; a second call does nothing.

        Raises:
            InternalError: Somebody else took a pin of this lease; the other pins are given back all the same.
        """
        if not self._held:
            return
        self._held = False
        robbed = None
        for segment in self._segments:
            if type(segment.pins) is int and segment.pins > 0:
                segment.pins -= 1
            else:
                robbed = segment
        if robbed is not None:
            raise InternalError(f"a segment of group '{robbed.group}' lost the pin of a lease")

    def check_integrity(self) -> None:
        """Prove the lease's own promise: while it is held, each of its segments has a pin.

        Raises:
            InternalError: One has none.
        """
        if self._held:
            for segment in self._segments:
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


def _pins_of(segment: Any) -> int:
    pins = segment.pins
    if type(pins) is not int or pins < 0:
        raise InternalError(f"the pins of a segment of group '{segment.group}' are {pins!r}, not a count")
    return pins


def _read(segments: tuple[Any, ...]) -> tuple[tuple[int, str], ...]:
    return tuple((segment.epoch, segment.form) for segment in segments)
