"""`checksum` as the protocol calls it: the fact `measured` of the rows as they lie."""

from __future__ import annotations

from hitproof.kernels.blocks import gather
from hitproof.kernels.checksum.reference import finish, partial
from hitproof.kernels.run import Done, Held, Job
from hitproof.spec.repair import RepairRequest

__all__ = ["measure", "run"]


def run(request: RepairRequest, job: Job) -> Done:
    """Take the fingerprint of the segment's own rows; writes nothing."""
    return Done({"measured": measure(job.own())})


def measure(held: Held) -> str:
    """The fingerprint of a segment's rows over all layers; a layer's heads follow those of the layer before."""
    heads = [pool.geometry.heads for pool in held.layers]
    total = size = 0
    for layer, pool in enumerate(held.layers):
        rows = gather(pool, held.table, held.count, held.first)
        total += partial(rows, head=sum(heads[:layer]), heads=sum(heads))
        size += rows.numel()
    return finish(total, size)
