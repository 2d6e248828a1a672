"""One layer's entries or state from kept rows to blocks, by the reference: what the protocol asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import Pool
from hitproof.kernels.jobs import Held, RepairFault
from hitproof.kernels.recompress.inputs import LayerWeights, kept_rows, values_and_gates
from hitproof.kernels.recompress.pages import read_state, write_rows, write_state
from hitproof.kernels.recompress.reference import Compressed, CompressorState, live_rows, recompress, state_from_rows

__all__ = ["StoredState", "entries_between", "entries_into", "require_windows", "state_into"]


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state in blocks, as `pages.write_state` leaves it.

    Args:
        pool: Blocks of one head.
        table: int64, its blocks in order.
        length: Tokens seen.
        row: Of the segment, where it begins.
    """

    pool: Pool
    table: torch.Tensor
    length: int
    row: int = 0


def entries_between(rows: Callable[[int, int], torch.Tensor], weights: LayerWeights, first: int, to: int) -> Compressed:
    """Entries of the tokens [first, to).

    Args:
        rows: Kept rows of the tokens between two positions, `[T, V]`.
        weights: Of the layer.
        first, to: Multiples of the ratio. With overlap, rows of one window before `first` are read too.

    Raises:
        RepairFault: The span is not of whole windows.
    """
    compressor = weights.compressor
    require_windows(first, to, compressor.ratio)
    lead = live_rows(first, compressor.ratio, compressor.overlap)
    values, gates = values_and_gates(rows(first - lead, to), weights)
    state = state_from_rows(values[:lead], gates[:lead], compressor, first - lead)
    return recompress(values[lead:], gates[lead:], compressor, state)


def entries_into(
    inputs: Held,
    layer: int,
    weights: LayerWeights,
    first: int,
    to: int,
    target: Held,
    state: StoredState | None = None,
) -> None:
    """Write one layer's entries of the tokens [first, to).

    Args:
        inputs: Kept rows of all layers.
        layer: Which of them.
        weights: Of this layer.
        first, to: Multiples of the ratio.
        target: Blocks of the copy, from whose first row on they are written; changed.
        state: A state at some token of the window that begins at `first`; rows of the tokens before it are then read
            from there and need not be kept.

    Raises:
        RepairFault: The span is not of whole windows, or an input is not kept. Nothing is written.
        TensorError: The entries do not fit the format or the blocks. Nothing is written.
    """
    if state is None:
        made = entries_between(lambda low, high: kept_rows(inputs, layer, low, high), weights, first, to)
    else:
        require_windows(first, to, weights.compressor.ratio, state)
        values, gates = values_and_gates(kept_rows(inputs, layer, state.length, to), weights)
        made = recompress(values, gates, weights.compressor, _read(state, weights))
    write_rows(target.layers[layer], target.table, made.entries, target.form, target.first)


def state_into(
    inputs: Held,
    layer: int,
    weights: LayerWeights,
    length: int,
    target: Held,
    state: StoredState | None = None,
) -> None:
    """Write one layer's state at a length; arguments as in `entries_into`.

    Args:
        inputs, layer, weights, target: As there.
        length: Tokens seen.
        state: An earlier state that holds, or comes before, all rows that the new one needs.

    Raises:
        RepairFault: An input is not kept. Nothing is written.
        TensorError: The state does not fit the blocks. Nothing is written.
    """
    compressor = weights.compressor
    first = length - live_rows(length, compressor.ratio, compressor.overlap) if state is None else state.length
    values, gates = values_and_gates(kept_rows(inputs, layer, first, length), weights)
    made: CompressorState
    if state is None:
        made = state_from_rows(values, gates, compressor, first)
    else:
        made = recompress(values, gates, compressor, _read(state, weights)).state
    write_state(target.layers[layer], target.table, made, compressor, target.first)


def require_windows(first: int, to: int, ratio: int, state: StoredState | None = None) -> None:
    """The span is of whole windows, and a state stands in the first of them.

    Raises:
        RepairFault: It is not.
    """
    if first % ratio or to % ratio:
        raise RepairFault("failed", f"[{first}, {to}) is not of whole windows of {ratio} tokens")
    if state is not None and not (first <= state.length <= to and state.length // ratio * ratio == first):
        raise RepairFault("failed", f"a state at {state.length} tokens does not stand in the window from {first} on")


def _read(state: StoredState, weights: LayerWeights) -> CompressorState:
    return read_state(state.pool, state.table, state.length, weights.compressor, state.row)
