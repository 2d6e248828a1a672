"""A sliding window over counts that only grow."""

from __future__ import annotations

from collections import deque

__all__ = ["SLOTS", "Sliding"]

SLOTS = 64
"""A window is cut into at most so many slots; it slides by whole slots, so memory does not grow with traffic."""

Pair = tuple[int, int]


class Sliding:
    """What was added to two growing counts within the last `size` of some measure.

    The window holds the slot that is being filled and those before it that cover `size` with it; it slides by whole
    slots of a sixty-fourth of `size`, or of 1 where `size` is less than 64 decisions.

    Args:
        width: Width of a slot, in the measure's unit.
        slots: Slots in the window.
        counted: What both counts are already.
    """

    def __init__(self, width: float, slots: int, counted: Pair = (0, 0)) -> None:
        self._width, self._slots = width, slots
        self._last = counted
        self._begun: deque[tuple[int, Pair]] = deque()

    @classmethod
    def over_decisions(cls, size: int, counted: Pair = (0, 0)) -> Sliding:
        """The last `size` decisions, counted from 0."""
        width = -(-size // SLOTS)
        return cls(width, -(-size // width), counted)

    @classmethod
    def over_seconds(cls, size: int, counted: Pair = (0, 0)) -> Sliding:
        """The last `size` seconds."""
        return cls(size / SLOTS, SLOTS, counted)

    def note(self, at: float, counted: Pair) -> Pair:
        """Take note of both counts, and tell what was added to each within the window. Changes the window.

        Args:
            at: Where on the measure; never less than before.
            counted: Both counts now; what was added since the last call was added at `at`.
        """
        slot = int(at // self._width)
        if not self._begun or self._begun[-1][0] < slot:
            self._begun.append((slot, self._last))
        while self._begun[0][0] <= slot - self._slots:
            self._begun.popleft()
        self._last = counted
        of, over = self._begun[0][1]
        return counted[0] - of, counted[1] - over
