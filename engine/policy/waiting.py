"""The order of waiting requests by the rules: little recovery and good locality first, with an ageing bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hitproof.spec.condition import compile_python
from hitproof.spec.policy import Waiting

__all__ = ["Waiter", "WaitingOrder"]

Holder = TypeVar("Holder")


@dataclass(frozen=True, slots=True)
class Waiter(Generic[Holder]):
    """A waiting request.

    Args:
        holder: The request.
        arrival: When it came; equal ones keep the order in which they are given.
        facts: Facts of request, run time and its wanted plan, by path.
    """

    holder: Holder
    arrival: float
    facts: Mapping[str, Any]


class WaitingOrder:
    """Orders waiting requests; without a rule they go by arrival.

    Args:
        rule: The rulebook's `waiting:`, or None.
    """

    def __init__(self, rule: Waiting | None) -> None:
        self._aged = None if rule is None else compile_python(rule.aged, trusted=True)
        self._rank = None if rule is None else compile_python(rule.rank, trusted=True)

    def aged(self, waiter: Waiter[Holder]) -> bool:
        """Whether nobody younger may pass it any more; one whose waiting time is unknown is not held back for."""
        return self._aged is not None and self._aged(waiter.facts) is True

    def sorted(self, waiters: Iterable[Waiter[Holder]]) -> list[Waiter[Holder]]:
        """Those past the ageing bound by arrival, then the others by rank; an unknown rank comes last."""
        return sorted(waiters, key=self._key)

    def may_go(self, waiters: Iterable[Waiter[Holder]], admitted: Any) -> list[Waiter[Holder]]:
        """The waiters that are admitted now, in order.

        Args:
            waiters: All that wait.
            admitted: Called with each in order; it reserves what the request needs and says whether it could.

        Returns:
            Those admitted. Behind an aged one that is not admitted nobody is asked, so room that becomes free is its.
        """
        going: list[Waiter[Holder]] = []
        for waiter in self.sorted(waiters):
            if admitted(waiter):
                going.append(waiter)
            elif self.aged(waiter):
                break
        return going

    def _key(self, waiter: Waiter[Holder]) -> tuple[int, float, float]:
        if self._rank is None or self.aged(waiter):
            return (0, waiter.arrival, 0.0)
        rank = self._rank(waiter.facts)
        return (1, float("inf") if rank is None else float(rank), waiter.arrival)
