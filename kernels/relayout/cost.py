"""Bytes of `relayout`."""

from __future__ import annotations

from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.relayout.launch import CONFIGS
from hitproof.kernels.traffic import NOTHING, Traffic, blocks_of, cells_of, tiles_of, words_of
from hitproof.spec.repair import RepairRequest

__all__ = ["copying", "traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Every row is read once, and every byte of the copy's blocks is written once."""
    held = job.copy()
    return sum((copying(held, layer, target) for layer in range(len(held.layers))), NOTHING)


def copying(held: Held, layer: int, target: str) -> Traffic:
    """One layer of the copy `held`: each word asks for the block of its row, each program for its own."""
    geometry, cells = held.layers[layer].geometry, cells_of(held, layer)
    words, blocks = words_of(held, layer), blocks_of(held, layer)
    tile = tiles_of(CONFIGS, target)["BLOCK"]
    rest = geometry.block_bytes - geometry.rows * geometry.heads * geometry.cell_bytes
    programs = blocks * (-(-(geometry.rows * geometry.heads * words) // tile) + -(-rest // tile))
    written = blocks * geometry.block_bytes
    rows = cells * geometry.cell_bytes
    return Traffic(read=rows + 8 * cells * words + 8 * programs, written=written, least=rows + written)
