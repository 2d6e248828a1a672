"""What a DeepSeek cache of the library holds, as the repairs have it, and repairs run from kept inputs in blocks."""

from __future__ import annotations

from typing import Any

import torch

from hitproof.kernels.blocks import Geometry, Pool, gather, pool_of, scatter
from hitproof.kernels.index_rebuild import compressed_keys, token_keys
from hitproof.kernels.numbers import decode, encode, plain_row
from hitproof.kernels.recompress import (
    Compressed,
    Compressor,
    CompressorState,
    live_rows,
    project,
    recompress,
    state_from_rows,
)
from tests.kernels.tiny_deepseek import compressor_of, indexer_of, projections_of

__all__ = [
    "KeptInputs",
    "compressing",
    "entries_of",
    "put_entries",
    "put_state",
    "rebuilt",
    "rebuilt_state",
    "state_of",
]


class KeptInputs:
    """Layer inputs as a cached group: float32 rows in blocks, a table a layer; nothing else is remembered."""

    def __init__(self, kept: dict[int, list[torch.Tensor]]) -> None:
        rows = {layer: torch.cat(parts) for layer, parts in kept.items()}
        self.count, self.size = next(iter(rows.values())).shape
        self.form = plain_row("fp32", self.size)
        each = -(-self.count // 16)
        # Neighbouring blocks belong to different layers, in falling order.
        order = torch.arange(each * len(rows) - 1, -1, -1).reshape(each, len(rows))
        self.pool: Pool = pool_of(Geometry(16, 1, self.form.cell_bytes, offset=5), each * len(rows), poison=0xFF)
        self.tables = {layer: order[:, place].contiguous() for place, layer in enumerate(rows)}
        for layer, values in rows.items():
            scatter(self.pool, self.tables[layer], encode(values, self.form)[:, None])

    def read(self, layer: int, first: int = 0) -> torch.Tensor:
        """float32 [T, X] of tokens from `first` on."""
        table = self.tables[layer][first // 16 :]
        return decode(gather(self.pool, table, self.count - first, first % 16)[:, 0], self.form)


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
