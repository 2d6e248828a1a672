"""Entries and states made on the device: all entries of a layer in one launch, behind two that project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hitproof.kernels.blocks import read_table
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.norms import Linear
from hitproof.kernels.numbers import RowFormat, dtype_of
from hitproof.kernels.recompress.inputs import LayerWeights, kept_from
from hitproof.kernels.recompress.layers import StoredState, require_windows
from hitproof.kernels.recompress.pages import state_format, state_rows
from hitproof.kernels.recompress.reference import Compressor, live_rows
from hitproof.kernels.rotary import turns
from hitproof.kernels.row_constants import (
    Reading,
    cell_steps,
    covers,
    form_constants,
    gain_of,
    reading_of,
    set_constants,
    unit_for,
)
from hitproof.kernels.run import Held, RepairFault
from hitproof.kernels.steps import Step
from hitproof.spec.errors import TensorError

__all__ = [
    "ENTRIES",
    "PROJECT",
    "STATE",
    "entries_into",
    "entry_meaning",
    "prepare_entries",
    "prepare_state",
    "scratch_size",
    "specs",
    "state_into",
]

ENTRIES = {DEFAULT: Config({"BLOCK_S": 8}, warps=4, stages=3), INTERPRET: Config({"BLOCK_S": 128})}
STATE = {DEFAULT: Config({"BLOCK_D": 512}, warps=4), INTERPRET: Config({"BLOCK_D": 2048})}
PROJECT = {
    DEFAULT: Config({"BLOCK_T": 64, "BLOCK_D": 64, "BLOCK_N": 64}, warps=4, stages=3),
    INTERPRET: Config({"BLOCK_T": 128, "BLOCK_D": 256, "BLOCK_N": 512}),
}
_WHOLE = 1 << 30
"""Rows of a block that holds all rows of a projection."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Values and gates, or what they are projected from, of the tokens from `token` on, which is row `row`."""

    reading: Reading
    table: torch.Tensor
    blocks: int
    rows: int
    row: int
    token: int


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
        workspace: float32, of `scratch_size` numbers or more, for projections; made where left out.

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


def scratch_size(weights: LayerWeights, tokens: int) -> int:
    """Numbers of float32 that projections of so many tokens take; 0 where projections themselves are kept."""
    return 2 * weights.compressor.width * tokens if weights.value is not None and weights.gate is not None else 0


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
    steps, rows = _sources(inputs, layer, weights, since, to, workspace)
    device = pool.buffer.device
    positions = torch.arange(first // ratio, to // ratio, dtype=torch.int64, device=device) * ratio
    cosines, sines = turns(positions, compressor.rotary)
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
    return [*steps, Step(entries_kernel, (count,), ENTRIES, arguments, constants)]


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
    steps, rows = _sources(inputs, layer, weights, since, length, workspace)
    device = target.layers[layer].buffer.device
    arguments = (
        *_source_arguments(rows),
        *_state_arguments(state, compressor, device),
        *writing,
        target.first,
        length - live,
        live,
        compressor.position_bias.to(device, torch.float32).contiguous(),
        compressor.width,
    )
    constants = {
        **_places(target, layer, rows, state, compressor),
        "RATIO": compressor.ratio,
        "UNIT": unit_for(writing[0], cell_steps(target.layers[layer], form), form),
    }
    grid = (count, -(-compressor.width // config_for(STATE, device).tiles["BLOCK_D"]))
    return [*steps, Step(state_kernel, grid, STATE, arguments, constants)]


def _sources(
    inputs: Held, layer: int, weights: LayerWeights, first: int, to: int, workspace: torch.Tensor | None
) -> tuple[list[Step], _Rows]:
    """Where values and gates of the tokens [first, to) are read, and what must run before that."""
    pool, width = inputs.layers[layer], weights.compressor.width
    row, reading = kept_from(inputs, first, to), reading_of(pool, inputs.form)
    block, inside = divmod(row, pool.geometry.rows)
    read_table(pool, inputs.table[block:], to - first, inside)
    kept = _Rows(reading, inputs.table.to(pool.buffer.device), pool.blocks, pool.geometry.rows, row, first)
    if weights.value is None or weights.gate is None:
        if inputs.form.values != 2 * width:
            raise RepairFault(
                "failed", f"rows of {inputs.form.values} numbers are not {width} values and as many gates"
            )
        return [], kept
    shapes = (tuple(weights.value.weight.shape), tuple(weights.gate.weight.shape))
    if shapes != ((width, inputs.form.values),) * 2:
        raise TensorError("inputs and projections do not fit", got=shapes, expected=(width, inputs.form.values))
    needed = scratch_size(weights, to - first)
    made = workspace
    if made is None:
        made = torch.empty(needed, dtype=torch.float32, device=pool.buffer.device)
    if made.dtype != torch.float32 or made.numel() < needed or not made.is_contiguous():
        raise TensorError("the workspace is too small", got=f"{made.dtype} {list(made.shape)}", expected=needed)
    steps = [
        _projecting(kept, inputs.form, linear, made, to - first, begin)
        for linear, begin in ((weights.value, 0), (weights.gate, width))
    ]
    only = torch.zeros(1, dtype=torch.int64, device=pool.buffer.device)
    whole = Reading(made.flatten().view(torch.uint8), (0, 2 * width, 1), 0, True)
    return steps, _Rows(whole, only, 1, _WHOLE, 0, first)


def _projecting(kept: _Rows, form: RowFormat, linear: Linear, made: torch.Tensor, count: int, begin: int) -> Step:
    """The launch of one projection."""
    from hitproof.kernels.recompress.kernel import project_kernel

    width, size = linear.weight.shape
    device = kept.reading.start.device
    kind = dtype_of(form.parts[0].dtype)
    # Products of 16-bit numbers are exact in float32; the interpreter has none of its own.
    native = kept.reading.code != 0 and linear.weight.dtype == kind and device.type != "cpu"
    bias = torch.empty(0, device=device) if linear.bias is None else linear.bias
    arguments = (
        kept.reading.start,
        kept.table,
        kept.blocks,
        kept.row,
        *kept.reading.steps,
        made,
        count,
        linear.weight.to(kind if native else torch.float32).contiguous(),
        bias.to(torch.float32),
        size,
        width,
        begin,
    )
    constants = {
        "SOURCE_ROWS": kept.rows,
        "CODE": kept.reading.code,
        "ALIGNED": int(kept.reading.aligned),
        "NATIVE": int(native),
        "BIAS": int(linear.bias is not None),
    }
    tiles = config_for(PROJECT, device).tiles
    grid = (-(-count // tiles["BLOCK_T"]), -(-width // tiles["BLOCK_D"]))
    return Step(project_kernel, grid, PROJECT, arguments, constants)


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


def _source_arguments(rows: _Rows) -> tuple[Any, ...]:
    return rows.reading.start, rows.table, rows.blocks, rows.row, rows.token, *rows.reading.steps


def _state_arguments(state: StoredState | None, compressor: Compressor, device: torch.device) -> tuple[Any, ...]:
    """The stored state's run-time arguments; nothing of it is read where there is none."""
    if state is None:
        nothing = torch.empty(0, dtype=torch.uint8, device=device)
        return nothing, nothing.to(torch.int64), 0, 0, 0, 0, 0
    live = live_rows(state.length, compressor.ratio, compressor.overlap)
    reading = reading_of(state.pool, state_format(compressor))
    block, inside = divmod(state.row, state.pool.geometry.rows)
    read_table(state.pool, state.table[block:], live, inside)
    token = state.length - live - state.row
    return reading.start, state.table.to(device), state.pool.blocks, token, *reading.steps


def _places(target: Held, layer: int, rows: _Rows, state: StoredState | None, compressor: Compressor) -> dict[str, int]:
    """Compile-time arguments that say how the blocks lie."""
    aligned = state is not None and reading_of(state.pool, state_format(compressor)).aligned
    return {
        "ROWS": target.layers[layer].geometry.rows,
        "SOURCE_ROWS": rows.rows,
        "STATE_ROWS": 1 if state is None else state.pool.geometry.rows,
        "READ": (rows.reading.code, rows.reading.aligned, state is not None, aligned),
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


def specs() -> list[CompileSpec]:
    """The cases of `cases.py`."""
    from hitproof.kernels.recompress import cases

    return cases.specs()
