"""Bytes and operations of `recompress`."""

from __future__ import annotations

from hitproof.kernels.checksum.cost import measuring
from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.norms import Linear
from hitproof.kernels.numbers import ROUNDING
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.launch import STATE
from hitproof.kernels.recompress.reference import live_rows
from hitproof.kernels.recompress.sources import PROJECT, PROJECT_FP32
from hitproof.kernels.traffic import NOTHING, Traffic, row_bytes, tiles_of
from hitproof.spec.repair import RepairRequest

__all__ = ["of_entries", "traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Entries or states of all layers, and the copy read once more to be measured."""
    inputs, copy, weights = job.source("layer_inputs"), job.copy(), job.parameters["weights"]
    made = NOTHING
    for own in weights:
        if job.parameters["object"] == "compressed_global":
            made += of_entries(inputs, own, request.first, request.to, copy.form.cell_bytes, target)
        else:
            made += _of_state(inputs, own, request.to, copy.count, target)
    return made + measuring(copy, target) + Traffic(least=row_bytes(copy))


def of_entries(inputs: Held, weights: LayerWeights, first: int, to: int, cell: int, target: str) -> Traffic:
    """One layer's entries; what is written of them is not among the least, since they may go to scratch.

    Each slot of an entry asks for the block of its token, and reads a value, a gate and a bias a number.
    """
    compressor = weights.compressor
    ratio, size, width = compressor.ratio, compressor.size, compressor.width
    lead = live_rows(first, ratio, compressor.overlap)
    entries, number = (to - first) // ratio, _number_bytes(inputs, weights)
    # With overlap the first entry of all has no window before its own.
    slots = width // size * ratio * entries - (ratio if compressor.overlap and not first else 0)
    read = slots * (8 + size * (2 * number + 4))
    read += entries * (8 + 4 * compressor.rotary.size + (0 if compressor.norm.weight is None else 4 * size))
    # A token of a window in the middle is read for two entries, in one series each.
    own = Traffic(read=read, written=entries * cell, least=0)
    return own + _projecting(inputs, weights, to - first + lead, target)


def _of_state(inputs: Held, weights: LayerWeights, length: int, rows: int, target: str) -> Traffic:
    """One layer's state: live rows are read, and all are written."""
    compressor = weights.compressor
    width, live = compressor.width, live_rows(length, compressor.ratio, compressor.overlap)
    programs = -(-width // tiles_of(STATE, target)["BLOCK_D"])
    number = _number_bytes(inputs, weights)
    read = 8 * programs * (live + rows) + live * width * (2 * number + 4)
    return Traffic(read=read, written=rows * 8 * width) + _projecting(inputs, weights, live, target)


def _number_bytes(inputs: Held, weights: LayerWeights) -> int:
    """Bytes of a value, or a gate, as the pooling reads it: float32 where it was projected."""
    return 4 if weights.value is not None else ROUNDING[inputs.form.parts[0].dtype].bytes


def _projecting(inputs: Held, weights: LayerWeights, tokens: int, target: str) -> Traffic:
    """Values and gates of so many tokens; where projections are kept, they are only read by others."""
    if weights.value is None or weights.gate is None:
        return Traffic(least=tokens * inputs.form.cell_bytes)
    both = sum((_projection(inputs, linear, tokens, target) for linear in (weights.value, weights.gate)), NOTHING)
    return both + Traffic(least=tokens * inputs.form.cell_bytes)


def _projection(inputs: Held, linear: Linear, tokens: int, target: str) -> Traffic:
    """One launch: each program reads its tokens and its lines of the weight."""
    width, size = linear.weight.shape
    kept = ROUNDING[inputs.form.parts[0].dtype]
    alike = kept.bytes == 2 and linear.weight.dtype == kept.dtype
    tiles = tiles_of(PROJECT if alike else PROJECT_FP32, target)
    down, across = -(-tokens // tiles["BLOCK_T"]), -(-width // tiles["BLOCK_D"])
    # The interpreter multiplies in float32 alone, and so are the weights that it is given.
    number = kept.bytes if alike and target != INTERPRET else 4
    read = across * tokens * (8 + size * kept.bytes) + down * width * size * number
    read += 0 if linear.bias is None else 4 * down * width
    steps = -(-size // tiles["BLOCK_N"]) * tiles["BLOCK_N"]
    products = 2 * down * tiles["BLOCK_T"] * across * tiles["BLOCK_D"] * steps
    return Traffic(read=read, written=4 * tokens * width, least=width * size * number, products=products)
