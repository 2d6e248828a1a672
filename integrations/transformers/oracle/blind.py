"""The blind arm: a cache that knows tokens and block tables, and asks no rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hitproof.engine.cache.slot import Slot, TableEntry
from hitproof.spec.bound import BoundGroup
from hitproof.spec.facts import Value
from hitproof.spec.memory import Extent
from hitproof.spec.rows import has_rows, is_state

__all__ = ["Blind"]


@dataclass(frozen=True, slots=True)
class _Noted:
    """Where rows of a stored prompt were written: tokens [start, end), and the page table as it was published."""

    slot: Slot
    incarnation: int
    start: int
    end: int
    rows: int
    table: tuple[TableEntry, ...]

    @property
    def extent(self) -> Extent:
        """The rows by the page table as it is; by the one that was noted where the segment is gone or elsewhere."""
        same = self.slot.incarnation == self.incarnation and self.slot.table
        table = self.slot.table if same else self.table
        return Extent(self.slot.group.id, tuple(block for block, _ in table), self.rows)


class Blind:
    """What a cache hands out that compares tokens and nothing else.

    It takes the longest stored prefix in whole hash units, or a whole stored prompt, and puts into the library's cache
    what the page tables lead to. Of a window it gives the rows by position where the segment reaches back so far, else
    the youngest rows as they lie; of a state the one of this length, else the youngest. It never measures.

    Args:
        cache: The prefix cache whose memory it reads.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._stored: list[tuple[tuple[int, ...], list[_Noted]]] = []

    def note(self, tokens: Sequence[int], facts: Mapping[str, Value] | None = None) -> None:
        """Remember where the segments of a prompt lie that was just stored."""
        manager = self._cache.manager
        noted = [
            _Noted(slot, slot.incarnation, slot.facts.start, slot.facts.end, slot.extent.rows, slot.table)
            for slot in manager.find(manager.prompt(list(tokens), {**self._cache.identity, **(facts or {})}))
            if slot.extent is not None
        ]
        self._stored.append((tuple(tokens), noted))

    def find(self, tokens: Sequence[int]) -> tuple[Any, int]:
        """A cache of the library with what the longest match has, and how many tokens that is."""
        best = max(self._stored, key=lambda one: self._match(one[0], tokens), default=None)
        length = 0 if best is None else self._match(best[0], tokens)
        past = self._cache.state.fresh()
        if best is None or not length:
            return past, 0
        for group in self._cache.engine.bound.groups:
            pieces = [one for one in best[1] if one.slot.group is group]
            if has_rows(group) and group.object != "layer_inputs" and pieces:
                self._install(past, group, pieces, length)
        self._cache.state.finish(past, length, check=False)
        return past, length

    def _match(self, stored: tuple[int, ...], tokens: Sequence[int]) -> int:
        same = 0
        for one, other in zip(stored, tokens, strict=False):
            if one != other:
                break
            same += 1
        if same == len(stored) and same < len(tokens):
            return same
        unit: int = self._cache.manager.unit
        return min(same, len(tokens) - 1) // unit * unit

    def _install(self, past: Any, group: BoundGroup, pieces: list[_Noted], length: int) -> None:
        state = self._cache.state
        if is_state(group):
            one = next((piece for piece in pieces if piece.end == length), max(pieces, key=lambda piece: piece.end))
            state.install(past, group.id, max(0, length - (one.end - one.start)), length, self._read(one))
            return
        tokens = int(group.constants.get("row_tokens", 1))
        if "window" in group.constants:
            first = max(0, length - int(group.constants["window"]) + 1)
            rows = self._by_position(pieces, first, length, tokens)
            if rows is None:
                one = max(pieces, key=lambda piece: piece.end)
                held = one.end - one.start
                first = max(first, length - held)
                rows = self._array(one)[:, (held - (length - first)) // tokens :]
            state.install(past, group.id, first, length, rows.tobytes())
            return
        end = length // tokens * tokens
        parts = [
            self._array(piece)[:, : (min(piece.end, end) - piece.start) // tokens]
            for piece in sorted(pieces, key=lambda piece: piece.start)
            if piece.start < end
        ]
        if parts:
            state.install(past, group.id, 0, end, np.concatenate(parts, axis=1).tobytes())

    def _by_position(self, pieces: list[_Noted], first: int, length: int, tokens: int) -> Any:
        """Rows of the tokens [first, length) where segments have them one after the other, else None."""
        parts, reached = [], first
        for one in sorted(pieces, key=lambda piece: piece.start):
            if one.start <= reached < one.end:
                end = min(one.end, length)
                parts.append(self._array(one)[:, (reached - one.start) // tokens : (end - one.start) // tokens])
                reached = end
        return np.concatenate(parts, axis=1) if reached == length and parts else None

    def _read(self, one: _Noted) -> bytes:
        return bytes(self._cache.manager.memory.read(one.extent))

    def _array(self, one: _Noted) -> Any:
        """Rows as bytes [layers, rows, row_bytes]."""
        shape = self._cache.manager.memory.shape(one.slot.group.id)
        return np.frombuffer(self._read(one), np.uint8).reshape(shape.layers, one.rows, shape.row_bytes)
