"""Which piece of a peer group answers for a piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitproof.engine.compile import CompiledGroup

__all__ = ["Judged", "fitting", "peer_places"]

Judged = tuple[int, Any, int, int, bool]
"""A piece after its repair: index, segment, share first, share to, ready."""


def fitting(peers: Sequence[Judged], low: int, high: int) -> int:
    """Place of the only piece, else of the first whose share covers the tokens `[low, high)`; -1 where none does."""
    if len(peers) == 1:
        return 0
    return next((place for place, peer in enumerate(peers) if peer[2] <= low and high <= peer[3]), -1)


def peer_places(
    group: CompiledGroup, used: Sequence[Sequence[Judged]], low: int, high: int
) -> tuple[tuple[int, int], ...]:
    """Group index and place of the piece that each role's peer group has for the tokens `[low, high)`."""
    return tuple((index, fitting(used[index], low, high)) for index in group.peer_index)
