"""`promote` as the protocol calls it: the manifest is asked first, and a broken transfer is told as one."""

from __future__ import annotations

from hitproof.kernels.checksum import finish
from hitproof.kernels.jobs import Done, Job, RepairFault
from hitproof.kernels.promote import launch, reference
from hitproof.kernels.promote.reference import Manifest
from hitproof.kernels.registry import pick
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Bring a lower replica into the copy's blocks.

    `job.sources["demoted_prefix"]` is the `Manifest` of the segment. Bytes that are not those which were recorded give
    `failed`: the copy was written and is not to be trusted.
    """
    staging, target = job.row_by_row()
    manifest: Manifest = job.source("demoted_prefix")
    if manifest.rows != staging.count:
        raise RepairFault("failed", f"the manifest tells of {manifest.rows} rows, and staging holds {staging.count}")
    late = int((~manifest.arrived).sum())
    if late:
        raise RepairFault("transfer_failed", f"{late} of {manifest.arrived.numel()} blocks have not arrived")
    promote = pick(backend, reference.promote, launch.promote)
    heads = [pool.geometry.heads for pool in target.layers]
    total = size = 0
    for layer, (source, pool) in enumerate(zip(staging.layers, target.layers, strict=True)):
        total += promote(
            source,
            staging.table,
            pool,
            target.table,
            target.count,
            first=target.first,
            head=sum(heads[:layer]),
            heads=sum(heads),
        )
        size += target.count * pool.geometry.heads * pool.geometry.cell_bytes
    taken, recorded = finish(total, size), request.facts.get("recorded")
    if recorded is not None and recorded != taken:
        raise RepairFault("failed", f"the fingerprint {taken} arrived, and {recorded} was recorded")
    measured: dict[str, Value] = {"address": target.address, "measured": taken}
    return Done(measured, target.told("form", "tier", "offset", "published", "stride", "pool_epoch"))
