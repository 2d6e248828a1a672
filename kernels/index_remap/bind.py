"""`index_remap` as the protocol calls it: a key that cannot be led to its entry is a fault, and nothing is written."""

from __future__ import annotations

from hitproof.kernels.checksum import finish
from hitproof.kernels.index_remap import launch, reference
from hitproof.kernels.index_remap.reference import Move, RowMap
from hitproof.kernels.jobs import Done, Held, Job, RepairFault
from hitproof.kernels.registry import pick
from hitproof.kernels.spans import Span
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Copy the keys of every layer, and write the map of the copy.

    `job.sources["self"]` is a pair of `RowMap`: the one that was found, and that of the copy, which is overwritten.
    `job.sources["kv"]` is the `Move` of the entries, with their generation.
    """
    held, target = job.own(), job.copy()
    found, copy = _maps(job)
    move: Move = job.source("kv")
    if target.count != held.count or len(target.layers) != len(held.layers) or move.generation is None:
        raise RepairFault(
            "failed", f"{held.count} keys do not go into a copy of {target.count}, or no generation is told"
        )
    keys = [_span(held, layer) for layer in range(len(held.layers))]
    into = [_span(target, layer) for layer in range(len(target.layers))]
    remap = pick(backend, reference.index_remap_measured, launch.index_remap_measured)
    result, total = remap(keys, found, move, into, copy)
    if result.lost.numel():
        raise RepairFault("source_lost", f"the entries of {result.lost.numel()} keys are no more")
    if result.misled.numel():
        raise RepairFault("failed", f"{result.misled.numel()} keys would lead to entries of other positions")
    size = sum(target.count * pool.geometry.heads * pool.geometry.cell_bytes for pool in target.layers)
    measured: dict[str, Value] = {"address": target.address, "measured": finish(total, size)}
    told = target.told("offset", "published", "stride", "pool_epoch")
    return Done(measured, {**told, "kv_generation": move.generation})


def _maps(job: Job) -> tuple[RowMap, RowMap]:
    found, copy = job.source("self")
    return found, copy


def _span(held: Held, layer: int) -> Span:
    return Span(held.layers[layer], held.table, 0, held.count, held.first)
