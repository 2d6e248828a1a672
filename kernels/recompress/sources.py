"""Values and gates as kernels read them: kept rows themselves, or what launches project them to."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import read_table
from hitproof.kernels.configs import DEFAULT, INTERPRET, Config, config_for
from hitproof.kernels.jobs import Held, RepairFault
from hitproof.kernels.norms import Linear
from hitproof.kernels.numbers import RowFormat, dtype_of
from hitproof.kernels.recompress.inputs import LayerWeights, kept_from
from hitproof.kernels.row_constants import Reading, reading_of
from hitproof.kernels.steps import Step
from hitproof.spec.errors import TensorError

__all__ = ["PROJECT", "PROJECT_FP32", "Rows", "scratch_size", "sources"]

_INTERPRETED = Config({"BLOCK_T": 16, "BLOCK_D": 64, "BLOCK_N": 512})
PROJECT = {DEFAULT: Config({"BLOCK_T": 64, "BLOCK_D": 64, "BLOCK_N": 64}, warps=4, stages=3), INTERPRET: _INTERPRETED}
"""Inputs and weights are of one 16-bit format."""
PROJECT_FP32 = {
    DEFAULT: Config({"BLOCK_T": 64, "BLOCK_D": 64, "BLOCK_N": 32}, warps=8),
    "sm100": Config({"BLOCK_T": 32, "BLOCK_D": 64, "BLOCK_N": 32}, warps=8),
    INTERPRET: _INTERPRETED,
}
"""Products of float32. In tiles of 64 rows Triton 3.7.1 gives them to the tensor cores of sm100, which round to tf32,
though it is told not to."""
_WHOLE = 1 << 30
"""Rows of a block that holds all rows of a projection."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Values and gates, or what they are projected from, of the tokens from `token` on, which is row `row`."""

    reading: Reading
    table: torch.Tensor
    blocks: int
    rows: int
    row: int
    token: int


def scratch_size(weights: LayerWeights, tokens: int) -> int:
    """Numbers of float32 that projections of so many tokens take; 0 where projections themselves are kept."""
    return 2 * weights.compressor.width * tokens if weights.value is not None and weights.gate is not None else 0


def sources(
    inputs: Held, layer: int, weights: LayerWeights, first: int, to: int, workspace: torch.Tensor | None
) -> tuple[list[Step], Rows]:
    """Where values and gates of the tokens [first, to) are read, and what must run before that.

    Args:
        inputs: Kept rows of all layers.
        layer: Which of them.
        weights: Of this layer.
        first, to: Tokens.
        workspace: float32, of `scratch_size` numbers or more, for projections; made where left out.

    Raises:
        RepairFault: An input is not kept, or rows are neither inputs nor projections.
        TensorError: The weights or the workspace do not fit, or kernels do not know the rows.
    """
    pool, width = inputs.layers[layer], weights.compressor.width
    row, reading = kept_from(inputs, first, to), reading_of(pool, inputs.form)
    block, inside = divmod(row, pool.geometry.rows)
    read_table(pool, inputs.table[block:], to - first, inside)
    kept = Rows(reading, inputs.table.to(pool.buffer.device), pool.blocks, pool.geometry.rows, row, first)
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
    return steps, Rows(whole, only, 1, _WHOLE, 0, first)


def _projecting(kept: Rows, form: RowFormat, linear: Linear, made: torch.Tensor, count: int, begin: int) -> Step:
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
        *kept.reading.steps[:2],
        made,
        count,
        linear.weight.to(device, kind if native else torch.float32).contiguous(),
        bias.to(device, torch.float32),
        size,
        width,
        begin,
    )
    constants = {
        "SOURCE_ROWS": kept.rows,
        "CODE": kept.reading.code,
        "ALIGNED": int(kept.reading.aligned),
        "NEXT": kept.reading.steps[2],
        "NATIVE": int(native),
        "BIAS": int(linear.bias is not None),
    }
    configs = PROJECT if kept.reading.code != 0 and linear.weight.dtype == kind else PROJECT_FP32
    tiles = config_for(configs, device).tiles
    grid = (-(-count // tiles["BLOCK_T"]), -(-width // tiles["BLOCK_D"]))
    return Step(project_kernel, grid, configs, arguments, constants)
