"""Bytes of `window_roll`."""

from __future__ import annotations

from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.traffic import NOTHING, Traffic, blocks_of, tiles_of, words_of
from hitproof.kernels.window_roll.launch import CONFIGS, programs_of
from hitproof.spec.repair import RepairRequest

__all__ = ["moving", "traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Every row of the segment is read once, and every byte of the copy's blocks is written once."""
    held, copy = job.own(), job.copy()
    rows = int(str(request.facts["end"])) - int(str(request.facts["start"]))
    layers = range(len(copy.layers))
    return sum((moving(held, copy, layer, rows, 0, True, target) for layer in layers), NOTHING)


def moving(held: Held, copy: Held, layer: int, rows: int, left: int, measured: bool, target: str) -> Traffic:
    """One layer: `rows` are moved, `left` slots are left to others, and all else is zeroed.

    Each word asks for its slot, and if it is moved for the block of that slot and, to be measured, for its turn.
    """
    pool = copy.layers[layer]
    geometry = pool.geometry
    words = geometry.heads * words_of(copy, layer)
    blocks, cell = blocks_of(copy, layer), geometry.heads * geometry.cell_bytes
    programs = blocks * programs_of(held.layers[layer], pool, tiles_of(CONFIGS, target)["BLOCK"])
    asked = words * 8 * (copy.count + rows * (2 if measured else 1))
    written = blocks * geometry.block_bytes - left * cell
    return Traffic(read=rows * cell + asked + 8 * programs, written=written, least=rows * cell + written)
