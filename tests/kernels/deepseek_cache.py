"""What a DeepSeek cache of the library holds, as the repairs have it, and repairs run from kept inputs in blocks."""

from __future__ import annotations

from typing import Any

import torch

from hitproof.kernels.blocks import Geometry, Pool, pool_of, scatter
from hitproof.kernels.index_rebuild import compressed_keys, token_keys
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.numbers import RowFormat, encode, plain_row
from hitproof.kernels.recompress import (
    Compressed,
    Compressor,
    CompressorState,
    live_rows,
    project,
    recompress,
    state_from_rows,
)
from hitproof.kernels.recompress.inputs import LayerWeights, kept_rows
from hitproof.kernels.recompress.pages import read_rows, read_state, state_format, state_rows
from hitproof.kernels.run import run_repair
from hitproof.spec.repair import RepairRequest
from tests.kernels.tiny_deepseek import compressor_of, indexer_of, projections_of

__all__ = [
    "KeptInputs",
    "compressing",
    "entries_of",
    "put_entries",
    "put_state",
    "mend_by_protocol",
    "rebuilt",
    "rebuilt_state",
    "state_of",
]


class KeptInputs:
    """Layer inputs as a cached group: float32 rows in blocks, a pool a layer; nothing else is remembered."""

    def __init__(self, kept: dict[int, list[torch.Tensor]]) -> None:
        rows = {layer: torch.cat(parts) for layer, parts in kept.items()}
        self.count, size = next(iter(rows.values())).shape
        self.form = plain_row("fp32", size)
        blocks = -(-self.count // 16)
        self.table = torch.arange(blocks - 1, -1, -1)
        geometry = Geometry(16, 1, self.form.cell_bytes, offset=5)
        self.pools: dict[int, Pool] = {layer: pool_of(geometry, blocks, poison=0xFF) for layer in rows}
        for layer, values in rows.items():
            scatter(self.pools[layer], self.table, encode(values, self.form)[:, None])

    def held(self, layers: list[int]) -> Held:
        """The kept rows of some layers, as a repair is given them."""
        pools = tuple(self.pools[layer] for layer in layers)
        return Held(pools, self.table, self.count, self.form, tags={"exactness": "exact"})

    def read(self, layer: int, first: int = 0) -> torch.Tensor:
        """float32 [T, X] of tokens from `first` on."""
        return kept_rows(self.held([layer]), 0, first, self.count)


def compressing(model: Any) -> list[tuple[int, str, Any]]:
    """Every module of a DeepSeek-V4 that compresses: its layer, its name in the layer's cache, and itself."""
    found = []
    for layer, module in enumerate(model.model.layers):
        if compressor := module.self_attn.compressor:
            found.append((layer, "compressor", compressor))
            if hasattr(compressor, "indexer"):
                found.append((layer, "indexer", compressor.indexer))
    return found


def entries_of(cache: Any, layer: int, name: str) -> torch.Tensor:
    """[E, D], what the cache holds."""
    return cache.layers[layer].compressed_kv[name][0]


def state_of(cache: Any, layer: int, name: str, compressor: Compressor) -> CompressorState:
    """The compressor state that a cache of the library holds.

    It keeps of the overlap the first series alone, which is all that is ever read, and adds the bias to those.
    """
    held = cache.layers[layer]
    values, gates = held.buffer_kv[name][0], held.buffer_gate[name][0]
    scores = gates + compressor.position_bias[: gates.shape[0]]
    if compressor.overlap and held.overlap_kv[name] is not None:
        blank = torch.zeros_like(held.overlap_kv[name][0])
        values = torch.cat([torch.cat([held.overlap_kv[name][0], blank], dim=-1), values])
        scores = torch.cat([torch.cat([held.overlap_gate[name][0], blank - torch.inf], dim=-1), scores])
    return CompressorState(held.cumulative_length, values, scores)


def put_state(cache: Any, layer: int, name: str, state: CompressorState, compressor: Compressor) -> None:
    """Hand a state to a cache of the library."""
    held = cache.layers[layer]
    overlap = live_rows(state.length, compressor.ratio, compressor.overlap) - state.length % compressor.ratio
    bias = compressor.position_bias[: state.length % compressor.ratio]
    held.buffer_kv[name] = state.values[None, overlap:]
    held.buffer_gate[name] = (state.scores[overlap:] - bias)[None]
    if overlap:
        held.overlap_kv[name] = state.values[None, :overlap, : compressor.size]
        held.overlap_gate[name] = state.scores[None, :overlap, : compressor.size]


def put_entries(cache: Any, layer: int, name: str, entries: torch.Tensor) -> None:
    """Hand entries to a cache of the library."""
    cache.layers[layer].compressed_kv[name] = entries[None]
    cache.layers[layer].entry_count[name] = entries.shape[0]


def rebuilt(kept: KeptInputs, layer: int, name: str, module: Any) -> Compressed:
    """Entries or index keys, and the state behind them, from kept inputs alone."""
    values, gates = project(kept.read(layer), *projections_of(module))
    make = compressed_keys if name == "indexer" else recompress
    return make(values, gates, compressor_of(module))


def rebuilt_state(kept: KeptInputs, layer: int, module: Any) -> CompressorState:
    """The state alone, from no more kept inputs than it has rows."""
    compressor = compressor_of(module)
    first = kept.count - live_rows(kept.count, compressor.ratio, compressor.overlap)
    return state_from_rows(*project(kept.read(layer, first), *projections_of(module)), compressor, first)


def rebuilt_token_keys(kept: KeptInputs, model: Any, layer: int) -> torch.Tensor:
    """DeepSeek-V3.2's index keys [T, D] of one layer, from kept inputs alone."""
    return token_keys(kept.read(layer), indexer_of(model, layer))


def mend_by_protocol(model: Any, cache: Any, kept: KeptInputs) -> None:
    """Every compressed object of a DeepSeek-V4 anew: a request a group, private copies in blocks, then the cache."""
    groups: dict[tuple[str, int], list[tuple[int, Any]]] = {}
    for layer, name, module in compressing(model):
        groups.setdefault((name, module.compress_rate), []).append((layer, module))
    for (name, ratio), members in groups.items():
        modules = [module for _, module in members]
        weights = tuple(LayerWeights(compressor_of(module), *projections_of(module)) for module in modules)
        compressor, whole = weights[0].compressor, kept.count // ratio
        plain = plain_row("fp32", compressor.size)
        repair = "index_rebuild" if name == "indexer" else "recompress"
        sources = {"layer_inputs": kept.held([layer for layer, _ in members])}
        copy = _copy(plain, whole, len(members), 0)
        sources["kv"] = copy
        job = Job(None, copy, sources, {"object": "compressed_global", "weights": weights})
        run_repair(_request(repair, 0, whole * ratio, kept.count), job)
        first = kept.count - live_rows(kept.count, ratio, compressor.overlap)
        state = _copy(state_format(compressor), state_rows(compressor), len(members), first)
        job = Job(None, state, sources, {"object": "compressor_state", "weights": weights})
        run_repair(_request("recompress", first, kept.count, kept.count), job)
        for place, (layer, _) in enumerate(members):
            put_entries(cache, layer, name, read_rows(copy.layers[place], copy.table, whole, plain))
            own = weights[place].compressor
            put_state(cache, layer, name, read_state(state.layers[place], state.table, kept.count, own), own)


def _copy(form: RowFormat, count: int, layers: int, start: int) -> Held:
    blocks = -(-count // 8) + 1
    tags = dict.fromkeys(("form", "tier", "compressor_version", "index_config", "recorded"), "as wanted")
    pools = tuple(pool_of(Geometry(8, 1, form.cell_bytes, offset=9), blocks, poison=0xFF) for _ in range(layers))
    return Held(
        pools,
        torch.arange(blocks - 1, 0, -1),
        count,
        form,
        start=start,
        tags={**tags, "published": False, "pool_epoch": 1, "generation": 1},
    )


def _request(repair: str, first: int, to: int, length: int) -> RepairRequest:
    return RepairRequest(repair, "group", 0, length, first, to, facts={}, wanted={}, sources={})
