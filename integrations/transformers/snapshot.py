"""What a live cache truly has at a length, as segments, and these written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hitproof.engine.cache import CacheManager, Hold, Prompt
from hitproof.engine.compile import CompiledGroup
from hitproof.integrations.transformers.state import NotHeldError, StateMap
from hitproof.spec.memory import Extent
from hitproof.spec.rows import has_rows, is_state

__all__ = ["Piece", "Snapshots", "written"]

_ELSEWHERE = ("demoted_prefix", "layer_inputs")
"""Objects that no live cache holds: the manager's own record, and what hooks have kept."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment that can be written.

    Args:
        group: Group id.
        start, end: Tokens that it stands for.
        payload: Its rows, [layers][rows][row_bytes]; empty for a record without bytes.
    """

    group: str
    start: int
    end: int
    payload: bytes


class Snapshots:
    """Pieces of one prompt, taken at one stop after the other while the prompt is computed.

    A window slides on and a state is one of a single length, so both are taken at every stop at which others shall be
    able to resume. What only grows is taken from stop to stop, since a segment is found at its end and at hash units.

    Args:
        state: Which tensors are which group's rows.
        groups: The groups of the model, each after the peers that it reads.
        reused: Tokens whose state is stored already.
    """

    def __init__(self, state: StateMap, groups: Iterable[CompiledGroup], reused: int) -> None:
        self._state, self._groups, self._reused = state, tuple(groups), reused
        self._taken: dict[str, list[Piece]] = {group.id: [] for group in self._groups}

    def take(self, cache: Any, length: int, *, last: bool, row: int = 0) -> None:
        """Take what the cache has of so many leading tokens, and no more than it has.

        Args:
            cache: The live cache; its position is at least `length`.
            length: The stop.
            last: Whether no other stop follows.
            row: Row of the batch.
        """
        for group in self._groups:
            bound = group.bound
            if bound.object in _ELSEWHERE:
                continue
            if not has_rows(bound):
                if last:
                    self._taken[group.id].append(Piece(group.id, 0, length, b""))
            elif is_state(bound):
                self._take_state(cache, group, length, row)
            else:
                self._take_rows(cache, group, length, row)

    def add(self, piece: Piece) -> None:
        """Add what no live cache holds."""
        self._taken[piece.group].append(piece)

    def pieces(self) -> list[Piece]:
        """All that was taken, peers before those that read them."""
        return [piece for group in self._groups for piece in self._taken[group.id]]

    def _take_state(self, cache: Any, group: CompiledGroup, length: int, row: int) -> None:
        """A state of this very length, or nothing: one of another length is another state."""
        if group.idle is not None and group.idle(length):
            return
        start, end = group.span(length)
        try:
            payload = self._state.rows(cache, group.id, start, end, row=row)
        except NotHeldError:
            return
        self._taken[group.id].append(Piece(group.id, start, end, payload))

    def _take_rows(self, cache: Any, group: CompiledGroup, length: int, row: int) -> None:
        for start, end in self._spans(cache, group, length):
            try:
                payload = self._state.rows(cache, group.id, start, end, row=row)
            except NotHeldError:
                continue
            self._taken[group.id].append(Piece(group.id, start, end, payload))

    def _spans(self, cache: Any, group: CompiledGroup, length: int) -> Iterator[tuple[int, int]]:
        """What is needed at the length, is not written yet, and is held: whole rows of it."""
        tokens = int(group.bound.constants.get("row_tokens", 1))
        held_from, held_to = self._state.held(cache, group.id)
        first, to = group.span(length)
        taken = self._taken[group.id]
        first = max(first, self._reused - self._reused % tokens, held_from, taken[-1].end if taken else 0)
        first, to = -(-first // tokens) * tokens, min(to, held_to) // tokens * tokens
        if first < to:
            yield first, to


def written(manager: CacheManager, prompt: Prompt, hold: Hold, pieces: Sequence[Piece]) -> str:
    """Write pieces and let look-ups find them, all at once.

    The manager is told what was meant to be written, and measures what lies there.

    Args:
        manager: The cache manager.
        prompt: Whose they are.
        hold: What the prompt reuses, open.
        pieces: Peers before those that read them.

    Returns:
        Why nothing was written; empty where everything was.
    """
    if not pieces:
        return "the cache has nothing that could be stored"
    spans = [(piece.group, piece.start, piece.end) for piece in pieces]
    writing = manager.begin(prompt, hold, spans=spans)
    if writing is None:
        return "there is no room"
    payloads = {(piece.group, piece.start, piece.end): piece.payload for piece in pieces}
    meant: dict[Extent, str] = {}
    try:
        for group, places in writing.extents.items():
            for start, end, extent in places:
                payload = payloads[group, start, end]
                writing.put(extent, 0, payload)
                meant[extent] = manager.memory.digest(group, payload)
    except BaseException:
        writing.abort()
        raise
    return writing.commit(meant)
