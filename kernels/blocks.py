"""Rows of a cache in blocks of one byte buffer: where each byte lies, and rows gathered and scattered by a table.

A geometry is nothing but strides, so every layout is the same five-dimensional view of the same bytes. All positions
are 64-bit: a buffer may be longer than 2**31 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from hitproof.spec.errors import TensorError

__all__ = ["Geometry", "Layout", "Pool", "block_slices", "gather", "pool_of", "read_table", "scatter"]

Layout = Literal["token_major", "head_major", "value_major"]
"""Order within a block: rows by token, rows by head, or single values by head with the tokens innermost (V as some
kernels keep it)."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where rows lie in a pool of blocks. All sizes in bytes, except counts.

    Args:
        rows: Rows a block (P): tokens, or compressed entries.
        heads: KV heads (H); 1 for latents, and for rows that are stored as one.
        cell_bytes: Bytes of one head's part of a row (C), inline scales included.
        layout: Order within a block.
        pitch: From one row's start to the next; 0 for no gap. In `token_major` a row holds all heads, in `head_major`
            one; `value_major` has no gaps.
        block_bytes: What belongs to a block, padding included; 0 for no padding.
        stride: From one block's first row to the next block's; 0 for `block_bytes`.
        offset: From the buffer's start to the first row of block 0; any byte.
        item_bytes: Bytes of one value, for `value_major` alone.
    """

    rows: int
    heads: int
    cell_bytes: int
    layout: Layout = "token_major"
    pitch: int = 0
    block_bytes: int = 0
    stride: int = 0
    offset: int = 0
    item_bytes: int = 1

    def __post_init__(self) -> None:
        for name in ("rows", "heads", "cell_bytes", "item_bytes"):
            _at_least(name, getattr(self, name), 1)
        _at_least("offset", self.offset, 0)
        if self.cell_bytes % self.item_bytes:
            raise TensorError("a row is no whole number of values", got=self.cell_bytes, expected=self.item_bytes)
        shortest = self.cell_bytes * (self.heads if self.layout == "token_major" else 1)
        object.__setattr__(self, "pitch", self.pitch or shortest)
        if self.layout == "value_major" and self.pitch != shortest:
            raise TensorError("values by head have no row pitch", got=self.pitch, expected=0)
        _at_least("pitch", self.pitch, shortest)
        object.__setattr__(self, "block_bytes", self.block_bytes or self.used_bytes)
        _at_least("block_bytes", self.block_bytes, self.used_bytes)
        object.__setattr__(self, "stride", self.stride or self.block_bytes)
        _at_least("stride", self.stride, self.block_bytes)

    @property
    def used_bytes(self) -> int:
        """From a block's first byte to the last byte of its last row."""
        if self.layout == "value_major":
            return self.rows * self.heads * self.cell_bytes
        rows, last = (self.rows, self.heads) if self.layout == "token_major" else (self.rows * self.heads, 1)
        return (rows - 1) * self.pitch + last * self.cell_bytes

    @property
    def steps(self) -> tuple[int, int, int, int, int]:
        """Bytes from a block, row, head, value and byte to the next."""
        if self.layout == "token_major":
            return self.stride, self.pitch, self.cell_bytes, self.cell_bytes, 1
        if self.layout == "head_major":
            return self.stride, self.pitch, self.rows * self.pitch, self.cell_bytes, 1
        return self.stride, self.item_bytes, self.rows * self.cell_bytes, self.rows * self.item_bytes, 1

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Rows, heads, values and bytes of a block's view; rows that lie whole count as one value."""
        item = self.item_bytes if self.layout == "value_major" else self.cell_bytes
        return self.rows, self.heads, self.cell_bytes // item, item

    def address(self, block: torch.Tensor | int, row: torch.Tensor | int, head: torch.Tensor | int = 0) -> torch.Tensor:
        """First byte of cells, counted from the buffer's start, as int64."""
        by_block, by_row, by_head, *_ = self.steps
        places = [torch.as_tensor(one, dtype=torch.int64) for one in (block, row, head)]
        return self.offset + places[0] * by_block + places[1] * by_row + places[2] * by_head

    def extent(self, blocks: int) -> int:
        """Bytes that a buffer needs for so many blocks, from its start."""
        return self.offset + (blocks - 1) * self.stride + self.block_bytes if blocks else self.offset


@dataclass(frozen=True, slots=True)
class Pool:
    """Blocks of one geometry in a buffer.

    Args:
        buffer: uint8 [bytes], contiguous.
        geometry: Where rows lie.
        blocks: Number of blocks (B); the buffer holds them all.

    Raises:
        TensorError: The buffer has another type or is too short.
    """

    buffer: torch.Tensor
    geometry: Geometry
    blocks: int

    def __post_init__(self) -> None:
        buffer = self.buffer
        if buffer.dtype != torch.uint8 or buffer.dim() != 1 or not buffer.is_contiguous():
            raise TensorError(
                "a pool lies in one contiguous row of bytes",
                got=f"{buffer.dtype} {list(buffer.shape)}",
                expected="torch.uint8 [bytes]",
            )
        needed = self.geometry.extent(self.blocks)
        if buffer.numel() < needed:
            raise TensorError("the buffer is shorter than its blocks", got=buffer.numel(), expected=needed)

    @property
    def cells(self) -> torch.Tensor:
        """uint8 [B, P, H, E, I]: every byte of every row, as a view; E * I = C. Gaps and padding are left out."""
        geometry = self.geometry
        return self.buffer.as_strided(
            (self.blocks, *geometry.shape), geometry.steps, self.buffer.storage_offset() + geometry.offset
        )

    @property
    def owned(self) -> torch.Tensor:
        """uint8 [B, block_bytes]: every byte of every block, gaps and padding too, as a view."""
        geometry = self.geometry
        return self.buffer.as_strided(
            (self.blocks, geometry.block_bytes), (geometry.stride, 1), self.buffer.storage_offset() + geometry.offset
        )


def pool_of(geometry: Geometry, blocks: int, *, poison: int | None = None, slack: int = 0) -> Pool:
    """A pool in a new buffer.

    Args:
        geometry: Where rows lie.
        blocks: Number of blocks.
        poison: Every byte's first value, so that what was written can be told from what was not; None for zeros.
        slack: Bytes beyond the last block, poisoned too.
    """
    size = geometry.extent(blocks) + slack
    return Pool(torch.full((size,), poison or 0, dtype=torch.uint8), geometry, blocks)


def gather(pool: Pool, table: torch.Tensor, count: int, first: int = 0) -> torch.Tensor:
    """Rows in order, out of the blocks that a table names.

    Args:
        pool: The blocks.
        table: int64 [blocks of the segment]: row s lies in block table[s // P], at s % P.
        count: Number of rows (T).
        first: Row of the table's first block at which they begin.

    Returns:
        uint8 [T, H, C], contiguous, a copy.

    Raises:
        TensorError: The table is too short, or names a block that is not there.
    """
    geometry = pool.geometry
    blocks = read_table(pool, table, count, first)
    rows = torch.empty((count, *geometry.shape[1:]), dtype=torch.uint8)
    cells = pool.cells
    for block, inside, there in block_slices(geometry.rows, blocks, count, first):
        rows[there] = cells[block, inside]
    return rows.reshape(count, geometry.heads, geometry.cell_bytes)


def scatter(pool: Pool, table: torch.Tensor, rows: torch.Tensor, first: int = 0) -> None:
    """Write rows in order into the blocks that a table names, and no byte besides.

    Args:
        pool: The blocks; changed.
        table: int64 [blocks of the segment], each block once.
        rows: uint8 [T, H, C].
        first: Row of the table's first block at which they begin.

    Raises:
        TensorError: Shapes do not fit, or the table names a block twice or one that is not there. Nothing is written.
    """
    geometry = pool.geometry
    if rows.dtype != torch.uint8 or tuple(rows.shape[1:]) != (geometry.heads, geometry.cell_bytes):
        raise TensorError(
            "the rows do not fit the pool",
            got=f"{rows.dtype} {list(rows.shape)}",
            expected=f"torch.uint8 [T, {geometry.heads}, {geometry.cell_bytes}]",
        )
    count = rows.shape[0]
    blocks = read_table(pool, table, count, first)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")
    parts = rows.reshape(count, *geometry.shape[1:])
    cells = pool.cells
    for block, inside, there in block_slices(geometry.rows, blocks, count, first):
        cells[block, inside] = parts[there]


def block_slices(rows: int, blocks: list[int], count: int, first: int) -> Iterator[tuple[int, slice, slice]]:
    """Each block with the rows of it, and of the segment, that belong together; in order."""
    done = 0
    for place, block in enumerate(blocks):
        low = first if place == 0 else 0
        high = min(rows, low + count - done)
        if high > low:
            yield block, slice(low, high), slice(done, done + high - low)
            done += high - low


def read_table(pool: Pool, table: torch.Tensor, count: int, first: int = 0) -> list[int]:
    """The blocks of a table that rows `first` to `first + count` lie in.

    Raises:
        TensorError: It is no int64 row, is too short, or names a block that is not there.
    """
    rows = pool.geometry.rows
    if table.dtype != torch.int64 or table.dim() != 1:
        raise TensorError("a block table is one row of int64", got=f"{table.dtype} {list(table.shape)}")
    if count < 0 or not 0 <= first < rows:
        raise TensorError(
            "rows begin inside the first block", got=f"{count} rows from {first}", expected=f"below {rows}"
        )
    needed = -(-(first + count) // rows) if count else 0
    if table.numel() < needed:
        raise TensorError("the block table is too short", got=table.numel(), expected=needed)
    blocks: list[int] = table[:needed].tolist()
    strange = [block for block in blocks if not 0 <= block < pool.blocks]
    if strange:
        raise TensorError("the table names a block that is not there", got=strange[0], expected=f"below {pool.blocks}")
    return blocks


def _at_least(name: str, got: int, least: int) -> None:
    if got < least:
        raise TensorError(f"`{name}` is too small", got=got, expected=f"{least} or more")
