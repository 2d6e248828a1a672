"""What a replay holds of each group, block by block, and the segments that it makes of it for one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.serving import Serving
from hitproof.engine.tiers import DEVICE
from hitproof.spec.bound import BoundGroup

__all__ = ["Run", "StateStore", "Store", "keeps_every_token", "store_of"]

Run = tuple[int, int, int]
"""Blocks `[first, after)` of a path that lie in one tier."""


class Store:
    """One group's data on the blocks that the cache knows; carriers are reused from request to request.

    Attributes:
        written: Block to the generation of the serving process that wrote it, where that is not the first.
    """

    def __init__(self, group: BoundGroup, serving: Serving, retention: Retention, unit: int) -> None:
        self.group, self.serving, self.retention, self.unit = group, serving, retention, unit
        self.written: dict[int, int] = {}
        self._cuts: dict[tuple[int, int, int, int], Any] = {}

    def pieces(self, ids: Sequence[int], runs: Sequence[Run], matched: int) -> list[Any]:
        """The group's segments on a path.

        Args:
            ids: Block ids of the path.
            runs: The path's known whole blocks by tier.
            matched: Tokens on which the path and the request agree.
        """
        return []

    def blocks_of(self, segment: Any) -> range:
        """Places on the path of the blocks that hold a segment."""
        return range(segment.start // self.unit, -(-segment.end // self.unit))

    def _cut(self, generation: int, start: int, end: int, tier: int, matched: int) -> Any:
        key = (generation, start, end, tier)
        segment = self._cuts.get(key)
        if segment is None:
            mould = self.serving.moulds[generation][self.group.id]
            segment = self._cuts[key] = mould.cut(start, end, tier)
        segment.matched = matched
        return segment

    def _uniform(self, ids: Sequence[int], runs: Sequence[Run]) -> Iterable[tuple[int, int, int, int]]:
        """Runs of one tier and one generation: first, after, tier, generation."""
        if not self.written:
            return [(first, after, tier, 0) for first, after, tier in runs]
        found = []
        generation_of = self.written.get
        for first, after, tier in runs:
            generation = generation_of(ids[first], 0)
            for place in range(first + 1, after):
                other = generation_of(ids[place], 0)
                if other != generation:
                    found.append((first, place, tier, generation))
                    first, generation = place, other
            found.append((first, after, tier, generation))
        return found


class SpanStore(Store):
    """Rows of every token; a segment is a run of blocks in one tier, written by one generation."""

    def pieces(self, ids: Sequence[int], runs: Sequence[Run], matched: int) -> list[Any]:
        unit = self.unit
        return [
            self._cut(generation, first * unit, after * unit, tier, matched)
            for first, after, tier, generation in self._uniform(ids, runs)
        ]


class StateStore(Store):
    """State of one length; it lies with the block that ends there.

    Attributes:
        noted: Block to the first token of what is kept on it, where the retention notes that.
    """

    def __init__(
        self, group: BoundGroup, serving: Serving, retention: Retention, unit: int, noted: dict[int, int]
    ) -> None:
        super().__init__(group, serving, retention, unit)
        self.noted = noted
        self._rulers: dict[tuple[int, int], list[Any]] = {}

    def pieces(self, ids: Sequence[int], runs: Sequence[Run], matched: int) -> list[Any]:
        if self.retention.nowhere:
            return []
        found: list[Any] = []
        for first, after, tier, generation in self._uniform(ids, runs):
            if self.retention.everywhere:
                found += self._ruler(generation, tier, after)[first:after]
            else:
                found += self._noted(ids, first, after, tier, generation)
        for segment in found:
            segment.matched = matched
        return found

    def keep(self, ids: Sequence[int], boundary: int) -> None:
        """Notes the state at a boundary, counted in blocks; changes the store."""
        self.noted[ids[boundary - 1]] = (boundary - 1) * self.unit

    def blocks_at(self, boundary: int) -> range:
        """Places on the path of the blocks that hold the state at a boundary."""
        return range(boundary - 1, boundary)

    def blocks_of(self, segment: Any) -> range:
        last = segment.end // self.unit
        return range(last - 1, last)

    def _noted(self, ids: Sequence[int], first: int, after: int, tier: int, generation: int) -> list[Any]:
        noted = self.noted
        ruler = self._ruler(generation, tier, after)
        return [ruler[place] for place in range(first, after) if ids[place] in noted]

    def _ruler(self, generation: int, tier: int, blocks: int) -> list[Any]:
        """Segments at the ends of the first `blocks` blocks, and maybe more."""
        ruler = self._rulers.setdefault((generation, tier), [])
        for place in range(len(ruler), blocks):
            ruler.append(self._cut(generation, self._start(place), (place + 1) * self.unit, tier, 0))
        return ruler

    def _start(self, place: int) -> int:
        return 0


class TailStore(StateStore):
    """Rows of a window that fits into the block that it ends in."""

    def _start(self, place: int) -> int:
        return max(place * self.unit, (place + 1) * self.unit - _reach(self.group))


class LongTailStore(TailStore):
    """Rows of a window that lies on several blocks; each block keeps those of its own tokens.

    `noted` has the first row that is kept of a block. Under `full` retention that is the block's first one.
    """

    def keep(self, ids: Sequence[int], boundary: int) -> None:
        oldest = max(0, boundary * self.unit - _reach(self.group))
        for place in self.blocks_at(boundary):
            start = max(oldest, place * self.unit)
            self.noted[ids[place]] = min(start, self.noted.get(ids[place], start))

    def blocks_at(self, boundary: int) -> range:
        return range(max(0, boundary * self.unit - _reach(self.group)) // self.unit, boundary)

    def blocks_of(self, segment: Any) -> range:
        return Store.blocks_of(self, segment)

    def _noted(self, ids: Sequence[int], first: int, after: int, tier: int, generation: int) -> list[Any]:
        unit, noted = self.unit, self.noted
        return [
            self._cut(generation, noted[ids[place]], (place + 1) * unit, tier, 0)
            for place in range(first, after)
            if ids[place] in noted
        ]


class RecordStore(Store):
    """The window's boundary record: without bytes, kept for every known path, whatever the retention."""

    def pieces(self, ids: Sequence[int], runs: Sequence[Run], matched: int) -> list[Any]:
        if not runs:
            return []
        unit = self.unit
        whole = [(0, runs[-1][1], DEVICE)]
        return [
            self._cut(generation, first * unit, after * unit, DEVICE, matched)
            for first, after, _, generation in self._uniform(ids, whole)
        ]


class ManifestStore(Store):
    """The manifest of what lies in slower storage; there is one where any block of the path is demoted."""

    def pieces(self, ids: Sequence[int], runs: Sequence[Run], matched: int) -> list[Any]:
        if all(tier == DEVICE for _, _, tier in runs):
            return []
        return [self._cut(0, 0, runs[-1][1] * self.unit, DEVICE, matched)]


def store_of(group: BoundGroup, serving: Serving, retention: Retention, unit: int, noted: dict[int, int]) -> Store:
    """The store that fits a group's object; kept layer inputs are in no trace and are never held.

    Args:
        noted: Where the groups are noted whose state at a boundary lies in one block.
    """
    if keeps_every_token(group):
        return SpanStore(group, serving, retention, unit)
    match group.object:
        case "recurrent_state" | "compressor_state":
            return StateStore(group, serving, retention, unit, noted)
        case "uncompressed_tail" if _reach(group) <= unit:
            return TailStore(group, serving, retention, unit, noted)
        case "uncompressed_tail":
            return LongTailStore(group, serving, retention, unit, {})
        case "window_boundary":
            return RecordStore(group, serving, retention, unit)
        case "demoted_prefix":
            return ManifestStore(group, serving, retention, unit)
        case _:
            return Store(group, serving, retention, unit)


def keeps_every_token(group: BoundGroup) -> bool:
    """Whether the group holds a row, or a share of one, for each token of a prefix."""
    return group.object in ("full_kv", "compressed_global", "routing_index")


def _reach(group: BoundGroup) -> int:
    """How many older rows a window reads: it includes the query's own."""
    return int(group.constants["window"]) - 1
