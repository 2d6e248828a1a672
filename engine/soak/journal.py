"""The log of a simulated run: one line a step, a digest over all of them, and the last ones in words."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

__all__ = ["Journal"]

KEPT = 40
"""Lines that are kept to be shown with a failure."""


class Journal:
    """Counts steps and remembers what happened in each; holds no time, no address and nothing of this process.

    Args:
        sink: Gets every line as it is written; None keeps only the last ones.
    """

    def __init__(self, sink: Callable[[str], object] | None = None) -> None:
        self.steps = 0
        self._sink = sink
        self._notes: list[str] = []
        self._digest = hashlib.blake2b(digest_size=16)
        self._last: deque[str] = deque(maxlen=KEPT)

    def note(self, text: str) -> None:
        """Adds to the step under way what came of it."""
        self._notes.append(text)

    def step(self, actor: str, point: str) -> None:
        """Ends a step: what was noted since the last one, by whom, and the point that was reached."""
        self.steps += 1
        said = "; ".join(self._notes)
        line = f"{self.steps} {actor} @{point} {said}" if said else f"{self.steps} {actor} @{point}"
        self._notes.clear()
        self._digest.update(line.encode() + b"\n")
        self._last.append(line)
        if self._sink is not None:
            self._sink(line)

    @property
    def digest(self) -> str:
        """BLAKE2b over all lines, 32 hexadecimal digits; equal runs have equal ones."""
        return self._digest.hexdigest()

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines, and what was noted since."""
        return (*self._last, *(f"{self.steps + 1} ... {note}" for note in self._notes))
