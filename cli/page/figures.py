"""Figures as the page writes them: one unit and one precision a column, so that they line up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

__all__ = ["Clock", "bytes_text", "clock_for", "count", "percent", "power", "rate", "seconds_for"]

NARROW = "\N{NO-BREAK SPACE}"
_CLOCKS = (("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("days", 86_400_000))
_BYTES = (("B", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12), ("PB", 10**15))


class Clock:
    """Times of a trace in the unit that fits its span.

    Attributes:
        unit: The unit's name.
    """

    def __init__(self, unit: str, unit_ms: int) -> None:
        self.unit, self.unit_ms = unit, unit_ms

    def text(self, ms: float) -> str:
        """A time, without the unit."""
        return f"{round(ms / self.unit_ms, 3):,.10g}"


def clock_for(span_ms: int) -> Clock:
    """The largest unit of which the span has at least three."""
    fitting = [one for one in _CLOCKS if span_ms >= 3 * one[1]] or [_CLOCKS[0]]
    return Clock(*fitting[-1])


def percent(share: float, digits: int = 2) -> str:
    """A share of 1 in per cent."""
    return f"{100 * share:.{digits}f}{NARROW}%"


def count(value: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{value:,.0f}"


def seconds_for(prices_us: Iterable[float]) -> Callable[[float], str]:
    """How to write prices of a column in seconds: to milliseconds where all are small."""
    largest = max((price for price in prices_us if math.isfinite(price)), default=0.0)
    digits = 3 if largest < 10e6 else 1 if largest < 10_000e6 else 0
    return lambda us: f"{us / 1e6:,.{digits}f}" if math.isfinite(us) else "unknown"


def bytes_text(size: float) -> str:
    """An amount of bytes in decimal units, to three digits."""
    name, unit = next(one for one in reversed(_BYTES) if size >= one[1] or one[1] == 1)
    scaled = size / unit
    digits = 0 if unit == 1 or scaled >= 100 else 1 if scaled >= 10 else 2
    return f"{scaled:,.{digits}f}{NARROW}{name}"


def rate(value: float | None) -> str:
    """A rate to six digits, without an exponent where it can be read without."""
    if value is None or not math.isfinite(value):
        return "unknown"
    short = f"{value:.6g}"
    return f"{value:.12f}".rstrip("0").rstrip(".") if "e-" in short and value >= 1e-9 else short


def power(tokens: int) -> str:
    """A power of two as a short label; `k` is 1,024, `M` its square."""
    for name, unit in (("M", 1 << 20), ("k", 1 << 10)):
        if tokens >= unit:
            return f"{tokens // unit}{name}"
    return str(tokens)
