"""Repeated timing: a warm-up that does not count, then runs until the time is up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

from hitproof.spec.rates import Origin, Rate, RateSample

__all__ = ["Stopwatch", "UNSTEADY", "rate_of", "summary"]

UNSTEADY = 0.2
"""A spread above this says that the machine was busy: the middle half of the runs differs by a fifth."""


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Times a piece of work over and over.

    Attributes:
        seconds: How long one figure is measured, warm-up aside.
        clock: Tells the time in seconds.
        least: Runs that are made even where the time is up.
        most: Runs after which it ends although there is time.
    """

    seconds: float = 1.0
    clock: Callable[[], float] = perf_counter
    least: int = 5
    most: int = 1000

    def time(self, work: Callable[[], object], before: Callable[[], object] | None = None) -> tuple[float, ...]:
        """Seconds of each run, in order.

        Args:
            work: What is timed.
            before: What is done before each run and not timed.
        """
        self._once(work, before)
        taken: list[float] = []
        began = self.clock()
        while len(taken) < self.least or (len(taken) < self.most and self.clock() - began < self.seconds):
            taken.append(self._once(work, before))
        return tuple(taken)

    def _once(self, work: Callable[[], object], before: Callable[[], object] | None) -> float:
        if before is not None:
            before()
        began = self.clock()
        work()
        return self.clock() - began


def summary(values: tuple[float, ...]) -> RateSample:
    """Runs, extremes, median and spread of at least two values.

    The extremes of a busy machine say little, so the spread is that of the middle half, over the median.
    """
    first, middle, third = quantiles(values, n=4, method="inclusive")
    spread = (third - first) / middle if middle else 0.0
    low, middle, high = map(_six_digits, (min(values), median(values), max(values)))
    return RateSample(runs=len(values), low=low, median=middle, high=high, spread=_six_digits(spread))


def rate_of(seconds: tuple[float, ...], amount: float, unit: str, how: str, origin: Origin = "measured") -> Rate:
    """The rate of timed runs, in microseconds a piece.

    Args:
        seconds: Of each run.
        amount: Pieces of work in one run: bytes, calls, tokens.
        unit: As the vocabulary writes it.
        how: What was timed, and how the amount is counted.
        origin: `scaled` where the amount is that of something larger than what ran.
    """
    sample = summary(tuple(1e6 * one / amount for one in seconds))
    return Rate(value=sample.median, unit=unit, origin=origin, how=how, sample=sample)


def _six_digits(value: float) -> float:
    """No clock tells more, and a file is easier to read."""
    return float(f"{value:.6g}")
