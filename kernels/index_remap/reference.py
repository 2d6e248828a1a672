"""An index led to the rows to which its entries have moved: the same keys, with their rows written anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import read_table
from hitproof.kernels.checksum.reference import MASK, share_of
from hitproof.kernels.spans import Span, copied_into, own_blocks, read_span
from hitproof.spec.errors import TensorError

__all__ = ["Move", "Remapped", "RowMap", "index_remap", "index_remap_measured", "remapped", "require_copy"]

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class RowMap:
    """Where each key of an index leads; the same for all layers, since their entries share block tables.

    Args:
        rows: int32 or int64 [E]: the row of the entries' pool, block * P + row, to which key e leads; -1 for a key
            that leads nowhere.
        positions: int64 [E]: the token position that key e stands for.
    """

    rows: torch.Tensor
    positions: torch.Tensor

    def __post_init__(self) -> None:
        if self.rows.dtype not in (torch.int32, torch.int64) or self.rows.dim() != 1:
            raise TensorError(
                "rows of an index are whole numbers",
                got=f"{self.rows.dtype} {list(self.rows.shape)}",
                expected="torch.int32 or torch.int64 [E]",
            )
        if self.positions.dtype != torch.int64 or self.positions.shape != self.rows.shape:
            raise TensorError(
                "an index has one position a key",
                got=f"{self.positions.dtype} {list(self.positions.shape)}",
                expected=f"torch.int64 {list(self.rows.shape)}",
            )


@dataclass(frozen=True, slots=True)
class Move:
    """How the entries moved.

    Args:
        old: int64 [M]: rows before, ascending.
        new: int64 [M]: where each of them lies now; -1 for one that is no more.
        positions: int64 [M]: the token position that is now held at `new`, as its owner records it; of no meaning
            where there is none.
        generation: The entries' generation after the move, which the index takes on; None where nobody asks.
    """

    old: torch.Tensor
    new: torch.Tensor
    positions: torch.Tensor
    generation: int | None = None

    def __post_init__(self) -> None:
        for name, table in (("old", self.old), ("new", self.new), ("positions", self.positions)):
            if table.dtype != torch.int64 or table.shape != self.old.shape or table.dim() != 1:
                raise TensorError(
                    f"`{name}` of a move is one row of int64",
                    got=f"{table.dtype} {list(table.shape)}",
                    expected=f"torch.int64 [{self.old.numel()}]",
                )
        if self.old.numel() and bool((self.old.diff() <= 0).any()):
            raise TensorError("the rows of a move do not ascend", got=self.old.tolist()[:20])


@dataclass(frozen=True, slots=True)
class Remapped:
    """What came of it.

    Args:
        rows: [E] in the map's type: where each key leads now; -1 for keys that led nowhere, and for lost ones.
        lost: int64: keys whose entry is no more, or of whose row the move says nothing.
        misled: int64: keys whose new row holds another position than theirs, or to which another key leads as well.
    """

    rows: torch.Tensor
    lost: torch.Tensor
    misled: torch.Tensor

    @property
    def whole(self) -> bool:
        """Whether every key that led somewhere leads to its own entry; if not, the index has to be rebuilt."""
        return not self.lost.numel() and not self.misled.numel()


def remapped(found: RowMap, move: Move) -> Remapped:
    """Lead each key to the row where its entry lies now.

    Args:
        found: The map as it was; only read.
        move: Where the rows of the entries went.

    Raises:
        TensorError: A new row is too large for the map's type.
    """
    old = found.rows.to(torch.int64)
    leads = old >= 0
    # A sentinel behind the table answers for rows of which the move says nothing.
    place = torch.searchsorted(move.old, old.clamp(min=0))
    known = leads & (torch.cat((move.old, move.old.new_tensor([NOWHERE])))[place] == old)
    new = torch.full_like(old, NOWHERE)
    new[known] = move.new[place[known]]
    held = new >= 0
    misled = torch.zeros_like(held)
    misled[held] = move.positions[place[held]] != found.positions[held]
    ends, count = torch.unique(new[held], return_counts=True)
    misled |= held & torch.isin(new, ends[count > 1])
    lost = torch.nonzero(leads & ~held).flatten()
    return Remapped(_narrowed(new, found.rows.dtype), lost, torch.nonzero(misled).flatten())


def index_remap(keys: Sequence[Span], found: RowMap, move: Move, into: Sequence[Span], copy: RowMap) -> Remapped:
    """Copy an index into private blocks, each key leading to the row where its entry lies now.

    Where a key is lost or misled, nothing is written.

    Args:
        keys: A span a layer, key e in row e, which counts keys where others count tokens; only read.
        found: Where they lead; only read.
        move: Where the rows of the entries went.
        into: A span a layer for the same keys; their geometry may be another. Changed.
        copy: Map of the copy, of the same type and length; overwritten.

    Raises:
        TensorError: The copy is of other keys or layers, or lies over the index.
    """
    require_copy(keys, found, into, copy)
    result = remapped(found, move)
    if result.whole:
        for layer, place in zip(keys, into, strict=True):
            copied_into(place, layer, read_span(layer, layer.start, layer.end))
        copy.rows.copy_(result.rows)
        copy.positions.copy_(found.positions)
    return result


def index_remap_measured(
    keys: Sequence[Span], found: RowMap, move: Move, into: Sequence[Span], copy: RowMap
) -> tuple[Remapped, int]:
    """The same, and what the copied keys add to the sum of their fingerprint; a layer's heads follow the last one's.

    Returns:
        What came of it, and the share as `checksum.reference.partial` gives it; 0 where nothing was written.
    """
    result = index_remap(keys, found, move, into, copy)
    heads = [place.pool.geometry.heads for place in into]
    shares = (
        share_of(place.pool, place.table, found.rows.numel(), head=sum(heads[:layer]), heads=sum(heads))
        for layer, place in enumerate(into)
    )
    return result, sum(shares) & MASK if result.whole else 0


def require_copy(keys: Sequence[Span], found: RowMap, into: Sequence[Span], copy: RowMap) -> None:
    """A copy has a place of its own for every key of every layer; arguments as in `index_remap`.

    Raises:
        TensorError: It is of other keys or layers, or lies over the index.
    """
    if copy.rows.dtype != found.rows.dtype or copy.rows.shape != found.rows.shape or len(into) != len(keys):
        raise TensorError(
            "the copy is of another index",
            got=f"{len(into)} layers, {copy.rows.dtype} {list(copy.rows.shape)}",
            expected=f"{len(keys)} layers, {found.rows.dtype} {list(found.rows.shape)}",
        )
    for layer, place in zip(keys, into, strict=True):
        if layer.end - layer.start != found.rows.numel():
            raise TensorError("an index has one row a key", got=found.rows.numel(), expected=layer.end - layer.start)
        if (place.start, place.end) != (layer.start, layer.end):
            raise TensorError(
                "the copy is of other keys",
                got=f"[{place.start}, {place.end})",
                expected=f"[{layer.start}, {layer.end})",
            )
        ours, theirs = place.pool.geometry, layer.pool.geometry
        if place.first or (ours.heads, ours.cell_bytes) != (theirs.heads, theirs.cell_bytes):
            raise TensorError(
                "the copy is no place for these keys",
                got=f"{ours.heads} x {ours.cell_bytes} bytes from row {place.first}",
                expected=f"{theirs.heads} x {theirs.cell_bytes} bytes from row 0",
            )
        read_table(layer.pool, layer.table, found.rows.numel(), layer.first)
        own_blocks(place.pool, place.table, found.rows.numel(), layer.pool, layer.table)


def _narrowed(rows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    largest = torch.iinfo(dtype).max
    if rows.numel() and int(rows.max()) > largest:
        raise TensorError("a row is too large for the index's type", got=int(rows.max()), expected=f"up to {largest}")
    return rows.to(dtype)
