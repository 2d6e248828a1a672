"""Entries and states made on the device: all entries of a layer in one launch, behind two that project."""

from __future__ import annotations

from typing import Any

import torch

from hitproof.kernels.blocks import read_table
from hitproof.kernels.configs import DEFAULT, INTERPRET, Config, config_for
from hitproof.kernels.jobs import Held
from hitproof.kernels.numbers import RowFormat
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.layers import StoredState, require_windows
from hitproof.kernels.recompress.pages import state_format, state_rows
from hitproof.kernels.recompress.reference import Compressor, live_rows
from hitproof.kernels.recompress.sources import Rows, sources
from hitproof.kernels.row_constants import (
    cell_steps,
    covers,
    form_constants,
    gain_of,
    reading_of,
    set_constants,
    turns_on,
    unit_for,
)
from hitproof.kernels.steps import Step
from hitproof.spec.errors import TensorError

__all__ = [
    "ENTRIES",
    "ENTRIES_ODD",
    "STATE",
    "entries_into",
    "entry_meaning",
    "prepare_entries",
    "prepare_state",
    "state_into",
]

_INTERPRETED = Config({"BLOCK_S": 32})
_ONE_SLOT = Config({"BLOCK_S": 1}, warps=4)
_FOUR_WARPS = Config({"BLOCK_S": 8}, warps=4)
ENTRIES = {
    DEFAULT: Config({"BLOCK_S": 8}, warps=8),
    "gfx942": _FOUR_WARPS,
    "gfx950": _FOUR_WARPS,
    INTERPRET: _INTERPRETED,
}
"""Kept rows, and a state where there is one, lie at multiples of their numbers' size."""
ENTRIES_ODD = {
    DEFAULT: Config({"BLOCK_S": 4}, warps=4),
    "gfx942": _ONE_SLOT,
    "gfx950": _ONE_SLOT,
    INTERPRET: _INTERPRETED,
}
"""They lie at any byte."""
STATE = {
    DEFAULT: Config({"BLOCK_R": 1, "BLOCK_D": 512}, warps=4),
    INTERPRET: Config({"BLOCK_R": 64, "BLOCK_D": 256}),
}


def entries_into(
    inputs: Held,
    layer: int,
    weights: LayerWeights,
    first: int,
    to: int,
    target: Held,
    state: StoredState | None = None,
    *,
    workspace: torch.Tensor | None = None,
) -> None:
    """The twin of `layers.entries_into`; returns without waiting.

    Args:
        inputs, layer, weights, first, to, target, state: As there.
        workspace: float32, of `sources.scratch_size` numbers or more, for projections; made where left out.

    Raises:
        RepairFault, TensorError: As there, and for rows that these kernels do not know. Nothing is written.
    """
    for step in prepare_entries(inputs, layer, weights, first, to, target, state, workspace):
        step.enqueue()


def state_into(
    inputs: Held,
    layer: int,
    weights: LayerWeights,
    length: int,
    target: Held,
    state: StoredState | None = None,
    *,
    workspace: torch.Tensor | None = None,
) -> None:
    """The twin of `layers.state_into`; returns without waiting. Arguments and errors as in `entries_into`."""
    for step in prepare_state(inputs, layer, weights, length, target, state, workspace):
        step.enqueue()


def prepare_entries(
    inputs: Held,
    layer: int,
    weights: LayerWeights,
    first: int,
    to: int,
    target: Held,
    state: StoredState | None = None,
    workspace: torch.Tensor | None = None,
) -> list[Step]:
    """Look at everything and bring tables and weights to the device; arguments and errors as in `entries_into`."""
    from hitproof.kernels.recompress.kernel import entries_kernel

    compressor = weights.compressor
    ratio = compressor.ratio
    require_windows(first, to, ratio, state)
    lead = live_rows(first, ratio, compressor.overlap)
    since = first - lead if state is None else state.length
    count, form, pool = (to - first) // ratio, target.form, target.layers[layer]
    if form.values != compressor.size:
        raise TensorError("the rows have another number of values", got=compressor.size, expected=form.values)
    writing = _writing(target, layer, count, form)
    steps, rows = sources(inputs, layer, weights, since, to, workspace)
    device = pool.buffer.device
    positions = torch.arange(first // ratio, to // ratio, dtype=torch.int64) * ratio
    cosines, sines = turns_on(device, positions, compressor.rotary)
    arguments = (
        *_source_arguments(rows),
        *_state_arguments(state, compressor, device),
        *writing,
        target.first,
        first // ratio,
        compressor.position_bias.to(device, torch.float32).contiguous(),
        gain_of(compressor.norm, device),
        compressor.norm.eps,
        cosines,
        sines,
    )
    constants = {
        **_places(target, layer, rows, state, compressor),
        **entry_meaning(compressor, form),
        "UNIT": unit_for(writing[0], cell_steps(pool, form), form),
    }
    even = rows.reading.aligned and (state is None or constants["READ"][4])
    return [*steps, Step(entries_kernel, (count,), ENTRIES if even else ENTRIES_ODD, arguments, constants)]


def prepare_state(
    inputs: Held,
    layer: int,
    weights: LayerWeights,
    length: int,
    target: Held,
    state: StoredState | None = None,
    workspace: torch.Tensor | None = None,
) -> list[Step]:
    """The same for `state_into`."""
    from hitproof.kernels.recompress.kernel import state_kernel

    compressor = weights.compressor
    live = live_rows(length, compressor.ratio, compressor.overlap)
    since = length - live if state is None else state.length
    count, form = state_rows(compressor), state_format(compressor)
    writing = _writing(target, layer, count, form)
    steps, rows = sources(inputs, layer, weights, since, length, workspace)
    device = target.layers[layer].buffer.device
    arguments = (
        *_source_arguments(rows),
        *_state_arguments(state, compressor, device),
        *writing,
        target.first,
        length - live,
        live,
        count,
        compressor.position_bias.to(device, torch.float32).contiguous(),
        compressor.width,
    )
    constants = {
        **_places(target, layer, rows, state, compressor),
        "RATIO": compressor.ratio,
        "UNIT": unit_for(writing[0], cell_steps(target.layers[layer], form), form),
    }
    tiles = config_for(STATE, device).tiles
    grid = (-(-count // tiles["BLOCK_R"]), -(-compressor.width // tiles["BLOCK_D"]))
    return [*steps, Step(state_kernel, grid, STATE, arguments, constants)]


def _writing(target: Held, layer: int, count: int, form: RowFormat) -> tuple[Any, ...]:
    """The target's run-time arguments; rows of the copy that go into blocks which the table names once.

    Raises:
        TensorError: They do not.
    """
    pool = target.layers[layer]
    if pool.geometry.heads != 1 or pool.geometry.cell_bytes != form.cell_bytes:
        raise TensorError(
            "the rows do not fit the pool",
            got=f"{pool.geometry.heads} heads of {pool.geometry.cell_bytes} bytes",
            expected=f"1 of {form.cell_bytes}",
        )
    block, inside = divmod(target.first, pool.geometry.rows)
    blocks = read_table(pool, target.table[block:], count, inside)
    if len(set(blocks)) != len(blocks):
        raise TensorError("a table that is written names a block twice", got=blocks[:20], expected="each block once")
    by_block, by_row, _, by_value = cell_steps(pool, form)
    start = pool.buffer[pool.geometry.offset :]
    return start, target.table.to(pool.buffer.device), pool.blocks, by_block, by_row, by_value


def _source_arguments(rows: Rows) -> tuple[Any, ...]:
    return rows.reading.start, rows.table, rows.blocks, rows.row, rows.token, *rows.reading.steps[:2]


def _state_arguments(state: StoredState | None, compressor: Compressor, device: torch.device) -> tuple[Any, ...]:
    """The stored state's run-time arguments; nothing of it is read where there is none."""
    if state is None:
        nothing = torch.empty(0, dtype=torch.uint8, device=device)
        return nothing, nothing.to(torch.int64), 0, 0, 0, 0
    live = live_rows(state.length, compressor.ratio, compressor.overlap)
    reading = reading_of(state.pool, state_format(compressor))
    block, inside = divmod(state.row, state.pool.geometry.rows)
    read_table(state.pool, state.table[block:], live, inside)
    token = state.length - live - state.row
    return reading.start, state.table.to(device), state.pool.blocks, token, *reading.steps[:2]


def _places(target: Held, layer: int, rows: Rows, state: StoredState | None, compressor: Compressor) -> dict[str, Any]:
    """Compile-time arguments that say how the blocks lie."""
    kept, stored = rows.reading, None if state is None else reading_of(state.pool, state_format(compressor))
    of_state = (False, False, 1) if stored is None else (True, stored.aligned, stored.steps[2])
    return {
        "ROWS": target.layers[layer].geometry.rows,
        "SOURCE_ROWS": rows.rows,
        "STATE_ROWS": 1 if state is None else state.pool.geometry.rows,
        "READ": (kept.code, kept.aligned, kept.steps[2], *of_state),
    }


def entry_meaning(compressor: Compressor, form: RowFormat) -> dict[str, Any]:
    """Compile-time arguments that say what an entry is, wherever it lies."""
    sets = set_constants(compressor.size, compressor.rotary)
    return {
        "RATIO": compressor.ratio,
        "OVERLAP": int(compressor.overlap),
        "COVERS": covers(compressor.size, compressor.size, compressor.rotary),
        "GAIN": int(compressor.norm.weight is not None),
        **sets,
        "FORM": form_constants(form),
    }
