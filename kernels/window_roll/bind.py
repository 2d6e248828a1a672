"""`window_roll` as the protocol calls it: every pool of the ring moved, then measured in the order of tokens."""

from __future__ import annotations

import torch

from hitproof.kernels.checksum.reference import finish
from hitproof.kernels.jobs import Done, Job, RepairFault
from hitproof.kernels.registry import pick
from hitproof.kernels.window_roll import launch, reference
from hitproof.kernels.window_roll.boundary import Boundary
from hitproof.kernels.window_roll.reference import Order, Ring, lost_rows, ring_after
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Move the ring's rows into the copy, in the order of the copy.

    The slots of a ring are the rows of its table, so `count` is the ring's size. `job.parameters["order"]` says how
    the rows lie in it, `by_position` where it is left out; what it holds follows from the fact `position`.
    `job.parameters["into_order"]` says the same of the copy. `job.sources["window_boundary"]` is a `Boundary`.
    """
    held, target = job.own(), job.copy()
    boundary: Boundary = job.source("window_boundary")
    roll = pick(backend, reference.window_roll_measured, launch.window_roll_measured)
    start, end, position, sequence = _facts(request)
    if held.first or target.first or len(held.layers) != len(target.layers):
        raise RepairFault("failed", "a ring begins in a block of its own, and has the same layers as its copy")
    into: Order = job.parameters.get("into_order", "by_position")
    packed = job.parameters.get("order", "by_position") == "packed"
    found = torch.arange(start, end) if packed else ring_after(position, held.count)
    heads = [pool.geometry.heads for pool in target.layers]
    total = size = 0
    for layer, (source, pool) in enumerate(zip(held.layers, target.layers, strict=True)):
        ring = Ring(source, held.table, found)
        lost = lost_rows(ring, start, end)
        if lost.numel():
            raise RepairFault("source_lost", f"{lost.numel()} rows from token {int(lost[0])} on were written over")
        share = sum(heads[:layer]), sum(heads)
        rolled, some = roll(ring, start, end, boundary, pool, target.table, target.count, into, *share)
        total += some
        size += rolled.bytes
    measured: dict[str, Value] = {"address": target.address, "measured": finish(total, size)}
    assigned: dict[str, Value] = {
        **target.told("offset", "published", "stride", "pool_epoch"),
        "boundary_version": boundary.version,
        "write_sequence": sequence + 1,
        "committed_sequence": sequence + 1,
    }
    return Done(measured, assigned)


def _facts(request: RepairRequest) -> tuple[int, int, int, int]:
    """Start, end, position pointer and write sequence of the ring."""
    names = ("start", "end", "position", "write_sequence")
    values = [request.facts.get(name) for name in names]
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) != len(names):
        raise RepairFault("failed", f"a ring is told by its {', '.join(names)}, and some are unknown")
    start, end, position, sequence = numbers
    return start, end, position, sequence
