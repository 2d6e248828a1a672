"""`recompress` as the protocol calls it: entries of whole windows, or the state at a length."""

from __future__ import annotations

from hitproof.kernels.checksum.bind import measure
from hitproof.kernels.jobs import Done, Held, Job, RepairFault
from hitproof.kernels.recompress import launch, layers
from hitproof.kernels.recompress.inputs import LayerWeights, require_layers
from hitproof.kernels.recompress.layers import entries_between, require_windows
from hitproof.kernels.recompress.pages import state_rows
from hitproof.kernels.recompress.reference import live_rows
from hitproof.kernels.registry import pick
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["copy_facts", "entries_between", "run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Make what the segment's object is, from kept inputs of its layers.

    `job.sources["layer_inputs"]` holds the kept rows. Parameters: `object`, which is `compressed_global` or
    `compressor_state`, and `weights`, a `LayerWeights` a layer.
    """
    inputs: Held = job.source("layer_inputs")
    target = job.copy()
    weights: tuple[LayerWeights, ...] = job.parameters["weights"]
    made = str(job.parameters.get("object"))
    planned = {"compressed_global": _entries, "compressor_state": _state}.get(made)
    if planned is None:
        raise RepairFault("failed", f"recompress makes entries or states, not {made}")
    require_layers(len(weights), inputs, target)
    span = (request.first, request.to)
    for own in weights:
        span = planned(request, own, target)
    entries = pick(backend, layers.entries_into, launch.entries_into)
    state = pick(backend, layers.state_into, launch.state_into)
    for layer, own in enumerate(weights):
        if planned is _entries:
            entries(inputs, layer, own, *span, target)
        else:
            state(inputs, layer, own, request.to, target)
    told = target.told("form", "tier", "compressor_version", "offset", "published", "stride", "pool_epoch")
    measured, assigned = copy_facts(target, inputs, span, backend)
    return Done(measured, {**told, **assigned, "marks": frozenset({span[1]})})


def copy_facts(
    target: Held, inputs: Held, span: tuple[int, int], backend: str = "torch"
) -> tuple[dict[str, Value], dict[str, Value]]:
    """What every repair from kept inputs measures on its copy, and what it passes on from them.

    Raises:
        RepairFault: Nothing says whether the inputs are exact.
    """
    taken = measure(target, backend)
    measured: dict[str, Value] = {
        "start": span[0],
        "end": span[1],
        "bytes": sum(target.count * pool.geometry.heads * pool.geometry.cell_bytes for pool in target.layers),
        "measured": taken,
        "recorded": taken,
        "address": target.address,
    }
    return measured, inputs.told("exactness")


def _entries(request: RepairRequest, weights: LayerWeights, target: Held) -> tuple[int, int]:
    """The tokens that the entries stand for, which have as many rows in the copy."""
    ratio, first, to = weights.compressor.ratio, request.first, request.to
    require_windows(first, to, ratio)
    if (to - first) // ratio != target.count or first != target.start:
        raise RepairFault("failed", f"{(to - first) // ratio} entries do not go into a copy of {target.count}")
    return first, to


def _state(request: RepairRequest, weights: LayerWeights, target: Held) -> tuple[int, int]:
    """The tokens whose rows the state holds, which has all its rows in the copy."""
    compressor = weights.compressor
    first = request.to - live_rows(request.to, compressor.ratio, compressor.overlap)
    if target.count != state_rows(compressor) or not target.start == request.first == first:
        wanted = f"{target.count} rows from token {target.start}"
        raise RepairFault("failed", f"{state_rows(compressor)} rows of state from token {first}, not {wanted}")
    return first, request.to
