"""Which of two ways is better, by the order that the rulebook declares."""

from __future__ import annotations

from collections.abc import Sequence
from operator import gt
from typing import Any, Protocol, TypeVar

__all__ = ["Order", "Priced"]


class Priced(Protocol):
    """A way to mend one piece, or what was chosen for some pieces together.

    Args:
        own: Price of the repairs that are nobody else's, in ticks.
        joint: Price of each joint repair, in ticks; of several ways together, the dearest counts.
        level: Severest level of a repair, -1 without any.
        count: Number of repairs.
        ids: Ids of the repairs, or tuples of them.
    """

    @property
    def own(self) -> int: ...
    @property
    def joint(self) -> tuple[int, ...]: ...
    @property
    def level(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def ids(self) -> tuple[Any, ...]: ...


P = TypeVar("P", bound=Priced)


class Order:
    """The declared order of choosing, as comparisons."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.cheapest = self.names[0] == "price"
        self.cheapest_then_longest = self.names[:2] == ("price", "longer_length")

    def no_worse(self, one: Priced, other: Priced) -> bool:
        """Whether `one` in the place of `other` never makes a plan worse, whatever else the plan holds.

        Own prices and counts add up, so a lesser one decides at once. Of joint prices and of levels the greatest
        counts, which may come from elsewhere, so a lesser one lets the next part of the order decide.
        """
        for name in self.names:
            if name == "price":
                if one.own > other.own:
                    return False
                if one.joint != other.joint and any(map(gt, one.joint, other.joint)):
                    return False
                if one.own < other.own:
                    return True
            elif name == "lower_level":
                if one.level > other.level:
                    return False
            elif name == "fewer_steps":
                if one.count != other.count:
                    return one.count < other.count
            elif name == "option_id" and one.ids != other.ids:
                return one.ids < other.ids
        return True

    def sort_key(self, price: int, length: int, level: int, count: int, ids: tuple[Any, ...]) -> tuple[Any, ...]:
        """What sorts whole plans, the best first: `price` is that of repairs and prefill, in ticks."""
        parts = {
            "price": price,
            "longer_length": -length,
            "lower_level": level,
            "fewer_steps": count,
            "option_id": ids,
        }
        return tuple(parts[name] for name in self.names)

    def key(self, one: Priced) -> tuple[Any, ...]:
        """What sorts choices at one length, the best first."""
        return self.sort_key(one.own + sum(one.joint), 0, one.level, one.count, one.ids)

    def keep_best(self, kept: list[P], new: P) -> bool:
        """Add `new` to those of which none makes another needless; tells whether it was kept. Changes the list."""
        if kept:
            for old in kept:
                if self.no_worse(old, new):
                    return False
            kept[:] = [old for old in kept if not self.no_worse(new, old)]
        kept.append(new)
        return True
