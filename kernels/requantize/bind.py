"""`requantize` as the protocol calls it: new content, so its fingerprint is recorded anew."""

from __future__ import annotations

from hitproof.kernels.checksum.bind import measure
from hitproof.kernels.jobs import Done, Job
from hitproof.kernels.registry import pick
from hitproof.kernels.requantize import launch, reference
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Write the segment's own values in the copy's number format."""
    held, target = job.row_by_row()
    requantize = pick(backend, reference.requantize, launch.requantize)
    for source, pool in zip(held.layers, target.layers, strict=True):
        requantize(
            source,
            held.table,
            pool,
            target.table,
            held.count,
            (held.form, held.scale),
            (target.form, target.scale),
            first=target.first,
            source_first=held.first,
        )
    taken = measure(target, backend)
    measured: dict[str, Value] = {"address": target.address, "measured": taken, "recorded": taken}
    told = target.told("offset", "published", "stride", "pool_epoch", "encoding", "scale_version")
    return Done(measured, {**told, "exactness": "approximate"})
