"""The best choice for several pieces together, where what is chosen for one changes what others can do or pay."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from hitproof.engine.choosing import Order
from hitproof.engine.ways import Way

__all__ = ["Open", "Place", "Sums", "choose_together"]

Place = tuple[int, int]
"""Group index, and the piece's place within the group."""


@dataclass(frozen=True, slots=True)
class Open:
    """A piece of which it is not settled yet what becomes of it.

    Args:
        reads: Open pieces that its rules read.
        ways: What may become of it, given the ways of those.
    """

    place: Place
    reads: tuple[Place, ...]
    ways: Callable[[Mapping[Place, Way]], Sequence[Way]]


@dataclass(slots=True)
class Sums:
    """What several pieces take together; see `choosing.Priced` for the parts."""

    own: int
    joint: list[int]
    level: int = -1
    count: int = 0

    @classmethod
    def none(cls, joints: int) -> Sums:
        """Nothing yet, where there are so many joint repairs."""
        return cls(0, [0] * joints)

    @property
    def price(self) -> int:
        """In ticks; each joint repair is paid once."""
        return self.own + sum(self.joint)

    def add(self, way: Way) -> None:
        """One piece more; changes the sums."""
        self.own += way.own
        for slot, price in enumerate(way.joint):
            if price > self.joint[slot]:
                self.joint[slot] = price
        self.level = max(self.level, way.level)
        self.count += way.count

    def add_least(self, ways: Sequence[Way]) -> None:
        """What one piece more takes at least; changes the prices."""
        if len(ways) == 1:
            self.add(ways[0])
            return
        self.own += min([way.own for way in ways])
        for slot, price in enumerate(self.joint):
            self.joint[slot] = max(price, min([way.joint[slot] for way in ways]))


@dataclass(slots=True)
class _Part:
    """What is chosen for the pieces so far, with the sums of all of them and of what is settled; ids in plan order."""

    own: int
    joint: tuple[int, ...]
    level: int
    count: int
    ids: tuple[tuple[str, ...], ...]
    chosen: dict[Place, Way]


def choose_together(order: Order, pieces: Sequence[Open], settled: Sums, limit: int) -> dict[Place, Way] | None:
    """The best way for each piece, so that the whole plan is the best; None where no plan ends well within the limit.

    One piece after the other, each after those that it reads. Of two choices so far that show the same to all pieces
    still to come, only the better one goes on.

    Args:
        pieces: In the order of the plan.
        settled: Sums of all pieces that are not open.
        limit: Price of all repairs that must not be passed, in ticks.
    """
    readers: dict[Place, list[Open]] = {piece.place: [] for piece in pieces}
    for piece in pieces:
        for place in piece.reads:
            readers[place].append(piece)
    parts = [_Part(settled.own, tuple(settled.joint), settled.level, settled.count, (), {})]
    done: set[Place] = set()
    for piece in _readers_soon(pieces, readers):
        rank = sum(one < piece.place for one in done)
        done.add(piece.place)
        looked_at = [one for one in done if any(reader.place not in done for reader in readers[one])]
        following: dict[Hashable, list[_Part]] = {}
        known: dict[Hashable, Sequence[Way]] = {}
        for part in parts:
            seen = tuple(part.chosen[place].shown for place in piece.reads)
            if seen not in known:
                known[seen] = piece.ways(part.chosen)
            for way in known[seen]:
                longer = _with(part, piece.place, way, rank)
                if longer.own + sum(longer.joint) <= limit:
                    shown = tuple(longer.chosen[place].shown for place in looked_at)
                    order.keep_best(following.setdefault(shown, []), longer)
        parts = [part for kept in following.values() for part in kept]
    return min(parts, key=order.key).chosen if parts else None


def _with(part: _Part, place: Place, way: Way, rank: int) -> _Part:
    """The choice with one more piece, `rank` places from the front in the order of the plan."""
    return _Part(
        part.own + way.own,
        tuple(map(max, part.joint, way.joint)),
        max(part.level, way.level),
        part.count + way.count,
        (*part.ids[:rank], way.ids, *part.ids[rank:]),
        {**part.chosen, place: way},
    )


def _readers_soon(pieces: Sequence[Open], readers: Mapping[Place, Sequence[Open]]) -> list[Open]:
    """The pieces, each after those that it reads and soon after the last of them: few stay to be remembered."""
    found: dict[Place, Open] = {}

    def visit(piece: Open) -> None:
        if piece.place in found or any(place not in found for place in piece.reads):
            return
        found[piece.place] = piece
        for reader in readers[piece.place]:
            visit(reader)

    for piece in pieces:
        visit(piece)
    return list(found.values())
