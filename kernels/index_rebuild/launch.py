"""Index keys made and written on the device: all tokens of a layer in one launch, and a second one where they turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.index_rebuild import choosing
from hitproof.kernels.index_rebuild.reference import TokenIndexer, require_place, require_token_keys
from hitproof.kernels.jobs import Held
from hitproof.kernels.numbers import CODES, V32_INDEX_ROW, RowFormat, plain_row
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.launch import entries_into
from hitproof.kernels.rotary import Rotary, frequencies, turns
from hitproof.kernels.row_constants import cell_steps, form_constants, reading_of, set_constants, unit_for
from hitproof.kernels.spans import Span, located
from hitproof.kernels.steps import Step
from hitproof.spec.errors import TensorError

__all__ = [
    "CONFIGS",
    "NATIVE_CONFIGS",
    "TURN_CONFIGS",
    "enqueue",
    "prepare",
    "specs",
    "write_entry_keys",
    "write_keys",
    "write_token_keys",
]

CONFIGS = {
    DEFAULT: Config({"BLOCK_T": 64, "BLOCK_X": 16}, warps=8, stages=2),
    # Triton 3.7 multiplies float32 on this matrix unit in TF32, whatever is asked; tiles of 64 tokens would go there.
    "sm100": Config({"BLOCK_T": 32, "BLOCK_X": 16}, warps=4, stages=2),
    INTERPRET: Config({"BLOCK_T": 64, "BLOCK_X": 128}),
}
NATIVE_CONFIGS = {
    DEFAULT: Config({"BLOCK_T": 32, "BLOCK_X": 64}, warps=8, stages=2),
    "sm90": Config({"BLOCK_T": 64, "BLOCK_X": 32}, warps=8, stages=3),
    "sm100": Config({"BLOCK_T": 64, "BLOCK_X": 32}, warps=8, stages=3),
    "gfx942": Config({"BLOCK_T": 64, "BLOCK_X": 32}, warps=8, stages=2),
    "gfx950": Config({"BLOCK_T": 64, "BLOCK_X": 32}, warps=8, stages=2),
}
"""Where inputs and weights are of one 16-bit type and matrix units multiply them."""
TURN_CONFIGS = {DEFAULT: Config({"BLOCK_T": 16}, warps=4), INTERPRET: Config({"BLOCK_T": 64})}
_NARROW = {torch.bfloat16: CODES["bf16"], torch.float16: CODES["fp16"], torch.float32: None}
_SCRATCH_ROWS = 64
_ENDLESS = 1 << 30
"""Rows of the one block that scratch rows lie in, whose true number may vary without another compilation."""


def write_token_keys(
    inputs: Span,
    input_form: RowFormat,
    indexer: TokenIndexer,
    into: Span,
    form: RowFormat,
    rotation: str = "none",
    *,
    workspace: tuple[Step, ...] | None = None,
) -> None:
    """The twin of `reference.write_token_keys`; returns without waiting.

    Args:
        inputs, input_form, indexer, into, form, rotation: As there.
        workspace: What `prepare` made of the same arguments; made where left out.

    Raises:
        TensorError: As there, and for rows that the kernels do not know. Nothing is written.
    """
    enqueue(prepare(inputs, input_form, indexer, into, form, rotation) if workspace is None else workspace)


def write_entry_keys(
    inputs: Held, layer: int, weights: LayerWeights, first: int, to: int, target: Held, rotation: str = "none"
) -> None:
    """The twin of `reference.write_entry_keys`, by the kernels of `recompress`.

    Keys that turn lie in float32 between the two launches.

    Raises:
        RepairFault, TensorError: As there.
    """
    if rotation == "none":
        entries_into(inputs, layer, weights, first, to, target)
        return
    size, place = target.form.values, target.layers[layer]
    blocks = -(-target.count // _SCRATCH_ROWS)
    buffer = torch.empty(blocks * _SCRATCH_ROWS * 4 * size, dtype=torch.uint8, device=place.buffer.device)
    scratch = Pool(buffer, Geometry(_SCRATCH_ROWS, 1, 4 * size), blocks)
    table = torch.arange(blocks, dtype=torch.int64, device=place.buffer.device)
    layers = tuple(scratch for _ in target.layers)
    entries_into(inputs, layer, weights, first, to, Held(layers, table, target.count, plain_row("fp32", size)))
    keys = buffer.view(torch.float32).view(-1, size)[: target.count]
    write_keys(keys, Span(place, target.table, 0, target.count, target.first), target.form, rotation)


def write_keys(keys: torch.Tensor, into: Span, form: RowFormat, rotation: str = "none") -> None:
    """The twin of `reference.write_keys` for float32 keys; returns without waiting.

    Raises:
        TensorError: As there, and for rows that the kernels do not know. Nothing is written.
    """
    count = into.end - into.start
    if tuple(keys.shape) != (count, form.values):
        raise TensorError("not the keys of this place", got=list(keys.shape), expected=[count, form.values])
    require_place(into, form)
    enqueue((_turning(keys.to(torch.float32).contiguous(), into, form, rotation),))


def enqueue(steps: tuple[Step, ...]) -> None:
    """Launch what was prepared; neither allocates nor waits, so that it can be captured in a graph."""
    for step in steps:
        step.enqueue()


def prepare(
    inputs: Span, input_form: RowFormat, indexer: TokenIndexer, into: Span, form: RowFormat, rotation: str = "none"
) -> tuple[Step, ...]:
    """Look at everything and bring tables and weights to the device; arguments as in `write_token_keys`.

    Raises:
        TensorError: As there.
    """
    require_token_keys(inputs, input_form, indexer, into, form)
    if rotation == "none":
        return (_making(inputs, input_form, indexer, into, form),)
    count, device = into.end - into.start, into.pool.buffer.device
    scratch = torch.empty((count, form.values), dtype=torch.float32, device=device)
    turning = _turning(scratch, into, form, rotation)
    lines = _Place(
        start=scratch.view(torch.uint8).flatten(),
        table=torch.zeros(1, dtype=torch.int64, device=device),
        blocks=1,
        first=0,
        steps=(0, 4 * form.values, 0, 4),
        rows=_ENDLESS,
    )
    return (_making(inputs, input_form, indexer, into, plain_row("fp32", form.values), lines), turning)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a launch writes: first byte of block 0, table, blocks of the pool, first row, steps, rows a block."""

    start: torch.Tensor
    table: torch.Tensor
    blocks: int
    first: int
    steps: tuple[int, int, int, int]
    rows: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """In the kernels' order."""
        by_block, by_row, _, by_value = self.steps
        return self.start, self.table, self.blocks, self.first, by_block, by_row, by_value


def _place_of(into: Span, form: RowFormat) -> _Place:
    pool = into.pool
    start = pool.buffer[pool.geometry.offset :]
    table = into.table.to(start.device)
    return _Place(start, table, pool.blocks, into.first, cell_steps(pool, form), pool.geometry.rows)


def _making(
    inputs: Span,
    input_form: RowFormat,
    indexer: TokenIndexer,
    into: Span,
    form: RowFormat,
    place: _Place | None = None,
) -> Step:
    """The launch that makes keys of the tokens of `into`."""
    from hitproof.kernels.index_rebuild.kernel import keys_kernel

    device, rotary = into.pool.buffer.device, indexer.rotary
    where = place or _place_of(into, form)
    reading = reading_of(inputs.pool, input_form)
    weight, bias, gain, shift = (
        _readable(one, device) for one in (indexer.key.weight, indexer.key.bias, indexer.norm_weight, indexer.norm_bias)
    )
    arguments = (
        reading.start,
        inputs.table.to(device),
        inputs.pool.blocks,
        located(inputs, into.start, into.end),
        *reading.steps,
        *where.arguments,
        into.end - into.start,
        weight,
        bias,
        gain,
        shift,
        float(indexer.norm_epsilon),
        *turns(torch.arange(into.start, into.end, dtype=torch.int64, device=device), rotary),
        input_form.values,
    )
    native = reading.code == _NARROW.get(weight.dtype) and device.type != "cpu"
    constants = {
        "SOURCE_ROWS": inputs.pool.geometry.rows,
        "ALIGNED": int(reading.aligned),
        "CODE": reading.code,
        # Products of 16-bit numbers are exact in float32; the interpreter has none.
        "NATIVE": int(native),
        "BIAS": int(indexer.key.bias is not None),
        **set_constants(form.values, rotary),
        **_written(where, form),
    }
    configs = NATIVE_CONFIGS if native else CONFIGS
    tiles = -(-(into.end - into.start) // config_for(configs, device).tiles["BLOCK_T"])
    return Step(keys_kernel, (tiles,), configs, arguments, constants)


def _turning(keys: torch.Tensor, into: Span, form: RowFormat, rotation: str) -> Step:
    """The launch that writes float32 keys `[T, D]`."""
    from hitproof.kernels.index_rebuild.kernel import turn_kernel

    size, turned = form.values, rotation == "hadamard"
    if turned and size & (size - 1):
        raise TensorError("only keys of a power of two can be turned", got=size, expected="a power of two")
    place = _place_of(into, form)
    steps = (size - 1).bit_length()
    constants = {"SIZE": size, "WIDTH": 1 << steps, "TURNED": int(turned), "STEPS": steps, **_written(place, form)}
    arguments = (keys, *place.arguments, keys.shape[0], size**-0.5)
    tiles = -(-keys.shape[0] // config_for(TURN_CONFIGS, keys.device).tiles["BLOCK_T"])
    return Step(turn_kernel, (tiles,), TURN_CONFIGS, arguments, constants)


def _written(place: _Place, form: RowFormat) -> dict[str, Any]:
    """Compile-time arguments of writing."""
    return {"ROWS": place.rows, "FORM": form_constants(form), "UNIT": unit_for(place.start, place.steps, form)}


def _readable(tensor: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """A type that kernels read, on the device, without gaps; empty where there is none."""
    if tensor is None:
        return torch.empty(0, dtype=torch.float32, device=device)
    kind = tensor.dtype if tensor.dtype in _NARROW else torch.float32
    return tensor.to(device, kind).contiguous()


def specs() -> list[CompileSpec]:
    """DeepSeek-V3.2's keys in eight bits, keys turned by the Walsh-Hadamard matrix, and the self-check's kernels."""
    from hitproof.kernels.index_rebuild.kernel import keys_kernel, turn_kernel

    form, size = V32_INDEX_ROW, V32_INDEX_ROW.values
    placed = {"target": "*u8", "target_table": "*i64", "target_blocks": "i32", "target_first": "i32"}
    placed |= {"to_block": "i64", "to_row": "i64", "to_value": "i64"}
    types = {"source": "*u8", "source_table": "*i64", "source_blocks": "i32", "source_first": "i32"}
    types |= {"from_block": "i64", "from_row": "i64", "from_value": "i64", **placed, "count": "i32"}
    types |= {"weight": "*bf16", "bias": "*fp32", "gain": "*fp32", "shift": "*fp32", "eps": "fp32"}
    types |= {"cosines": "*fp32", "sines": "*fp32", "inputs": "i32"}
    written: dict[str, Any] = {"ROWS": 64, "FORM": form_constants(form), "UNIT": 4}
    native: dict[str, Any] = {"SOURCE_ROWS": 16, "ALIGNED": 1, "CODE": 1, "NATIVE": 1, "BIAS": 0}
    native |= {**set_constants(size, Rotary(frequencies(64, 10000.0))), **written}
    aligned = ("source", "from_block", "from_row", "target", "to_block", "weight", "inputs")
    turning = {"SIZE": size, "WIDTH": size, "TURNED": 1, "STEPS": 7, **written}
    turned = {"keys": "*fp32", **placed, "count": "i32", "root": "fp32"}
    return [
        CompileSpec(keys_kernel, "V3.2 keys, bf16 inputs and weights", types, native, NATIVE_CONFIGS, aligned),
        CompileSpec(
            keys_kernel,
            "V3.2 keys, bf16 inputs at odd bytes, fp32 weights",
            {**types, "weight": "*fp32"},
            {**native, "ALIGNED": 0, "NATIVE": 0},
            CONFIGS,
            ("weight",),
        ),
        CompileSpec(turn_kernel, "V4 keys turned", turned, turning, TURN_CONFIGS, ("keys", "target", "to_block")),
        *choosing.specs(),
    ]
