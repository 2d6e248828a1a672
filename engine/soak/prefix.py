"""The shortest prefix of a failed run that fails too."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.engine.soak.disk_faults import DISK_RATES
from hitproof.engine.soak.simulate import AUDITED, SetUp, Simulated, simulate

__all__ = ["shortest"]

BUDGET = 2_000_000
"""Steps that a search may take in all."""


def shortest(
    set_up: SetUp,
    found: Simulated,
    *,
    rates: Mapping[str, float] = DISK_RATES,
    every: int = AUDITED,
    budget: int = BUDGET,
) -> Simulated:
    """The shortest prefix of a failed run that is found to fail too; `simulate` with its steps plays it again.

    What an actor or an audit found is played once more, with an audit after each step since the last one that found
    nothing. Then shorter and shorter prefixes are tried, in strides that double, and the last stride is halved until a
    prefix fails and the one with a step less does not. A much shorter prefix may fail as well without being met.

    Args:
        set_up: Builds the machine.
        found: A run that failed.
        rates: As they were.
        every: As it was.
        budget: Steps after which the search ends with what it has.
    """
    if found.failure is None:
        return found
    best, bad = found, found.failure.step
    if found.failure.whose != "finish":
        best = simulate(set_up, found.seed, bad, rates=rates, every=every, closely=found.audited + 1)
        bad = bad if best.failure is None else best.failure.step
    good, stride, spent = 0, 1, bad
    while bad - good > 1 and spent < budget:
        middle = bad - stride if good == 0 and bad > stride else (good + bad) // 2
        tried = simulate(set_up, found.seed, middle, rates=rates, every=every)
        spent += middle
        if tried.failure is None:
            good = middle
        else:
            best, bad, stride = tried, min(middle, tried.failure.step), 2 * stride
    return best
