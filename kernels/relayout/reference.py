"""Rows out of one geometry into another."""

from __future__ import annotations

import torch

from hitproof.kernels.blocks import Pool, gather, read_table, scatter
from hitproof.spec.errors import TensorError

__all__ = ["clear", "relayout"]


def relayout(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    *,
    source_first: int = 0,
) -> None:
    """Write the same rows, and zeros into all that is left of the blocks.

    Args:
        source: Blocks of any geometry with the same bytes a row and head.
        held: int64: the segment's blocks there, in order.
        target: Blocks to write; changed, to the last byte of each block of the table.
        table: int64: the segment's blocks in the target, in order, each once. Rows begin at the first row.
        count: Rows (T).
        source_first: Row of the first source block at which they begin.

    Raises:
        TensorError: Rows have another size, or a table does not fit. Nothing is written.
    """
    ours, theirs = target.geometry, source.geometry
    if (ours.heads, ours.cell_bytes) != (theirs.heads, theirs.cell_bytes):
        raise TensorError(
            "rows of another size are no other layout",
            got=f"{theirs.heads} heads of {theirs.cell_bytes} bytes",
            expected=f"{ours.heads} heads of {ours.cell_bytes} bytes",
        )
    rows = gather(source, held, count, source_first)
    blocks = read_table(target, table, count)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")
    clear(target, blocks)
    scatter(target, table, rows)


def clear(pool: Pool, blocks: list[int]) -> None:
    """Zero every byte of some blocks, gaps and padding too.

    A kernel that reads whole blocks multiplies what lies beyond the last row by zero, and a NaN survives that.
    """
    for block in blocks:
        pool.owned[block] = 0
