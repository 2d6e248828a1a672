"""Bytes and operations of `index_rebuild`."""

from __future__ import annotations

import torch

from hitproof.kernels.checksum.cost import measuring
from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.index_rebuild.launch import CONFIGS, NATIVE_CONFIGS
from hitproof.kernels.index_rebuild.reference import TokenIndexer
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.numbers import ROUNDING
from hitproof.kernels.recompress.cost import of_entries
from hitproof.kernels.row_constants import set_constants
from hitproof.kernels.traffic import NOTHING, Traffic, row_bytes, tiles_of
from hitproof.spec.repair import RepairRequest

__all__ = ["traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Keys of all layers, and the copy read once more to be measured; keys that turn lie in float32 in between."""
    inputs, copy, made = job.source("layer_inputs"), job.copy(), NOTHING
    turns = job.parameters.get("rotation", "none") != "none"
    first, between = request.first, 4 * copy.form.values if turns else copy.form.cell_bytes
    for own in job.parameters["weights"]:
        if isinstance(own, TokenIndexer):
            made += _of_tokens(inputs, own, copy.count, between, target)
        else:
            made += of_entries(inputs, own, first, request.to, between, target)
        if turns:
            made += Traffic(read=copy.count * (between + 8), written=copy.count * copy.form.cell_bytes)
    return made + measuring(copy, target) + Traffic(least=row_bytes(copy))


def _of_tokens(inputs: Held, indexer: TokenIndexer, tokens: int, cell: int, target: str) -> Traffic:
    """One layer: each program reads its tokens, and all of the weight."""
    size, wide = indexer.key.weight.shape
    kept, turning = ROUNDING[inputs.form.parts[0].dtype], indexer.rotary.size
    native = target != INTERPRET and kept.bytes == 2 and indexer.key.weight.dtype == kept.dtype
    tiles = tiles_of(NATIVE_CONFIGS if native else CONFIGS, target)
    programs = -(-tokens // tiles["BLOCK_T"])
    weight = size * wide * _read_bytes(indexer.key.weight)
    others = (indexer.key.bias, indexer.norm_weight, indexer.norm_bias)
    line = weight + sum(size * _read_bytes(one) for one in others if one is not None)
    sets = set_constants(size, indexer.rotary)
    columns = sum(sets[name] * times for name, times in (("STILL", 1), ("PAIRS", 2)) if sets[name] > 1)
    steps = -(-wide // tiles["BLOCK_X"]) * tiles["BLOCK_X"]
    return Traffic(
        read=tokens * (16 + wide * kept.bytes + 4 * turning) + programs * line,
        written=tokens * cell,
        least=tokens * wide * kept.bytes + weight,
        products=2 * programs * tiles["BLOCK_T"] * steps * columns,
    )


def _read_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a number as the kernel reads it."""
    return min(4, int(tensor.element_size()))
