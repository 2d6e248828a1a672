"""The cache of a replay: blocks in three tiers, with the state that a retention keeps on some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitproof.engine.replay.retention import Retention
from hitproof.engine.replay.serving import Serving
from hitproof.engine.replay.stores import Run, StateStore, store_of
from hitproof.engine.tiers import DEVICE, TieredLru
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.decision import Decision

__all__ = ["Directory", "Found"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a look-up finds.

    Attributes:
        blocks: Known blocks from the start, the last of which may be partly filled: what a hash-only cache claims.
        matched: Tokens that they stand for.
        pieces: The segments of each group on the known whole blocks.
    """

    blocks: int
    matched: int
    pieces: Mapping[str, Sequence[Any]]


class Directory:
    """Blocks and what belongs to them. Each known block is in one tier, with all groups' rows of its tokens.

    Only whole blocks end in a boundary. A block that every writer so far has filled in part counts as known, but
    offers nothing.

    Args:
        bound: The rulebook, bound to a profile.
        serving: The process that writes.
        retention: Which boundaries keep the state that belongs to a length.
        unit: Tokens of a block.
        capacities: Blocks that device, host and disk hold; None is unlimited.
    """

    def __init__(
        self,
        bound: BoundRulebook,
        serving: Serving,
        retention: Retention,
        unit: int,
        capacities: tuple[int | None, int | None, int | None],
    ) -> None:
        self._serving, self._retention, self._unit = serving, retention, unit
        noted: dict[int, int] = {}
        self._stores = {group.id: store_of(group, serving, retention, unit, noted) for group in bound.groups}
        self._partial: dict[int, None] = {}
        # States that lie in one block share what is noted, so one of them speaks for all.
        self._states = [store for store in self._stores.values() if isinstance(store, StateStore)]
        self._keepers = list({id(store.noted): store for store in self._states}.values())
        tables = [store.noted for store in self._keepers if retention.noted]
        self._lru = TieredLru(
            *capacities,
            on_demote=_forget(tables) if retention.device_only else None,
            on_lost=_forget(
                [
                    self._partial,
                    *tables,
                    *(store.written for store in self._stores.values() if serving.may_change),
                ]
            ),
        )

    def look_up(self, ids: Sequence[int], tokens: int) -> Found:
        """Finds the longest known prefix of a request; changes nothing.

        Args:
            ids: The request's block ids.
            tokens: Length of the prompt in tokens.
        """
        tiers = self._lru.lookup(ids)
        known = len(tiers)
        whole = min(known, tokens // self._unit)
        partial = self._partial
        if not partial.keys().isdisjoint(ids[:whole]):
            whole = next(place for place in range(whole) if ids[place] in partial)
        matched = min(known * self._unit, tokens)
        runs = _runs(tiers, whole)
        pieces = {name: store.pieces(ids, runs, matched) for name, store in self._stores.items()} if runs else {}
        return Found(known, matched, pieces)

    def admit(self, ids: Sequence[int], tokens: int, found: Found, decision: Decision) -> None:
        """Brings a decided request's blocks to the device, with what it repaired and computed; changes the cache.

        Args:
            ids: The request's block ids.
            tokens: Length of the prompt in tokens.
            found: What the look-up found.
            decision: What was decided on it.
        """
        whole = min(len(ids), tokens // self._unit)
        reused = decision.usable // self._unit
        if self._partial:
            for block in ids[reused:whole]:
                self._partial.pop(block, None)
        if whole < len(ids) and found.blocks < len(ids):
            self._partial[ids[-1]] = None
        if self._serving.generation:
            self._restamp(ids[:whole], reused, found, decision)
        for boundary in self._retention.boundaries(reused, whole):
            for store in self._keepers:
                store.keep(ids, boundary)
        self._lru.admit(ids)

    def touch(self, ids: Sequence[int]) -> None:
        """Brings blocks that are about to be used to the device; changes the cache."""
        self._lru.admit(ids)

    def absent(self, ids: Sequence[int]) -> int:
        """How many of these blocks do not lie on the device."""
        return sum(self._lru.tier_of(block) != DEVICE for block in ids)

    def filled(self) -> int:
        """Blocks that the device holds now."""
        return self._lru.sizes()[0]

    def oldest(self) -> int | None:
        """The block of the device that was touched longest ago, or None."""
        return self._lru.oldest()

    def demote_oldest(self) -> bool:
        """Moves that block to the next tier before its room is needed; False where there is none below."""
        return self._lru.demote_oldest()

    def check_integrity(self) -> None:
        """Proves the cache's own promises.

        Raises:
            InternalError: The tiers contradict each other.
        """
        self._lru.check_integrity()

    def _restamp(self, ids: Sequence[int], reused: int, found: Found, decision: Decision) -> None:
        """What was computed, or mended in place, is of the serving process's present generation."""
        generation = self._serving.generation
        for store in self._stores.values():
            store.written.update(dict.fromkeys(ids[reused:], generation))
        # The last boundary is kept as it was used, even where nothing beyond it was computed.
        if reused and reused == len(ids):
            for store in self._states:
                store.written.update((ids[place], generation) for place in store.blocks_at(reused))
        for step in decision.plan:
            if step.level == "in_place" and step.segment >= 0:
                store = self._stores[step.group]
                for place in store.blocks_of(found.pieces[step.group][step.segment]):
                    store.written[ids[place]] = generation


def _forget(tables: Sequence[dict[int, Any]]) -> Callable[..., None]:
    """What happens when a block goes: the tables forget it."""
    if len(tables) == 1:
        only = tables[0].pop

        def forget(block: int, *_: object) -> None:
            only(block, None)

    else:

        def forget(block: int, *_: object) -> None:
            for table in tables:
                table.pop(block, None)

    return forget


def _runs(tiers: Sequence[int], whole: int) -> list[Run]:
    """The first `whole` blocks as runs of one tier."""
    runs: list[Run] = []
    first = 0
    for place in range(1, whole):
        if tiers[place] != tiers[first]:
            runs.append((first, place, tiers[first]))
            first = place
    if whole:
        runs.append((first, whole, tiers[first]))
    return runs
