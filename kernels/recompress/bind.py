"""`recompress` as the protocol calls it: entries of whole windows, or the state at a length."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hitproof.kernels.checksum.bind import measure
from hitproof.kernels.recompress.inputs import LayerWeights, kept_rows, require_layers, values_and_gates
from hitproof.kernels.recompress.pages import state_rows, write_rows, write_state
from hitproof.kernels.recompress.reference import Compressed, CompressorState, live_rows, recompress, state_from_rows
from hitproof.kernels.run import Done, Held, Job, RepairFault
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["copy_facts", "entries_between", "run"]


def run(request: RepairRequest, job: Job) -> Done:
    """Make what the segment's object is, from kept inputs of its layers.

    `job.sources["layer_inputs"]` holds the kept rows. Parameters: `object`, which is `compressed_global` or
    `compressor_state`, and `weights`, a `LayerWeights` a layer.
    """
    inputs: Held = job.source("layer_inputs")
    target = job.copy()
    weights: tuple[LayerWeights, ...] = job.parameters["weights"]
    made = str(job.parameters.get("object"))
    write = {"compressed_global": _entries, "compressor_state": _state}.get(made)
    if write is None:
        raise RepairFault("failed", f"recompress makes entries or states, not {made}")
    span = (request.first, request.to)
    require_layers(len(weights), inputs, target)
    for layer, own in enumerate(weights):
        span = write(request, inputs, layer, own, target)
    told = target.told("form", "tier", "compressor_version", "offset", "published", "stride", "pool_epoch")
    measured, assigned = copy_facts(target, inputs, span)
    return Done(measured, {**told, **assigned, "marks": frozenset({span[1]})})


def copy_facts(target: Held, inputs: Held, span: tuple[int, int]) -> tuple[dict[str, Value], dict[str, Value]]:
    """What every repair from kept inputs measures on its copy, and what it passes on from them.

    Raises:
        RepairFault: Nothing says whether the inputs are exact.
    """
    taken = measure(target)
    measured: dict[str, Value] = {
        "start": span[0],
        "end": span[1],
        "bytes": sum(target.count * pool.geometry.heads * pool.geometry.cell_bytes for pool in target.layers),
        "measured": taken,
        "recorded": taken,
        "address": target.address,
    }
    return measured, inputs.told("exactness")


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
    if first % compressor.ratio or to % compressor.ratio:
        raise RepairFault("failed", f"[{first}, {to}) is not of whole windows of {compressor.ratio} tokens")
    lead = live_rows(first, compressor.ratio, compressor.overlap)
    values, gates = values_and_gates(rows(first - lead, to), weights)
    state = state_from_rows(values[:lead], gates[:lead], compressor, first - lead)
    return recompress(values[lead:], gates[lead:], compressor, state)


def _entries(request: RepairRequest, inputs: Held, layer: int, weights: LayerWeights, target: Held) -> tuple[int, int]:
    """Write one layer's entries; returns the tokens that they stand for."""
    made = entries_between(lambda first, to: kept_rows(inputs, layer, first, to), weights, request.first, request.to)
    ratio = weights.compressor.ratio
    if int(made.entries.shape[0]) != target.count or made.first * ratio != target.start:
        raise RepairFault("failed", f"{made.entries.shape[0]} entries do not go into a copy of {target.count}")
    write_rows(target.layers[layer], target.table, made.entries, target.form, target.first)
    return made.first * ratio, (made.first + target.count) * ratio


def _state(request: RepairRequest, inputs: Held, layer: int, weights: LayerWeights, target: Held) -> tuple[int, int]:
    """Write one layer's state; returns the tokens whose rows it holds."""
    compressor = weights.compressor
    first = request.to - live_rows(request.to, compressor.ratio, compressor.overlap)
    state: CompressorState = state_from_rows(
        *values_and_gates(kept_rows(inputs, layer, first, request.to), weights), compressor, first
    )
    if target.count != state_rows(compressor) or not target.start == request.first == first:
        wanted = f"{target.count} rows from token {target.start}"
        raise RepairFault("failed", f"{state_rows(compressor)} rows of state from token {first}, not {wanted}")
    write_state(target.layers[layer], target.table, state, compressor, target.first)
    return first, state.length
