"""Mending at one length: each piece's own best way first, and where that is not the whole answer, all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hitproof.engine.compile import CompiledGroup
from hitproof.engine.joint import Open, Place, Sums, choose_together
from hitproof.engine.peers import peer_places
from hitproof.engine.state import Resolved
from hitproof.engine.ways import Way, as_it_is, ways_to_mend
from hitproof.spec.price import NO_LIMIT, microseconds

if TYPE_CHECKING:
    from hitproof.engine.outcome import Judge, Outcome

__all__ = ["Mending"]

_NOTHING: frozenset[str] = frozenset()


class Mending:
    """What is done about the pieces of one length that fail; changes the outcome that it is given.

    Attributes:
        open: Pieces of which it is not settled yet what becomes of them, as they were found, each with its ways where
            these depend on no other open piece.
        least: Sums that no plan can be under.
    """

    __slots__ = ("_full", "_judge", "_result", "_state", "_taken", "least", "open")

    def __init__(self, judge: Judge, state: Resolved, result: Outcome, *, full: bool) -> None:
        self._judge, self._state, self._result, self._full = judge, state, result, full
        self._taken: dict[Place, Way] = {}
        self.open: dict[Place, tuple[Any, Sequence[Way] | None]] = {}
        self.least = Sums.none(judge.joints)

    def settle_or_leave_open(
        self, group: CompiledGroup, place: Place, index: int, piece: Any, mask: int, context: tuple[Any, ...]
    ) -> tuple[Any, int]:
        """The piece after its own best way, and what fails still."""
        ways = self._ways(group, index, piece, mask, context)
        if not ways:
            self._result.clean = False
            return piece, mask
        if len(ways) > 1:
            self.open[place] = piece, ways
        self._taken[place] = ways[0]
        self.least.add_least(ways)
        return ways[0].piece, 0

    def guess(
        self, group: CompiledGroup, place: Place, index: int, piece: Any, mask: int, context: tuple[Any, ...]
    ) -> tuple[Any, int]:
        """The same for a piece that reads an open one: what fails, and what helps, is not settled either."""
        self.open[place] = piece, None
        ways = self._ways(group, index, piece, mask, context)
        if not ways:
            return piece, mask
        self._taken[place] = ways[0]
        return ways[0].piece, ways[0].left

    def finish(self, at_most: int) -> None:
        """Choose for the open pieces together, and add up; where no plan ends well, the guesses stay.

        Args:
            at_most: Price of all repairs above which a plan is of no use, in ticks.
        """
        if self.open and self._result.clean:
            chosen = self._choose(at_most)
            if chosen is None:
                self._result.clean = False
            else:
                self._take(chosen)
        total = Sums.none(self._judge.joints)
        for place in sorted(self._taken):
            group, way = self._judge.groups[place[0]], self._taken[place]
            index = self._result.used[place[0]][place[1]][0]
            self._result.steps += [(group, index, option, microseconds(price)) for option, price in way.steps]
            total.add(way)
        self._result.price = total.price

    def _ways(self, group: CompiledGroup, index: int, piece: Any, mask: int, context: tuple[Any, ...]) -> Sequence[Way]:
        """What may become of a piece so that it ends well; an optional one stays as it is, be it well or not."""
        judge, barred = self._judge, self._state.barred
        if not mask or not group.mandatory:
            return (as_it_is(group, piece, mask, judge.joints),)
        levels = barred.get((group.id, index), _NOTHING) if barred else _NOTHING
        return ways_to_mend(group, judge.order, piece, mask, context, judge.joints, levels)

    def _choose(self, at_most: int) -> dict[Place, Way] | None:
        judge, used = self._judge, self._result.used
        settled, guessed = Sums.none(judge.joints), Sums.none(judge.joints)
        for place, way in self._taken.items():
            guessed.add(way)
            if place not in self.open:
                settled.add(way)
        ends_well = all(used[group][place][4] for group, place in self.open if judge.groups[group].mandatory)
        limit = NO_LIMIT
        if judge.order.cheapest:
            limit = min(at_most, guessed.price) if ends_well else at_most
        return choose_together(judge.order, [self._open(place) for place in sorted(self.open)], settled, limit)

    def _take(self, chosen: Mapping[Place, Way]) -> None:
        for place, way in chosen.items():
            group, at = place
            index, _, a, b, _ = self._result.used[group][at]
            self._result.used[group][at] = (index, way.piece, a, b, not way.left)
            self._result.masks[group][at] = way.mask
            self._taken[place] = way

    def _open(self, place: Place) -> Open:
        """An open piece, with what gives its ways."""
        group, used, length = self._judge.groups[place[0]], self._result.used, self._result.length
        index, _, a, b, _ = used[place[0]][place[1]]
        piece, settled = self.open[place]
        if settled is not None:
            return Open(place, (), lambda chosen: settled)
        first, to = group.span(length)
        state = self._state
        facts = (state.request, state.runtime, state.kernels[group.id], length, a, b)
        sources = peer_places(group, used, max(a, first), min(b, to))
        judge = group.judge if self._full or group.mandatory else group.fails

        def ways(chosen: Mapping[Place, Way]) -> Sequence[Way]:
            context = (*facts, *(one for source in sources for one in self._peer(chosen, source)))
            return self._ways(group, index, piece, judge(piece, *context), context)

        return Open(place, tuple(source for source in sources if source in self.open), ways)

    def _peer(self, chosen: Mapping[Place, Way], source: Place) -> tuple[Any, bool]:
        """A peer's segment after its repair, and whether it is ready."""
        if source in chosen:
            return chosen[source].piece, not chosen[source].left
        group, at = source
        if at < 0:
            return self._judge.nobody, False
        return self._result.used[group][at][1], self._result.used[group][at][4]
