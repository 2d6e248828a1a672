"""Values out of one number format into another, by way of float32."""

from __future__ import annotations

from typing import TypeAlias

import torch

from hitproof.kernels.blocks import Pool, gather, read_table, scatter
from hitproof.kernels.numbers import RowFormat, check_scale, decode, encode, scales_for
from hitproof.spec.errors import TensorError

__all__ = ["Scale", "fits", "requantize", "static_scales"]

Scale: TypeAlias = "torch.Tensor | float | None"


def requantize(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    read: tuple[RowFormat, Scale],
    write: tuple[RowFormat, Scale],
    *,
    first: int = 0,
    source_first: int = 0,
) -> None:
    """Read the values of rows and write them anew; every value is rounded once, from float32.

    Args:
        source: Blocks whose rows are `read`.
        held: int64: the segment's blocks there, in order.
        target: Blocks whose rows are `write`; changed. Only the rows are written.
        table: int64: the segment's blocks in the target, in order, each once.
        count: Rows (T).
        read: The format, and scales that lie elsewhere: one number, or float32 that broadcasts over [T, H, V].
        write: The same of the target. Inline scales are made from the values; scales that lie elsewhere are given,
            since the kernel that will read the rows has them already.
        first: Row of the first target block at which they begin.
        source_first: The same of the source.

    Raises:
        TensorError: The number of values differs, a format does not fit its pool, or a table does not fit. Nothing is
            written.
    """
    fits(source, held, target, table, count, read, write, first, source_first)
    values = decode(gather(source, held, count, source_first), *read)
    scatter(target, table, encode(values, *write), first)


def fits(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    read: tuple[RowFormat, Scale],
    write: tuple[RowFormat, Scale],
    first: int,
    source_first: int,
) -> None:
    """Rows, formats and tables fit one another; arguments as in `requantize`.

    Raises:
        TensorError: They do not.
    """
    if read[0].values != write[0].values or source.geometry.heads != target.geometry.heads:
        raise TensorError(
            "the two formats have another number of values",
            got=f"{source.geometry.heads} heads of {read[0].values}",
            expected=f"{target.geometry.heads} heads of {write[0].values}",
        )
    for pool, (form, scale) in ((source, read), (target, write)):
        check_scale(form, scale)
        if form.cell_bytes != pool.geometry.cell_bytes:
            raise TensorError(
                "the rows do not fit the pool", got=form.cell_bytes, expected=f"{pool.geometry.cell_bytes} bytes"
            )
    read_table(source, held, count, source_first)
    blocks = read_table(target, table, count, first)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")


def static_scales(source: Pool, held: torch.Tensor, count: int, form: RowFormat, dtype: str) -> torch.Tensor:
    """Scales a head for formats whose scales lie elsewhere: the largest value of a head lands on the format's largest.

    Returns:
        float32 [1, H, 1].
    """
    return scales_for(decode(gather(source, held, count), form), dtype, (0, 2))
