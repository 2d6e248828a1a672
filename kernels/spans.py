"""Rows in blocks by the token that they stand for, and rows at any slots of a table."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import Pool, gather, read_table, scatter
from hitproof.kernels.relayout import clear
from hitproof.spec.errors import TensorError

__all__ = [
    "Span",
    "copied_into",
    "fits",
    "gather_slots",
    "located",
    "own_blocks",
    "read_span",
    "ring_span",
    "scatter_slots",
    "write_span",
]


@dataclass(frozen=True, slots=True)
class Span:
    """Rows of consecutive tokens.

    Args:
        pool: The blocks.
        table: int64 [blocks]: row r lies in block table[r // P], at r % P.
        start, end: The tokens [start, end) whose rows these are; that of `start` + s is row `first` + s.
        first: Row of the table's first block at which they begin.
    """

    pool: Pool
    table: torch.Tensor
    start: int
    end: int
    first: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise TensorError("the span is no run of tokens", got=f"[{self.start}, {self.end})")


def read_span(span: Span, first: int, to: int) -> torch.Tensor:
    """uint8 [T, H, C]: the rows of the tokens [first, to), a copy.

    Raises:
        TensorError: The span does not hold them all.
    """
    block, row = _place(span, first, to)
    return gather(span.pool, span.table[block:], to - first, row)


def write_span(span: Span, first: int, rows: torch.Tensor) -> None:
    """Write the rows of the tokens from `first` on, and no byte besides.

    Args:
        span: Where to; its pool is changed.
        first: Token of the first row.
        rows: uint8 [T, H, C].

    Raises:
        TensorError: They are not tokens of the span, or do not fit it. Nothing is written.
    """
    block, row = _place(span, first, first + rows.shape[0])
    scatter(span.pool, span.table[block:], rows, row)


def located(span: Span, first: int, to: int) -> int:
    """Row of the span's table, counted from its first block, at which the token `first` lies.

    Raises:
        TensorError: The span does not hold the tokens [first, to), or its table not their blocks.
    """
    block, row = _place(span, first, to)
    read_table(span.pool, span.table[block:], to - first, row)
    return span.first + first - span.start


def ring_span(pool: Pool, table: torch.Tensor, start: int, end: int) -> Span:
    """Rows of a ring of whole blocks, as a span whose table goes round.

    Args:
        pool: The blocks.
        table: int64 [blocks]: the ring's slots in order, R = blocks * P of them; token p lies at slot p % R.
        start, end: The tokens [start, end) that it holds.

    Returns:
        A span to be read; its first and last block may be one.

    Raises:
        TensorError: The ring has fewer slots than that.
    """
    rows, blocks = pool.geometry.rows, table.numel()
    if end - start > blocks * rows:
        raise TensorError("the ring has fewer slots", got=blocks * rows, expected=f"{end - start} or more")
    first = start % rows
    count = -(-(first + end - start) // rows)
    order = (start // rows + torch.arange(count, dtype=torch.int64)) % max(blocks, 1)
    return Span(pool, table[order], start, end, first)


def gather_slots(pool: Pool, table: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    """Rows at any slots of a table.

    Args:
        pool: The blocks.
        table: int64 [blocks]: slot s is row s % P of block table[s // P].
        slots: int64 [T].

    Returns:
        uint8 [T, H, C], a copy.

    Raises:
        TensorError: A slot or a block is not there.
    """
    geometry = pool.geometry
    blocks, rows = _slots(pool, table, slots)
    return pool.cells[blocks, rows].reshape(slots.numel(), geometry.heads, geometry.cell_bytes)


def scatter_slots(pool: Pool, table: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor) -> None:
    """Write rows to any slots of a table, each once, and no byte besides.

    Args:
        pool: The blocks; changed.
        table: int64 [blocks], as in `gather_slots`.
        slots: int64 [T].
        rows: uint8 [T, H, C].

    Raises:
        TensorError: A slot or a block is not there or is named twice, or shapes do not fit. Nothing is written.
    """
    fits(pool, rows)
    geometry = pool.geometry
    blocks, places = _slots(pool, table, slots)
    if torch.unique(blocks * geometry.rows + places).numel() != slots.numel():
        raise TensorError("a row is written twice", got=slots.numel(), expected="each slot and each block once")
    pool.cells[blocks, places] = rows.reshape(slots.numel(), *geometry.shape[1:])


def fits(pool: Pool, rows: torch.Tensor) -> None:
    """Rows uint8 [T, H, C] are of the pool's heads and bytes.

    Raises:
        TensorError: They are not.
    """
    geometry = pool.geometry
    if rows.dtype != torch.uint8 or tuple(rows.shape[1:]) != (geometry.heads, geometry.cell_bytes):
        raise TensorError(
            "the rows do not fit the pool",
            got=f"{rows.dtype} {list(rows.shape)}",
            expected=f"torch.uint8 [T, {geometry.heads}, {geometry.cell_bytes}]",
        )


def own_blocks(
    pool: Pool, table: torch.Tensor, count: int, source: Pool, held: torch.Tensor, first: int = 0
) -> list[int]:
    """The blocks of a copy: a repair writes into blocks of its own, never over the bytes that were found.

    Args:
        pool: Where to.
        table: int64 [blocks]: the copy's blocks.
        count: Rows of the copy.
        source: Where from; of the same buffer or of another.
        held: int64: the blocks that are read there.
        first: Row of the copy's first block at which it begins.

    Raises:
        TensorError: A block is not there or is named twice, or shares bytes with one that is read.
    """
    blocks = read_table(pool, table, count, first)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")
    read, written = _extents(source, held), _extents(pool, table[: len(blocks)])
    overlap = (read[:, None, 0] < written[None, :, 1]) & (written[None, :, 0] < read[:, None, 1])
    if bool(overlap.any()):
        place = int(torch.nonzero(overlap)[0, 1])
        raise TensorError(
            "the copy lies over what it is made from", got=f"block {blocks[place]}", expected="blocks of its own"
        )
    return blocks


def copied_into(into: Span, source: Span, rows: torch.Tensor) -> None:
    """Fill private blocks with the rows of all tokens of a span; all that is left of the blocks is zeroed.

    Args:
        into: The place, from the first row of its first block on; changed.
        source: What the rows were made from.
        rows: uint8 [T, H, C].

    Raises:
        TensorError: The rows do not fit, or the place is not the copy's own. Nothing is written.
    """
    fits(into.pool, rows)
    count = into.end - into.start
    if into.first or rows.shape[0] != count:
        raise TensorError(
            "the rows do not fill the place",
            got=f"{rows.shape[0]} from row {into.first}",
            expected=f"{count} from row 0",
        )
    clear(into.pool, own_blocks(into.pool, into.table, rows.shape[0], source.pool, source.table))
    write_span(into, into.start, rows)


def _extents(pool: Pool, table: torch.Tensor) -> torch.Tensor:
    """int64 [blocks, 2]: first byte of each block in memory, and one past the last."""
    begin = pool.buffer.data_ptr() + pool.geometry.address(table, 0)
    return torch.stack((begin, begin + pool.geometry.block_bytes), dim=-1)


def _place(span: Span, first: int, to: int) -> tuple[int, int]:
    """Index in the table, and row in its block, of the token `first`."""
    if not span.start <= first <= to <= span.end:
        raise TensorError(
            "the span does not hold these tokens", got=f"[{first}, {to})", expected=f"in [{span.start}, {span.end})"
        )
    return divmod(span.first + first - span.start, span.pool.geometry.rows)


def _slots(pool: Pool, table: torch.Tensor, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Block and row of each slot, int64 [T] each."""
    if slots.dtype != torch.int64 or slots.dim() != 1:
        raise TensorError("slots are one row of int64", got=f"{slots.dtype} {list(slots.shape)}")
    capacity = table.numel() * pool.geometry.rows
    read_table(pool, table, capacity)
    if slots.numel() and not 0 <= int(slots.min()) <= int(slots.max()) < capacity:
        raise TensorError(
            "the table has no such slot",
            got=f"{int(slots.min())} to {int(slots.max())}",
            expected=f"0 to {capacity - 1}",
        )
    return table[slots // pool.geometry.rows], slots % pool.geometry.rows
