"""Bytes of `index_remap`."""

from __future__ import annotations

from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.index_remap.launch import CONFIGS, places
from hitproof.kernels.jobs import Job
from hitproof.kernels.relayout.cost import copying
from hitproof.kernels.traffic import NOTHING, Traffic, tiles_of
from hitproof.spec.repair import RepairRequest

__all__ = ["traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """An index all of whose keys lead to their entries: the search is once for all layers, keys are copied a layer.

    Operations on the hash table are atomic and not in the sums: two a key where no two meet.
    """
    found, move, held = job.source("self")[0], job.source("kv"), job.copy()
    keys, moves = found.rows.numel(), move.old.numel()
    number, tile = found.rows.element_size(), tiles_of(CONFIGS, target)["BLOCK"]
    programs, size = -(-keys // tile), places(keys)
    cleared = Traffic(written=12 * size + 32)
    led = Traffic(read=keys * (number + 8 * moves.bit_length() + 4 * 8), written=keys * (8 + 1 + 8))
    judged = Traffic(read=keys * (8 + 8 + 4 + 1), written=keys)
    filed = Traffic(read=24 * programs + 16 * keys, written=keys * (number + 8))
    once = Traffic(least=2 * keys * (number + 8) + 24 * min(keys, moves))
    copied = NOTHING
    for layer in range(len(held.layers)):
        blocks = held.table.numel()
        granted = Traffic(read=24 * -(-blocks // tile) + 8 * blocks, written=8 * blocks)
        copied += granted + copying(held, layer, target)
    return cleared + led + judged + filed + once + copied
