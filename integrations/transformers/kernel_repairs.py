"""Repairs that begin from kept inputs, run by the kernels' own protocol on the pools of the cache manager.

A kernel writes keys and values into blocks of their own, and here both are one row. So it writes beside the pools, and
what it has written is put together to rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from hitproof.engine.compile import CompiledGroup
from hitproof.integrations.transformers.inputs import Provenance
from hitproof.integrations.transformers.weights import cache_path, compressor_weights, index_weights
from hitproof.kernels.blocks import Geometry, Pool, gather, pool_of
from hitproof.kernels.index_rebuild import TokenIndexer
from hitproof.kernels.jobs import Held, Job, RepairFault
from hitproof.kernels.memory import TorchMemory
from hitproof.kernels.numbers import RowFormat, plain_row
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.pages import state_format, state_rows
from hitproof.kernels.run import run_repair
from hitproof.kernels.tail_fill import CachePath
from hitproof.spec.bound import BoundGroup
from hitproof.spec.repair import RepairJob, Source

__all__ = ["KernelRepairs"]

_ROWS = 16
"""Rows of a block into which a kernel writes; any number will do."""
_FORMATS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_TOLD = ("form", "tier", "published", "pool_epoch", "compressor_version", "index_config", "marks")
"""Facts of a copy that its bytes cannot say."""


class KernelRepairs:
    """Runs `tail_fill`, `recompress` and `index_rebuild` for one model.

    Args:
        model: The model.
        groups: Its groups.
        memory: The pools.
        ran: Behind what inputs ran that were kept.
    """

    def __init__(self, model: Any, groups: Iterable[CompiledGroup], memory: TorchMemory, ran: Provenance) -> None:
        self._model, self._memory, self._ran = model, memory, ran
        self._groups = {group.id: group.bound for group in groups}
        self._chosen = any(group.object in ("compressed_global", "routing_index") for group in self._groups.values())
        """Whether layers attend to what a compressor or an index makes, so that inputs depend on its version."""

    def tail_fill(self, job: RepairJob) -> bytes:
        """The rows of `job.request.wanted`: those that are held, and younger ones made from inputs.

        Raises:
            RepairFault: It cannot be done.
        """
        group = self._groups[job.request.group]
        if job.own is None:
            raise RepairFault("source_lost", "the segment's own rows are gone")
        start, end = _span(job.request.wanted)
        paths = tuple(cache_path(self._model, layer) for layer in group.layers)
        copies: list[Pool] = []
        found: list[Pool] = []
        for pool, path in zip(self._memory.layers(group.id), paths, strict=True):
            for geometry in _ways(path, pool.geometry, self._item):
                found.append(Pool(pool.buffer, geometry, pool.blocks))
                copies.append(_pool(geometry.heads, geometry.cell_bytes, end - start))
        form = plain_row(self._format, _size(paths[0]))
        first, to = _span(job.own.facts)
        own = Held(tuple(found), _table(job.own), to - first, form, start=first)
        target = _beside(copies, end - start, form, start, job.request.wanted)
        run_repair(job.request, Job(own, target, self._inputs(job, group, to, end), {"paths": paths}))
        return _together(target, 1 if paths[0].value is None else 2)

    def recompress(self, job: RepairJob) -> bytes:
        """Entries, or the state of a compressor at a length, made from inputs.

        Raises:
            RepairFault: It cannot be done.
        """
        group = self._groups[job.request.group]
        start, end = _span(job.request.wanted)
        weights = tuple(self._pooling(group, layer) for layer in group.layers)
        compressor = weights[0].compressor
        if group.object == "compressor_state":
            form, count = state_format(compressor), state_rows(compressor)
        else:
            form, count = plain_row(self._format, compressor.size), (end - start) // compressor.ratio
        target = _beside(_pools(form, len(weights), count), count, form, start, job.request.wanted)
        parameters = {"object": group.object, "weights": weights}
        run_repair(job.request, Job(None, target, self._inputs(job, group, start, end), parameters))
        return _together(target, 1)

    def index_rebuild(self, job: RepairJob) -> bytes:
        """Index keys, made from inputs for the entries that are held.

        Raises:
            RepairFault: It cannot be done.
        """
        group, wanted = self._groups[job.request.group], job.request.wanted
        if not job.held[job.peers["kv"]]:
            raise RepairFault("source_lost", "there are no entries to make keys for")
        start, end = _span(wanted)
        weights = tuple(index_weights(self._model, layer) for layer in group.layers)
        sizes = {one.key.weight.shape[0] if isinstance(one, TokenIndexer) else one.compressor.size for one in weights}
        form, count = plain_row(self._format, sizes.pop()), (end - start) // int(group.constants["row_tokens"])
        target = _beside(_pools(form, len(weights), count), count, form, start, wanted)
        sources = {**self._inputs(job, group, start, end), "kv": self._entries(job, form)}
        run_repair(job.request, Job(None, target, sources, {"weights": weights}))
        return _together(target, 1)

    def _entries(self, job: RepairJob, form: RowFormat) -> Held:
        """The entries for which index keys are made; of their bytes nothing is read."""
        found = job.held[job.peers["kv"]]
        wanted = job.request.wanted
        told = {"recorded": wanted.get("kv_content"), "generation": wanted.get("kv_generation")}
        rows = sum(source.extent.rows for source in found)
        return Held(self._memory.layers(job.peers["kv"]), _table(found[0]), rows, form, tags=told)

    @property
    def _format(self) -> str:
        name = _FORMATS.get(self._model.dtype)
        if name is None:
            raise RepairFault("failed", f"no kernel makes rows of {self._model.dtype}")
        return name

    @property
    def _item(self) -> int:
        return int(self._model.dtype.itemsize)

    def _pooling(self, group: BoundGroup, layer: int) -> LayerWeights:
        """What pools rows of a layer: its compressor, or that of its index."""
        of_index = group.object == "compressor_state" and self._groups[group.peers["entries"]].object == "routing_index"
        found = index_weights(self._model, layer) if of_index else compressor_weights(self._model, layer)
        if isinstance(found, TokenIndexer):
            raise RepairFault("failed", f"the index of layer {layer} pools nothing")
        return found

    def _inputs(self, job: RepairJob, group: BoundGroup, first: int, to: int) -> dict[str, Any]:
        """Kept inputs of the group's layers, of the one segment that has the tokens [first, to)."""
        kept = self._groups[job.peers["inputs"]]
        for source in job.held[kept.id]:
            start, end = _span(source.facts)
            if not start <= first or not to <= end or not source.extent.blocks:
                continue
            if self._chosen and not self._ran.serves(source.facts.get("recorded"), job.facts):
                raise RepairFault("source_lost", "the kept inputs ran behind another compressor or index")
            pools = self._memory.layers(kept.id)
            chosen = tuple(pools[kept.layers.index(layer)] for layer in group.layers)
            size = chosen[0].geometry.cell_bytes // self._item
            tags = {"exactness": source.facts.get("exactness")}
            held = Held(chosen, _table(source), end - start, plain_row(self._format, size), start=start, tags=tags)
            return {"layer_inputs": held}
        raise RepairFault("source_lost", f"no inputs are kept of the tokens {first} to {to}")


def _ways(path: CachePath, row: Geometry, item: int) -> list[Geometry]:
    """Where keys lie in a pool of whole rows, and values behind them."""
    found, offset = [], 0
    for linear in (path.key, path.value):
        if linear is not None:
            cell = linear.weight.shape[0] // path.heads * item
            found.append(
                Geometry(row.rows, path.heads, cell, pitch=row.pitch, stride=row.stride, offset=row.offset + offset)
            )
            offset += path.heads * cell
    return found


def _size(path: CachePath) -> int:
    """Numbers of a head's row; keys and values have as many."""
    sizes = {linear.weight.shape[0] // path.heads for linear in (path.key, path.value) if linear is not None}
    if len(sizes) != 1:
        raise RepairFault("failed", "keys and values are of different sizes")
    return int(sizes.pop())


def _pools(form: RowFormat, layers: int, rows: int) -> list[Pool]:
    return [_pool(1, form.cell_bytes, rows) for _ in range(layers)]


def _pool(heads: int, cell: int, rows: int) -> Pool:
    return pool_of(Geometry(_ROWS, heads, cell), -(-rows // _ROWS))


def _beside(pools: Sequence[Pool], rows: int, form: RowFormat, start: int, wanted: Mapping[str, Any]) -> Held:
    table = torch.arange(-(-rows // _ROWS), dtype=torch.int64)
    return Held(tuple(pools), table, rows, form, start=start, tags={name: wanted.get(name) for name in _TOLD})


def _together(held: Held, ways: int) -> bytes:
    """[layers][rows][row_bytes] of what was written; of `ways` pools a layer, the second one's part of a row behind."""
    parts = [gather(pool, held.table, held.count).flatten(1) for pool in held.layers]
    layers = [torch.cat(parts[place : place + ways], dim=1) for place in range(0, len(parts), ways)]
    return bytes(torch.stack(layers).numpy().tobytes())


def _table(source: Source) -> torch.Tensor:
    return torch.tensor(source.extent.blocks, dtype=torch.int64)


def _span(facts: Mapping[str, Any]) -> tuple[int, int]:
    start, end = facts.get("start"), facts.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise RepairFault("failed", f"[{start}, {end}) is no span of tokens")
    return start, end
