"""Thresholds on rates of inconsistent states (article 7): what is divided by what, and how much is too much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.spec.errors import Position

__all__ = ["Series", "Span", "Threshold"]


@dataclass(frozen=True, slots=True)
class Series:
    """Some of the counts of one metric.

    Args:
        metric: Its name in `spec.metrics.COUNTERS`.
        where: Label to the values that count; a label that is not named counts with all its values.
    """

    metric: str
    where: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Span:
    """How far back a rate looks.

    Args:
        kind: `decisions` or `seconds`.
        size: How many.
    """

    kind: str
    size: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """A rate that must not be exceeded.

    Args:
        of: What is counted.
        over: What it is divided by.
        above: The rate beyond which the threshold is exceeded.
        span: The sliding window over which both are counted.
        at_least: Where less than this has been counted of `over` in the window, there is no rate.
        severity: `info`, `warning` or `critical`.
    """

    id: str
    of: Series
    over: Series
    above: float
    span: Span
    at_least: int
    severity: str
    because: str
    source: str
    where: Position
