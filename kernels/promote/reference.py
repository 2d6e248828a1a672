"""Gather from staging into blocks, and the fingerprint in the same pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import Pool, block_slices, read_table
from hitproof.kernels.checksum import partial
from hitproof.kernels.checksum.reference import MASK
from hitproof.spec.errors import TensorError

__all__ = ["Manifest", "fits", "promote"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a demoted prefix says of one of its members.

    Args:
        rows: Rows that the member has.
        arrived: bool [blocks of the member]: which of its staging blocks the transfer has filled.
    """

    rows: int
    arrived: torch.Tensor


def promote(
    staging: Pool,
    staged: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    *,
    first: int = 0,
    head: int = 0,
    heads: int | None = None,
) -> int:
    """Copy rows block by block, and sum what they add to the fingerprint while they pass.

    Args:
        staging: Blocks of a lower replica; base and stride may be any byte, pitch and layout those of the target.
        staged: int64: the segment's blocks in staging, in order.
        target: Blocks to write; changed. Rows a block are the same as in staging.
        table: int64: the segment's blocks in the target, in order, each once.
        count: Rows (T).
        first: Row of the first block at which they begin, in both.
        head: Where these heads stand in the whole segment, for the fingerprint.
        heads: Heads of the whole segment.

    Returns:
        The share of the fingerprint's sum, below 2**64, of the bytes as they were written.

    Raises:
        TensorError: The two do not fit each other, or a table does not fit. Nothing is written.
    """
    sources, blocks = fits(staging, staged, target, table, count, first)
    ours = target.geometry
    total = 0
    read, write = staging.cells, target.cells
    for source, (block, inside, there) in zip(sources, block_slices(ours.rows, blocks, count, first), strict=True):
        write[block, inside] = read[source, inside]
        # What stands in the block now is what counts, and it is still in the processor's cache.
        rows = write[block, inside].reshape(-1, ours.heads, ours.cell_bytes)
        total += partial(rows, there.start, head, heads)
    return total & MASK


def fits(
    staging: Pool, staged: torch.Tensor, target: Pool, table: torch.Tensor, count: int, first: int
) -> tuple[list[int], list[int]]:
    """The blocks that are read, and those that are written, once both are known to fit.

    Raises:
        TensorError: The two do not fit each other, or a table does not fit.
    """
    ours, theirs = target.geometry, staging.geometry
    if (ours.shape, ours.layout) != (theirs.shape, theirs.layout):
        raise TensorError(
            "staging holds blocks of another shape",
            got=f"{theirs.layout} {theirs.shape}",
            expected=f"{ours.layout} {ours.shape}",
            hint="relayout brings rows into another layout",
        )
    sources = read_table(staging, staged, count, first)
    blocks = read_table(target, table, count, first)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")
    return sources, blocks
