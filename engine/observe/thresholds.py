"""Thresholds watched: each rate over its sliding window, and who is told when one is exceeded or no longer is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from hitproof.engine.observe.counters import Counters
from hitproof.engine.observe.observer import Served
from hitproof.engine.observe.sliding import Sliding
from hitproof.spec.decision import Decision
from hitproof.spec.thresholds import Threshold

if TYPE_CHECKING:
    from hitproof.engine.recovery.result import Recovered, StepTaken

__all__ = ["PAUSE", "Standing", "Thresholds"]

PAUSE = 0.05
"""Seconds between two looks at all rates that events cause; rates over decisions are looked at with each decision."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a threshold stands.

    Args:
        threshold: The rule.
        of: What was counted in the window.
        over: What it is divided by.
        exceeded: Whether there is a rate, and it is above the threshold.
    """

    threshold: Threshold
    of: int
    over: int
    exceeded: bool


class Thresholds:
    """Watches the thresholds of a rulebook over counters that are told of the same events before it is.

    Args:
        counters: What is counted.
        tell: Called with each threshold that has come to be exceeded, or is so no longer.
        clock: Seconds from some fixed moment on.
    """

    def __init__(
        self,
        counters: Counters,
        tell: Callable[[Standing], None] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._counters, self._tell, self._clock = counters, tell, clock
        self._lock = Lock()
        self._decisions = counters.selection("decisions", {})
        self._looked = float("-inf")
        self._watched = [_Watch(rule, counters) for rule in counters.bound.rulebook.thresholds.values()]
        self._by_decisions = [one for one in self._watched if one.rule.span.kind == "decisions"]
        self._exceeded: set[str] = set()

    def decided(self, decision: Decision, seconds: float) -> None:
        """Look at the rates over decisions, and from time to time at all."""
        self._look(self._by_decisions)

    def served(self, served: Served) -> None:
        """Look at all rates from time to time."""
        self._look(())

    def stepped(self, step: StepTaken) -> None:
        """Look at all rates from time to time."""
        self._look(())

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """Look at the rates over decisions, and from time to time at all."""
        self._look(self._by_decisions)

    def changed(self, group: str, transition: str, result: str) -> None:
        """Look at all rates from time to time."""
        self._look(())

    def check(self) -> list[Standing]:
        """How each threshold stands now; tells those that changed. Where nothing happens, time alone may change one."""
        return self._look(self._watched)

    def exceeded(self) -> tuple[str, ...]:
        """Ids of the thresholds that are exceeded now, in file order."""
        return tuple(one.threshold.id for one in self.check() if one.exceeded)

    def _look(self, watches: Sequence[_Watch]) -> list[Standing]:
        """Look at these rates, or at all of them where that was not done for a while."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= PAUSE:
                watches = self._watched
            if watches is self._watched:
                self._looked = now
            if not watches:
                return []
            found = self._standings(watches, now)
            changed = [one for one in found if one.exceeded != (one.threshold.id in self._exceeded)]
            self._exceeded.symmetric_difference_update(one.threshold.id for one in changed)
        if self._tell is not None:
            for one in changed:
                self._tell(one)
        return found

    def _standings(self, watches: Sequence[_Watch], now: float) -> list[Standing]:
        selections = [selection for one in watches for selection in (one.of, one.over)]
        at, *sums = self._counters.sums([self._decisions, *selections])
        pairs = zip(sums[::2], sums[1::2], strict=True)
        return [one.standing(at, now, counted) for one, counted in zip(watches, pairs, strict=True)]


class _Watch:
    """One threshold with its window."""

    def __init__(self, rule: Threshold, counters: Counters) -> None:
        self.rule = rule
        self.of, self.over = (counters.selection(one.metric, one.where) for one in (rule.of, rule.over))
        made = Sliding.over_decisions if rule.span.kind == "decisions" else Sliding.over_seconds
        of, over = counters.sums([self.of, self.over])
        self._window = made(rule.span.size, (of, over))

    def standing(self, decision: int, now: float, counted: tuple[int, int]) -> Standing:
        rule = self.rule
        of, over = self._window.note(decision if rule.span.kind == "decisions" else now, counted)
        return Standing(rule, of, over, over >= rule.at_least and of > rule.above * over)
