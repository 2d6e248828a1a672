"""Rows out of one geometry into another."""

from __future__ import annotations

import torch

from hitproof.kernels.blocks import Pool, gather, read_table, scatter
from hitproof.kernels.checksum import partial
from hitproof.spec.errors import TensorError

__all__ = ["clear", "fits", "relayout"]


def relayout(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    *,
    source_first: int = 0,
    head: int = 0,
    heads: int | None = None,
) -> int:
    """Write the same rows, zeros into all that is left of the blocks, and sum what the rows add to the fingerprint.

    Args:
        source: Blocks of any geometry with the same bytes a row and head.
        held: int64: the segment's blocks there, in order.
        target: Blocks to write; changed, to the last byte of each block of the table.
        table: int64: the segment's blocks in the target, in order, each once. Rows begin at the first row.
        count: Rows (T).
        source_first: Row of the first source block at which they begin.
        head: Where these heads stand in the whole segment, for the fingerprint.
        heads: Heads of the whole segment.

    Returns:
        The share of the fingerprint's sum, of the bytes as they were written.

    Raises:
        TensorError: Rows have another size, or a table does not fit. Nothing is written.
    """
    blocks = fits(source, held, target, table, count, source_first)
    rows = gather(source, held, count, source_first)
    clear(target, blocks)
    scatter(target, table, rows)
    return partial(gather(target, table, count), head=head, heads=heads)


def fits(
    source: Pool, held: torch.Tensor, target: Pool, table: torch.Tensor, count: int, source_first: int
) -> list[int]:
    """The blocks that are written, once all is known to fit.

    Raises:
        TensorError: Rows have another size, or a table does not fit.
    """
    ours, theirs = target.geometry, source.geometry
    if (ours.heads, ours.cell_bytes) != (theirs.heads, theirs.cell_bytes):
        raise TensorError(
            "rows of another size are no other layout",
            got=f"{theirs.heads} heads of {theirs.cell_bytes} bytes",
            expected=f"{ours.heads} heads of {ours.cell_bytes} bytes",
        )
    read_table(source, held, count, source_first)
    blocks = read_table(target, table, count)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")
    return blocks


def clear(pool: Pool, blocks: list[int]) -> None:
    """Zero every byte of some blocks, gaps and padding too.

    A kernel that reads whole blocks multiplies what lies beyond the last row by zero, and a NaN survives that.
    """
    for block in blocks:
        pool.owned[block] = 0
