"""Prices in whole ticks: sums are exact, so that equal plans cost the same in whatever order they are added up."""

from __future__ import annotations

__all__ = ["NO_LIMIT", "TICKS", "UNKNOWN_PRICE", "microseconds", "ticks"]

TICKS = 2**20
"""Ticks in a microsecond; one is about a picosecond."""

UNKNOWN_PRICE = 2**200
"""The price of what nobody knows: above every sum of known prices, and still one that can be added."""

NO_LIMIT = 2**300
"""Above every sum of prices."""


def ticks(price_us: float | None) -> int:
    """A price in microseconds as ticks, to the nearest; below 0 it counts as 0, and None is unknown."""
    return UNKNOWN_PRICE if price_us is None else max(0, int(price_us * TICKS + 0.5))


def microseconds(price: int) -> float:
    """Ticks as microseconds; infinite where some part was unknown."""
    return float("inf") if price >= UNKNOWN_PRICE else price / TICKS
