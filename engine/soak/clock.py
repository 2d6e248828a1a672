"""A clock that moves only when it is told to, so that a run is the same on every machine."""

from __future__ import annotations

__all__ = ["FakeClock"]

_NANOSECONDS = 1_000_000_000


class FakeClock:
    """Seconds since the beginning of a run, counted in whole nanoseconds so that no sum depends on rounding."""

    def __init__(self) -> None:
        self._now = 0

    def __call__(self) -> float:
        """Seconds since the beginning."""
        return self._now / _NANOSECONDS

    def advance(self, seconds: float) -> None:
        """Lets time pass; changes the clock.

        Args:
            seconds: How much; less than nothing is taken for nothing.
        """
        self._now += max(0, round(seconds * _NANOSECONDS))
