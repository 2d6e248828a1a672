"""Axes of the pictures: round ticks, and where a value lies in pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hitproof.cli.page.figures import Clock

__all__ = ["Scale", "log_ticks", "round_ticks", "time_ticks"]

_STEPS = {"ms": (1, 2, 5), "s": (1, 2, 5, 10, 15, 30), "min": (1, 2, 5, 10, 15, 30), "h": (1, 2, 3, 6, 12)}


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from 0 to `limit`, drawn from one pixel to another."""

    limit: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """Where a value lies, in pixels."""
        return self.first + (self.last - self.first) * (value / self.limit if self.limit else 0.0)


def round_ticks(largest: float, wanted: int = 5) -> list[float]:
    """Round numbers from 0 on, equally spaced; the last is at least `largest`."""
    if not largest > 0:
        return [0.0, 1.0]
    least = largest / wanted
    scale = 10.0 ** math.floor(math.log10(least))
    step = next(factor * scale for factor in (1, 2, 2.5, 5, 10) if factor * scale >= least * (1 - 1e-9))
    return [place * step for place in range(math.ceil(largest / step - 1e-9) + 1)]


def time_ticks(span_ms: float, clock: Clock, wanted: int = 8) -> list[float]:
    """Round times from 0 up to the span, in milliseconds."""
    span = span_ms / clock.unit_ms
    steps: tuple[float, ...] = _STEPS.get(clock.unit, ())
    step = next((step for step in steps if span / step <= wanted), None)
    if step is None:
        step = round_ticks(span, wanted)[1]
    return [place * step * clock.unit_ms for place in range(math.floor(span / step + 1e-9) + 1)]


def log_ticks(least: float, largest: float) -> list[float]:
    """Numbers of the row 1, 2, 5, 10 that enclose both values; powers of ten alone where they are far apart."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(largest))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    row = [factor * 10.0**power for power in range(first, max(last, first + 1) + 1) for factor in factors]
    start = max(place for place, tick in enumerate(row) if tick <= least * (1 + 1e-9))
    end = min(place for place, tick in enumerate(row) if tick >= largest * (1 - 1e-9) and place > start)
    return row[start : end + 1]
