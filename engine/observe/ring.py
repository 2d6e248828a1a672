"""The last decisions, kept in memory within bounds and written down on request."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import time

from hitproof.engine.observe.observer import Silent
from hitproof.engine.observe.redact import Redactor
from hitproof.spec.decision import Decision
from hitproof.spec.errors import MissingFileError, Position, UsageError

__all__ = ["Kept", "Ring"]

MAX_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class Kept:
    """One decision of the ring.

    Args:
        number: Its place among all that were told, from 1 on.
        time: When it was told, in seconds of Unix time.
        seconds: Wall time that it took.
    """

    number: int
    time: float
    seconds: float
    decision: Decision


class Ring(Silent):
    """Keeps the last decisions; threads may share it.

    A decision keeps its reasons where it was asked to explain; they are redacted when they are written down, so that
    keeping them costs the decision path nothing.

    Args:
        redactor: How values are written down.
        size: How many decisions are kept.
        clock: Unix time in seconds.

    Raises:
        UsageError: The size is not between 1 and 10,000.
    """

    def __init__(self, redactor: Redactor, size: int = 256, clock: Callable[[], float] = time) -> None:
        if not 1 <= size <= MAX_SIZE:
            raise UsageError("a ring of decisions has another size", got=size, expected=f"1 to {MAX_SIZE}")
        self._redactor, self._clock = redactor, clock
        self._lock = Lock()
        self._kept: deque[Kept] = deque(maxlen=size)
        self._told = 0

    def decided(self, decision: Decision, seconds: float) -> None:
        """Keep a decision; the oldest one gives way."""
        now = self._clock()
        with self._lock:
            self._told += 1
            self._kept.append(Kept(self._told, now, seconds, decision))

    def last(self, count: int | None = None) -> tuple[Kept, ...]:
        """The last decisions, oldest first; all that are kept where no count is given."""
        with self._lock:
            kept = tuple(self._kept)
        return kept if count is None else kept[max(0, len(kept) - count) :]

    def lines(self, *, reasons: bool = True) -> Iterator[str]:
        """Every decision as one line of JSON, redacted; with the values that failing rules read where asked for."""
        for one in self.last():
            told = {"number": one.number, "time": round(one.time, 6), "seconds": round(one.seconds, 9)}
            yield json.dumps({**told, **self._redactor.decision(one.decision, reasons=reasons)}, allow_nan=False)

    def dump(self, path: Path, *, reasons: bool = True) -> int:
        """Write the ring to a file that `hitproof explain --ring` reads.

        Returns:
            How many decisions were written.

        Raises:
            MissingFileError: The file cannot be written.
        """
        lines = list(self.lines(reasons=reasons))
        try:
            path.write_text("".join(line + "\n" for line in lines), "utf-8")
        except OSError as error:
            raise MissingFileError(
                "the file cannot be written",
                where=Position(str(path)),
                got=error.strerror,
                expected="a writable folder",
            ) from error
        return len(lines)
