"""Entries and compressor states in pages of blocks: written as a serving framework keeps them, and read back."""

from __future__ import annotations

import torch

from hitproof.kernels.blocks import Pool, gather, scatter
from hitproof.kernels.numbers import RowFormat, decode, encode, plain_row
from hitproof.kernels.recompress.reference import Compressor, CompressorState, live_rows
from hitproof.spec.errors import TensorError

__all__ = ["read_rows", "read_state", "state_format", "state_rows", "write_rows", "write_state"]


def state_format(compressor: Compressor) -> RowFormat:
    """A token's row of state: its values, then its scores, float32."""
    return plain_row("fp32", 2 * compressor.width)


def state_rows(compressor: Compressor) -> int:
    """Rows that a stored state has at every length: the most that can be live."""
    return compressor.ratio - 1 + (compressor.ratio if compressor.overlap else 0)


def write_rows(pool: Pool, table: torch.Tensor, values: torch.Tensor, form: RowFormat, row: int = 0) -> None:
    """Encode entries or index keys into the blocks of one segment, and write no byte besides.

    Args:
        pool: Blocks of one head; changed.
        table: int64, the segment's blocks in order.
        values: `[T, V]` of one sequence and layer.
        form: How a row is stored.
        row: Of the segment, where they begin.

    Raises:
        TensorError: The rows do not fit the format or the pool.
    """
    if values.ndim != 2 or row < 0:
        raise TensorError(
            "not rows of one layer", got=(tuple(values.shape), row), expected="[T, V] from row 0 or later"
        )
    block, inside = divmod(row, pool.geometry.rows)
    scatter(pool, table[block:], encode(values, form).unsqueeze(1), inside)


def read_rows(pool: Pool, table: torch.Tensor, count: int, form: RowFormat, row: int = 0) -> torch.Tensor:
    """Rows of a segment, float32 `[count, V]`."""
    block, inside = divmod(row, pool.geometry.rows)
    return decode(gather(pool, table[block:], count, inside)[:, 0], form)


def write_state(pool: Pool, table: torch.Tensor, state: CompressorState, compressor: Compressor, row: int = 0) -> None:
    """Write a state, oldest row first; rows that are not live become blank, with scores of minus infinity.

    Args:
        pool: Blocks of one head, rows of values and scores in float32; changed.
        table: int64, the segment's blocks in order.
        state: Rows `[S, C * D]` of one sequence and layer.
        compressor: Says how many rows a state has.
        row: Of the segment, where it begins.

    Raises:
        TensorError: The state has leading dimensions, or does not fit the pool.
    """
    blank = state_rows(compressor) - int(state.values.shape[-2])
    if state.values.ndim != 2 or blank < 0:
        raise TensorError(
            "not the state of one layer",
            got=tuple(state.values.shape),
            expected=f"[S, {compressor.width}], S at most {state_rows(compressor)}",
        )
    values = torch.nn.functional.pad(state.values, (0, 0, 0, blank))
    scores = torch.nn.functional.pad(state.scores, (0, 0, 0, blank), value=-torch.inf)
    write_rows(pool, table, torch.cat([values, scores.to(values.dtype)], dim=-1), state_format(compressor), row)


def read_state(pool: Pool, table: torch.Tensor, length: int, compressor: Compressor, row: int = 0) -> CompressorState:
    """The state at `length` tokens, float32, of its live rows alone; the others are not read."""
    count = live_rows(length, compressor.ratio, compressor.overlap)
    rows = read_rows(pool, table, count, state_format(compressor), row)
    values, scores = rows.split(compressor.width, dim=-1)
    return CompressorState(length, values, scores)
