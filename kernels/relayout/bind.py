"""`relayout` as the protocol calls it: the copy is measured as it is written."""

from __future__ import annotations

from hitproof.kernels.checksum import finish
from hitproof.kernels.jobs import Done, Job, RepairFault
from hitproof.kernels.registry import pick
from hitproof.kernels.relayout import launch, reference
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Write the segment's own rows into the copy's layout."""
    held, target = job.row_by_row()
    if target.first:
        raise RepairFault("failed", f"a copy of whole blocks begins at row {target.first} of one")
    relayout = pick(backend, reference.relayout, launch.relayout)
    heads = [pool.geometry.heads for pool in target.layers]
    total = size = 0
    for layer, (source, pool) in enumerate(zip(held.layers, target.layers, strict=True)):
        total += relayout(
            source,
            held.table,
            pool,
            target.table,
            held.count,
            source_first=held.first,
            head=sum(heads[:layer]),
            heads=sum(heads),
        )
        size += target.count * pool.geometry.heads * pool.geometry.cell_bytes
    measured: dict[str, Value] = {"address": target.address, "measured": finish(total, size)}
    told = target.told("layout", "kernel_version", "v_layout", "offset", "published", "stride", "pool_epoch")
    return Done(measured, told)
