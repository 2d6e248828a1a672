"""What DeepSeek-V4's compressors make: entries, index keys, and the state from which the next ones come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hitproof.integrations.transformers.state.layout import (
    Piece,
    RowLayout,
    as_bytes,
    as_values,
    joined,
    refuse,
    state_of,
)
from hitproof.integrations.transformers.state.probe import attention_of
from hitproof.spec.errors import ProfileError

__all__ = ["CompressorStates", "Entries"]


class Entries:
    """An entry, or an index key, for every `ratio` tokens that are complete.

    Args:
        layout: Of the group.
        probe: A cache that holds tokens.
        name: `compressor` for entries, `indexer` for index keys, as the library calls them.

    Raises:
        ProfileError: The profile's rows are not those of the library's tensors.
    """

    def __init__(self, layout: RowLayout, probe: Any, name: str) -> None:
        self.layout, self._name = layout, name
        held = probe.layers[layout.layers[0]].compressed_kv[name]
        self.dtype, self.device = held.dtype, held.device
        if held.shape[-1] * held.dtype.itemsize != layout.row_bytes:
            raise ProfileError(
                "the profile's entries are not those of the model",
                rule=layout.group,
                got=f"{layout.row_bytes} bytes",
                expected=f"{held.shape[-1] * held.dtype.itemsize} bytes",
            )

    def held(self, cache: Any) -> tuple[int, int]:
        """Tokens that the entries of the cache stand for."""
        counts = (cache.layers[index].entry_count[self._name] for index in self.layout.layers)
        return 0, min(counts) * self.layout.row_tokens

    def read(self, cache: Any, start: int, end: int, row: int) -> Any:
        """uint8 [layers, rows, row_bytes]."""
        first, to = start // self.layout.row_tokens, end // self.layout.row_tokens
        held = self.held(cache)
        if not 0 <= first <= to <= held[1] // self.layout.row_tokens:
            refuse(self.layout, start, end, held)
        layers = (cache.layers[index] for index in self.layout.layers)
        if first == to:
            return torch.empty((len(self.layout.layers), 0, self.layout.row_bytes), dtype=torch.uint8)
        return torch.stack([as_bytes(layer.compressed_kv[self._name][row, first:to]) for layer in layers])

    def build(self, cache: Any, pieces: Sequence[Piece], length: int, check: bool) -> None:
        """Give an empty cache all entries that are complete at a length."""
        whole = joined(self.layout, pieces, 0, length - length % self.layout.row_tokens, check)
        for place, index in enumerate(self.layout.layers):
            layer = cache.layers[index]
            layer.compressed_kv[self._name] = as_values(whole[place], self.dtype).to(self.device).unsqueeze(0)
            layer.entry_count[self._name] = whole.shape[1]


class CompressorStates:
    """Values and scores of the tokens of the unfinished entry and, with overlap, of the one before.

    Rows lie as the repairs of `hitproof.kernels.recompress` have them: live rows first, the oldest before the others, a
    row its values and then its scores with the bias of their place added, float32; rows that are not live are blank.
    The library keeps of the overlap the first series alone, which is all that is ever read, and gates without bias.

    Args:
        layout: Of the group.
        probe: A cache that holds tokens.
        name: `compressor` or `indexer`.
        model: Whose modules have the biases.
    """

    def __init__(self, layout: RowLayout, probe: Any, name: str, model: Any) -> None:
        self.layout, self._name = layout, name
        layer = probe.layers[layout.layers[0]]
        buffer = layer.buffer_kv[name]
        self.dtype, self.device = buffer.dtype, buffer.device
        self._width, self._ratio = int(buffer.shape[-1]), int(layer.compress_rate)
        self._overlaps = hasattr(layer, "overlap_kv")
        if 8 * self._width != layout.row_bytes:
            raise ProfileError(
                "the profile's compressor states are not those of the model",
                rule=layout.group,
                got=f"{layout.row_bytes} bytes a row",
                expected=f"{8 * self._width} bytes a row",
            )
        self._biases = [_module(model, layer, name).position_bias for layer in layout.layers]

    def held(self, cache: Any) -> tuple[int, int]:
        """Tokens whose rows are live, up to the length that the state is of, wherever the layer's window stands."""
        layer = cache.layers[self.layout.layers[0]]
        buffer = layer.buffer_kv[self._name]
        length = layer.entry_count[self._name] * self._ratio + (0 if buffer is None else buffer.shape[1])
        return length - self._live(length), length

    def read(self, cache: Any, start: int, end: int, row: int) -> Any:
        """uint8 [layers, state_rows, row_bytes]; a state is of one length and has no parts."""
        held = self.held(cache)
        if end != held[1]:
            refuse(self.layout, start, end, held)
        return torch.stack(
            [
                as_bytes(self._state(cache.layers[index], bias.detach().float(), row))
                for index, bias in zip(self.layout.layers, self._biases, strict=True)
            ]
        )

    def build(self, cache: Any, pieces: Sequence[Piece], length: int, check: bool) -> None:
        """Give an empty cache the state of a length."""
        live, inside = self._live(length), length % self._ratio
        state = state_of(self.layout, pieces, length, check) if live else None
        if live and state is None:
            return
        for place, index in enumerate(self.layout.layers):
            layer, bias = cache.layers[index], self._biases[place].detach().float()
            rows = bias.new_empty((0, 2 * self._width))
            if state is not None:
                rows = as_values(state.rows[place, :live], torch.float32).to(self.device)
            values, scores = rows.split(self._width, dim=1)
            old = live - inside
            layer.buffer_kv[self._name] = values[old:].to(self.dtype).unsqueeze(0)
            layer.buffer_gate[self._name] = (scores[old:] - bias[:inside]).to(self.dtype).unsqueeze(0)
            if old:
                half = self._width // 2
                layer.overlap_kv[self._name] = values[:old, :half].to(self.dtype).unsqueeze(0)
                layer.overlap_gate[self._name] = scores[:old, :half].to(bias.dtype).unsqueeze(0)

    def _live(self, length: int) -> int:
        return length % self._ratio + (self._ratio if self._overlaps and self._ratio <= length else 0)

    def _state(self, layer: Any, bias: Any, row: int) -> Any:
        """float32 [state_rows, values and scores] of one layer."""
        state = bias.new_zeros((self.layout.state_rows, 2 * self._width))
        state[:, self._width :] = -torch.inf
        values, gates = layer.buffer_kv[self._name][row], layer.buffer_gate[self._name][row]
        old = 0
        if self._overlaps and layer.overlap_kv[self._name] is not None:
            kept, half = layer.overlap_kv[self._name][row], self._width // 2
            old = kept.shape[0]
            state[:old, :half] = kept
            state[:old, self._width : self._width + half] = layer.overlap_gate[self._name][row]
        count = values.shape[0]
        state[old : old + count, : self._width] = values
        state[old : old + count, self._width :] = gates + bias[:count]
        return state


def _module(model: Any, layer: int, name: str) -> Any:
    compressor = attention_of(model, layer).compressor
    return compressor.indexer if name == "indexer" else compressor
