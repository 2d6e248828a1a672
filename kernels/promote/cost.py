"""Bytes of `promote`."""

from __future__ import annotations

from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Job
from hitproof.kernels.promote.launch import CONFIGS
from hitproof.kernels.traffic import Traffic, blocks_of, row_bytes, tiles_of, words_of
from hitproof.spec.repair import RepairRequest

__all__ = ["traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Every row is read once and written once; each program reads two numbers of blocks."""
    held, size, tile = job.copy(), row_bytes(job.copy()), tiles_of(CONFIGS, target)["BLOCK"]
    programs = 0
    for layer, pool in enumerate(held.layers):
        words = pool.geometry.rows * pool.geometry.heads * words_of(held, layer)
        programs += blocks_of(held, layer) * -(-words // tile)
    return Traffic(read=size + 16 * programs, written=size, least=2 * size)
