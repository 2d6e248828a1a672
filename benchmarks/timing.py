"""Repeated timing: median and spread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

__all__ = ["Sample", "sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of several runs of the same work.

    Attributes:
        seconds: One a run, rising.
    """

    seconds: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median, in seconds."""
        return median(self.seconds)

    def rate(self, amount: float) -> str:
        """Amount of work a second: the median, with the slowest and the fastest run."""
        slowest, fastest = amount / self.seconds[-1], amount / self.seconds[0]
        return f"{amount / self.middle:,.0f} a second ({slowest:,.0f} to {fastest:,.0f})"

    def each(self, amount: float) -> str:
        """Microseconds a piece of work: the median, with the fastest and the slowest run."""
        low, middle, high = (1e6 * one / amount for one in (self.seconds[0], self.middle, self.seconds[-1]))
        return f"{middle:.2f} us ({low:.2f} to {high:.2f})"


def sample(work: Callable[[], object], runs: int = 5) -> Sample:
    """Times a piece of work after one run that does not count.

    Args:
        work: What is timed.
        runs: How often.
    """
    work()
    seconds = []
    for _ in range(runs):
        began = perf_counter()
        work()
        seconds.append(perf_counter() - began)
    return Sample(tuple(sorted(seconds)))
