"""Missing rows made on the device, a launch for keys and one for values, beside the held rows that are moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hitproof.kernels.configs import DEFAULT, INTERPRET, Config, config_for
from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.numbers import CODES, RowFormat, dtype_of
from hitproof.kernels.rotary import Rotary
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
from hitproof.kernels.spans import Span, located
from hitproof.kernels.steps import Step
from hitproof.kernels.tail_fill.projection import CachePath
from hitproof.kernels.tail_fill.reference import Filled, LayerRows, require_fill
from hitproof.kernels.window_roll.launch import LEAVE, Moves
from hitproof.kernels.window_roll.launch import enqueue as enqueue_moves

__all__ = [
    "Filling",
    "LONG",
    "LONG_FP32",
    "MadeRows",
    "SHORT",
    "SHORT_FP32",
    "configs_for",
    "enqueue",
    "meaning",
    "prepare",
    "tail_fill",
]

_INTERPRETED = Config({"BLOCK_T": 16, "BLOCK_N": 128})
_EIGHT_WARPS = Config({"BLOCK_T": 16, "BLOCK_N": 32}, warps=8)
_DEEP = Config({"BLOCK_T": 16, "BLOCK_N": 64}, warps=8, stages=3)
_TWO_WARPS = Config({"BLOCK_T": 16, "BLOCK_N": 32}, warps=2)
_FEW_ROWS = Config({"BLOCK_T": 4, "BLOCK_N": 16}, warps=4, stages=1)
SHORT = {DEFAULT: _EIGHT_WARPS, "sm90": _DEEP, "sm100": _DEEP, INTERPRET: _INTERPRETED}
"""16-bit inputs, rows of up to 256 numbers a head."""
LONG = {DEFAULT: _EIGHT_WARPS, "gfx942": _TWO_WARPS, "gfx950": _TWO_WARPS, INTERPRET: _INTERPRETED}
"""16-bit inputs, longer rows."""
SHORT_FP32 = {DEFAULT: _EIGHT_WARPS, INTERPRET: _INTERPRETED}
"""float32 inputs, rows of up to 256 numbers a head."""
LONG_FP32 = {
    DEFAULT: Config({"BLOCK_T": 16, "BLOCK_N": 16}, warps=8),
    "gfx942": _FEW_ROWS,
    "gfx950": _FEW_ROWS,
    INTERPRET: _INTERPRETED,
}
"""float32 inputs, longer rows."""


@dataclass(frozen=True, slots=True)
class Filling:
    """All that one layer's repair launches.

    Args:
        moves: Held rows of keys, and of values; what is left of the copy's blocks is zeroed.
        steps: Missing rows of keys, and of values.
        filled: What will have been written.
    """

    moves: tuple[Moves, ...]
    steps: tuple[Step, ...]
    filled: Filled


def tail_fill(
    held: LayerRows,
    inputs: Span,
    input_form: RowFormat,
    path: CachePath,
    into: LayerRows,
    *,
    workspace: Filling | None = None,
) -> Filled:
    """The twin of `reference.tail_fill`; returns without waiting.

    Args:
        held, inputs, input_form, path, into: As there.
        workspace: What `prepare` made of the same arguments; made where left out.

    Raises:
        TensorError: As there, and for rows that these kernels do not know. Nothing is written.
    """
    filling = prepare(held, inputs, input_form, path, into) if workspace is None else workspace
    enqueue(filling)
    return filling.filled


def enqueue(filling: Filling) -> None:
    """Launch what was prepared; neither allocates nor waits, so that it can be captured in a graph."""
    for moves in filling.moves:
        enqueue_moves(moves, None)
    for step in filling.steps:
        step.enqueue()


def prepare(held: LayerRows, inputs: Span, input_form: RowFormat, path: CachePath, into: LayerRows) -> Filling:
    """Look at everything and bring tables and weights to the device; arguments as in `tail_fill`.

    Raises:
        TensorError: As in `tail_fill`.
    """
    require_fill(held, inputs, input_form, path, into)
    first, to, end = into.key.start, into.key.end, held.key.end
    heads, missing = path.heads, to - end
    wanted = MadeRows(path.key, path.key_norm, path.rotary, path.norm_after_rotary)
    steps = [_making(inputs, input_form, path, wanted, into.key, into.key_form, end)]
    moves = [_moves(held.key, into.key)]
    size = into.key_form.cell_bytes
    if held.value and into.value and into.value_form and path.value:
        wanted = MadeRows(path.value, path.value_norm, None, False)
        steps.append(_making(inputs, input_form, path, wanted, into.value, into.value_form, end))
        moves.append(_moves(held.value, into.value))
        size += into.value_form.cell_bytes
    return Filling(tuple(moves), tuple(steps), Filled(first, to, missing, (to - first) * heads * size))


@dataclass(frozen=True, slots=True)
class MadeRows:
    """What makes keys, or values, of hidden states.

    Args:
        linear: The projection.
        norm: Of a head's row.
        rotary: None where nothing turns.
        norm_last: The norm follows the turning.
    """

    linear: Linear
    norm: Norm | None
    rotary: Rotary | None
    norm_last: bool


def _moves(held: Span, into: Span) -> Moves:
    """Held rows to the first rows of the copy; places of missing rows are left to those who make them."""
    device, count, kept = into.pool.buffer.device, into.end - into.start, held.end - into.start
    slot_from = torch.full((count,), LEAVE, dtype=torch.int64, device=device)
    turn = torch.arange(count, dtype=torch.int64, device=device)
    slot_from[:kept] = turn[:kept] + located(held, into.start, held.end)
    blocks = into.table[: -(-count // into.pool.geometry.rows)]
    return Moves(held.pool, held.table.to(device), into.pool, blocks.to(device), slot_from, turn)


def _making(
    inputs: Span, input_form: RowFormat, path: CachePath, rows: MadeRows, into: Span, form: RowFormat, first: int
) -> Step:
    """The launch that writes the rows of the tokens [first, into.end)."""
    from hitproof.kernels.tail_fill.kernel import fill_kernel

    device = into.pool.buffer.device
    reading, kind = reading_of(inputs.pool, input_form), dtype_of(input_form.parts[0].dtype)
    steps = cell_steps(into.pool, form)
    start = into.pool.buffer[into.pool.geometry.offset :]
    rotary, gain = rows.rotary, gain_of(rows.norm, device)
    empty = torch.empty(0, dtype=torch.float32, device=device)
    cosines, sines = (empty, empty) if rotary is None else turns_on(device, torch.arange(first, into.end), rotary)
    bias = empty if rows.linear.bias is None else rows.linear.bias
    arguments = (
        reading.start,
        inputs.table.to(device),
        inputs.pool.blocks,
        located(inputs, first, into.end),
        *reading.steps[:2],
        start,
        into.table.to(device),
        into.pool.blocks,
        first - into.start,
        *steps,
        into.end - first,
        gain_of(path.input_norm, device),
        0.0 if path.input_norm is None else path.input_norm.eps,
        rows.linear.weight.to(device, kind).contiguous(),
        bias.to(device, kind),
        gain,
        0.0 if rows.norm is None else rows.norm.eps,
        cosines,
        sines,
        input_form.values,
    )
    constants = {
        "ROWS": into.pool.geometry.rows,
        "SOURCE_ROWS": inputs.pool.geometry.rows,
        "ALIGNED": int(reading.aligned),
        "NEXT": reading.steps[2],
        # The interpreter has no 16-bit products.
        "NATIVE": int(reading.code != 0 and device.type != "cpu"),
        "UNIT": unit_for(start, steps, form),
        **meaning(input_form, path.input_norm, rows, form),
    }
    configs = configs_for(form.values, input_form)
    grid = (-(-(into.end - first) // config_for(configs, device).tiles["BLOCK_T"]), path.heads)
    return Step(fill_kernel, grid, configs, arguments, constants)


def configs_for(size: int, input_form: RowFormat) -> dict[str, Config]:
    """The table of tiles for rows of so many numbers a head, from inputs of a format."""
    if input_form.parts[0].dtype == "fp32":
        return SHORT_FP32 if size <= 256 else LONG_FP32
    return SHORT if size <= 256 else LONG


def meaning(input_form: RowFormat, before: Norm | None, rows: MadeRows, form: RowFormat) -> dict[str, Any]:
    """Compile-time arguments that say what is made, wherever it lies."""
    own = rows.norm
    covered = form.values if own is None or own.weight is None else own.weight.shape[0]
    return {
        "CODE": CODES[input_form.parts[0].dtype],
        "INPUT_NORM": int(before is not None),
        "INPUT_GAIN": int(before is not None and before.weight is not None),
        "INPUT_ROUNDS": int(before is not None and before.rounds_first),
        "BIAS": int(rows.linear.bias is not None),
        "HEAD_NORM": 0 if own is None else 1 + int(rows.norm_last),
        "HEAD_GAIN": int(own is not None and own.weight is not None),
        "HEAD_ROUNDS": int(own is not None and own.rounds_first),
        "COVERS": covers(form.values, covered, rows.rotary),
        **set_constants(form.values, rows.rotary),
        "FORM": form_constants(form),
    }
