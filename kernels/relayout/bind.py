"""`relayout` as the protocol calls it: the copy is measured after it was written."""

from __future__ import annotations

from hitproof.kernels.checksum.bind import measure
from hitproof.kernels.relayout.reference import relayout
from hitproof.kernels.run import Done, Job, RepairFault
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job) -> Done:
    """Write the segment's own rows into the copy's layout."""
    held, target = job.row_by_row()
    if target.first:
        raise RepairFault("failed", f"a copy of whole blocks begins at row {target.first} of one")
    for source, pool in zip(held.layers, target.layers, strict=True):
        relayout(source, held.table, pool, target.table, held.count, source_first=held.first)
    measured: dict[str, Value] = {"address": target.address, "measured": measure(target)}
    told = target.told("layout", "kernel_version", "v_layout", "offset", "published", "stride", "pool_epoch")
    return Done(measured, told)
