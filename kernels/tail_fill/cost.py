"""Bytes and operations of `tail_fill`."""

from __future__ import annotations

from hitproof.kernels.checksum.cost import measuring
from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.numbers import ROUNDING
from hitproof.kernels.rotary import Rotary
from hitproof.kernels.row_constants import set_constants
from hitproof.kernels.tail_fill.launch import configs_for
from hitproof.kernels.tail_fill.projection import CachePath
from hitproof.kernels.traffic import NOTHING, Traffic, tiles_of
from hitproof.kernels.window_roll.cost import moving
from hitproof.spec.repair import RepairRequest

__all__ = ["traffic"]


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Held rows are moved, missing ones are made, and the copy is read once more to be measured."""
    held, copy, inputs = job.own(), job.copy(), job.source("layer_inputs")
    kept = held.start + held.count - copy.start
    missing, place, made = copy.count - kept, 0, NOTHING
    for path in job.parameters["paths"]:
        kinds = [(path.key, path.key_norm, path.rotary)]
        kinds += [] if path.value is None else [(path.value, path.value_norm, None)]
        made += Traffic(least=missing * inputs.form.cell_bytes)
        for linear, norm, rotary in kinds:
            made += moving(held, copy, place, kept, missing, False, target)
            made += _making(inputs, copy, path, linear, norm, rotary, missing, target)
            place += 1
    return made + measuring(copy, target)


def _making(
    inputs: Held,
    copy: Held,
    path: CachePath,
    linear: Linear,
    norm: Norm | None,
    rotary: Rotary | None,
    missing: int,
    target: str,
) -> Traffic:
    """Keys, or values, of one layer: each program reads its tokens, twice for a norm, and a head's lines."""
    number, size = ROUNDING[inputs.form.parts[0].dtype].bytes, inputs.form.values
    heads, own = path.heads, copy.form.values
    tiles = tiles_of(configs_for(own, inputs.form), target)
    tile = tiles["BLOCK_T"]
    programs = heads * -(-missing // tile)
    before = path.input_norm
    turning = 0 if rotary is None else rotary.size
    read = heads * missing * (16 + size * number * (1 if before is None else 2) + 4 * turning)
    line = own * size * number + (0 if linear.bias is None else own * number)
    line += 0 if before is None or before.weight is None else 4 * size
    line += 0 if norm is None or norm.weight is None else 4 * norm.weight.numel()
    sets = set_constants(own, rotary)
    columns = sum(sets[name] * times for name, times in (("STILL", 1), ("PAIRS", 2)) if sets[name] > 1)
    steps = -(-size // tiles["BLOCK_N"]) * tiles["BLOCK_N"]
    written = heads * missing * copy.form.cell_bytes
    return Traffic(
        read=read + programs * line,
        written=written,
        least=heads * own * size * number + written,
        products=2 * programs * tile * steps * columns,
    )
