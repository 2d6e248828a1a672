"""Bytes of `checksum`."""

from __future__ import annotations

from hitproof.kernels.checksum.launch import CONFIGS
from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.traffic import Traffic, blocks_of, row_bytes, tiles_of, words_of
from hitproof.spec.repair import RepairRequest

__all__ = ["measuring", "traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Every row is read once, and each program reads the number of its block."""
    held = job.own()
    return measuring(held, target) + Traffic(least=row_bytes(held))


def measuring(held: Held, target: str) -> Traffic:
    """What it takes to read rows again that were just written; nothing of it is among the least."""
    tile = tiles_of(CONFIGS, target)["BLOCK"]
    programs = 0
    for layer, pool in enumerate(held.layers):
        words = pool.geometry.rows * pool.geometry.heads * words_of(held, layer)
        programs += blocks_of(held, layer) * -(-words // tile)
    return Traffic(read=row_bytes(held) + 8 * programs)
