"""How many bytes and rows a group's segments have, by the constants of its profile; and what cannot be handed over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Never

import torch

from hitproof.spec.errors import TensorError
from hitproof.spec.profile import Group, Profile

__all__ = ["NotHeldError", "Piece", "RowLayout", "as_bytes", "as_values", "in_all", "joined", "refuse", "state_of"]


class NotHeldError(TensorError):
    """Rows were asked for, or are needed, that nobody holds: a window slid on, a state is of another length."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What one segment of a group consists of.

    Args:
        group: Group id.
        layers: Layers that own its rows, in the order of their bytes.
        row_bytes: Bytes of one row in one layer.
        row_tokens: Tokens that a row stands for.
        state_rows: Rows of a state, whatever its length; 0 where the group has a row a span of tokens.
    """

    group: str
    layers: tuple[int, ...]
    row_bytes: int
    row_tokens: int
    state_rows: int

    @classmethod
    def of(cls, profile: Profile, group: Group) -> RowLayout:
        """The layout of a group that has bytes."""
        constants = profile.constants_of(group)
        count, state = len(group.layers), int(constants.get("state_bytes", 0))
        row = int(constants.get("row_bytes", state))
        return cls(group.id, group.layers, row // count, int(constants.get("row_tokens", 1)), state // row)

    def rows(self, start: int, end: int) -> int:
        """Rows of a segment of the tokens [start, end)."""
        return self.state_rows or end // self.row_tokens - start // self.row_tokens


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of the tokens [start, end) as they were handed over: uint8 [layers, rows, row_bytes]."""

    start: int
    end: int
    rows: Any


def in_all(spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Tokens [start, end) that every layer has, where layers may differ; (0, 0) where there are none."""
    starts, ends = zip(*spans, strict=True)
    start, end = max(starts), min(ends)
    return (start, end) if start < end else (0, 0)


def refuse(layout: RowLayout, start: int, end: int, held: tuple[int, int]) -> Never:
    """Refuse to hand out rows; always raises NotHeldError."""
    raise NotHeldError(
        "the cache does not hold these rows any more, or not yet",
        rule=layout.group,
        got=f"tokens {start} to {end}",
        expected=f"within {held[0]} to {held[1]}",
    )


def joined(layout: RowLayout, pieces: Sequence[Piece], start: int, end: int, check: bool) -> Any:
    """Rows of the tokens [start, end) out of several pieces: uint8 [layers, rows, row_bytes].

    Args:
        layout: Of the group.
        pieces: What was handed over.
        start: First token.
        end: One past the last.
        check: Whether every row must be there; else the youngest of those that are there are taken as they lie.

    Raises:
        NotHeldError: A row is in none of them.
    """
    at, to = start // layout.row_tokens, end // layout.row_tokens
    parts = [torch.empty((len(layout.layers), 0, layout.row_bytes), dtype=torch.uint8)]
    if not check:
        lying = torch.cat(parts + [piece.rows for piece in sorted(pieces, key=lambda piece: piece.start)], dim=1)
        return lying[:, max(0, lying.shape[1] - (to - at)) :]
    while at < to:
        for piece in pieces:
            first = piece.start // layout.row_tokens
            if first <= at < first + piece.rows.shape[1]:
                parts.append(piece.rows[:, at - first : to - first])
                at += parts[-1].shape[1]
                break
        else:
            raise NotHeldError(
                "rows are missing that the length reads",
                rule=layout.group,
                got=[(piece.start, piece.end) for piece in pieces],
                expected=f"the tokens {start} to {end}, and above all {at * layout.row_tokens}",
            )
    return torch.cat(parts, dim=1)


def state_of(layout: RowLayout, pieces: Sequence[Piece], length: int, check: bool) -> Piece | None:
    """The state that was handed over for a length; unchecked, the youngest one, or none.

    Raises:
        NotHeldError: There is none of just this length.
    """
    if not check:
        return max(pieces, key=lambda piece: piece.end, default=None)
    for piece in pieces:
        if piece.end == length:
            return piece
    raise NotHeldError(
        "the state of this length is missing",
        rule=layout.group,
        got=[piece.end for piece in pieces],
        expected=length,
    )


def as_bytes(values: Any) -> Any:
    """uint8 [..., bytes] of a tensor [..., values] on any device."""
    return values.detach().cpu().contiguous().view(torch.uint8)


def as_values(rows: Any, dtype: torch.dtype) -> Any:
    """The tensor [..., values] that such bytes are."""
    return rows.contiguous().view(dtype)
