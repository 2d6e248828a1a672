"""`checksum` as the protocol calls it: the fact `measured` of the rows as they lie."""

from __future__ import annotations

from hitproof.kernels.checksum import launch, reference
from hitproof.kernels.checksum.reference import finish
from hitproof.kernels.jobs import Done, Held, Job
from hitproof.kernels.registry import pick
from hitproof.spec.repair import RepairRequest

__all__ = ["measure", "run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Take the fingerprint of the segment's own rows; writes nothing."""
    return Done({"measured": measure(job.own(), backend)})


def measure(held: Held, backend: str = "torch") -> str:
    """The fingerprint of a segment's rows over all layers; a layer's heads follow those of the layer before."""
    share_of = pick(backend, reference.share_of, launch.share_of)
    heads = [pool.geometry.heads for pool in held.layers]
    total = size = 0
    for layer, pool in enumerate(held.layers):
        total += share_of(pool, held.table, held.count, held.first, sum(heads[:layer]), sum(heads))
        size += held.count * pool.geometry.heads * pool.geometry.cell_bytes
    return finish(total, size)
