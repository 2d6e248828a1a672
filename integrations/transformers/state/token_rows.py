"""Keys and values of tokens: of every token, of a window's last ones, and the keys of an index over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hitproof.integrations.transformers.state.layout import (
    Piece,
    RowLayout,
    as_bytes,
    as_values,
    in_all,
    joined,
    refuse,
)
from hitproof.spec.errors import ProfileError

__all__ = ["TokenKeys", "TokenRows", "WindowRows"]


class TokenRows:
    """A row for every token: all heads' keys, then all heads' values, unless one row serves as both.

    Args:
        layout: Of the group.
        probe: A cache that holds tokens.

    Raises:
        ProfileError: The profile's rows are not those of the library's tensors.
    """

    def __init__(self, layout: RowLayout, probe: Any) -> None:
        self.layout = layout
        self._shapes: dict[int, tuple[tuple[int, int], ...]] = {}
        for layer in layout.layers:
            held = probe.layers[layer]
            self.dtype, self.device = held.keys.dtype, held.keys.device
            parts = [held.keys, held.values]
            size = sum(part.shape[1] * part.shape[3] for part in parts) * self.dtype.itemsize
            if size != layout.row_bytes and torch.equal(held.keys, held.values):
                parts, size = parts[:1], size // 2
            if size != layout.row_bytes:
                raise ProfileError(
                    f"the profile's rows are not those of layer {layer}",
                    rule=layout.group,
                    got=f"{layout.row_bytes} bytes",
                    expected=f"{size} bytes",
                )
            self._shapes[layer] = tuple((part.shape[1], part.shape[3]) for part in parts)

    def held(self, cache: Any) -> tuple[int, int]:
        """Tokens whose rows all layers of the cache have; after a crop layers may have different ones."""
        return in_all(_span(cache.layers[index]) for index in self.layout.layers)

    def read(self, cache: Any, start: int, end: int, row: int) -> Any:
        """uint8 [layers, rows, row_bytes]."""
        held = self.held(cache)
        if not held[0] <= start <= end <= held[1]:
            refuse(self.layout, start, end, held)
        found = []
        for index in self.layout.layers:
            layer = cache.layers[index]
            first = _span(layer)[0]
            parts = (layer.keys, layer.values)[: len(self._shapes[index])]
            rows = [part[row, :, start - first : end - first].transpose(0, 1).flatten(1) for part in parts]
            found.append(as_bytes(torch.cat(rows, dim=1)))
        return torch.stack(found)

    def build(self, cache: Any, pieces: Sequence[Piece], length: int, check: bool) -> None:
        """Give an empty cache the rows that continuing at a length reads."""
        whole = joined(self.layout, pieces, self._first(cache, length), length, check)
        for place, index in enumerate(self.layout.layers):
            layer, values = cache.layers[index], as_values(whole[place], self.dtype).to(self.device)
            shapes = self._shapes[index]
            parts = values.split([heads * size for heads, size in shapes], dim=1)
            made = [
                part.unflatten(1, shape).transpose(0, 1).unsqueeze(0).contiguous()
                for part, shape in zip(parts, shapes, strict=True)
            ]
            layer.lazy_initialization(made[0], made[-1])
            layer.keys, layer.values = made[0], made[-1]
            if layer.is_sliding:
                layer.cumulative_length = length

    def _first(self, cache: Any, length: int) -> int:
        return 0


class WindowRows(TokenRows):
    """The same of the last tokens alone: a window of W, the query included, keeps W - 1 rows."""

    def _first(self, cache: Any, length: int) -> int:
        return max(0, length - int(cache.layers[self.layout.layers[0]].sliding_window) + 1)


class TokenKeys:
    """An index key for every token, beside the rows of a layer that chooses among tokens.

    Args:
        layout: Of the group.
        probe: A cache that holds tokens.
    """

    def __init__(self, layout: RowLayout, probe: Any) -> None:
        self.layout = layout
        held = probe.layers[layout.layers[0]].indexer_keys
        self.dtype, self.device = held.dtype, held.device
        _same_size(layout, held.shape[-1] * held.dtype.itemsize)

    def held(self, cache: Any) -> tuple[int, int]:
        """Tokens whose keys all layers of the cache have."""
        layers = [cache.layers[index] for index in self.layout.layers]
        return 0, min(layer.indexer_keys.shape[1] if layer.is_indexer_initialized else 0 for layer in layers)

    def read(self, cache: Any, start: int, end: int, row: int) -> Any:
        """uint8 [layers, rows, row_bytes]."""
        held = self.held(cache)
        if not 0 <= start <= end <= held[1]:
            refuse(self.layout, start, end, held)
        return torch.stack([as_bytes(cache.layers[index].indexer_keys[row, start:end]) for index in self.layout.layers])

    def build(self, cache: Any, pieces: Sequence[Piece], length: int, check: bool) -> None:
        """Give an empty cache the keys of all tokens before a length."""
        whole = joined(self.layout, pieces, 0, length, check)
        for place, index in enumerate(self.layout.layers):
            keys = as_values(whole[place], self.dtype).to(self.device).unsqueeze(0)
            layer = cache.layers[index]
            layer.lazy_initialization_indexer(keys)
            layer.indexer_keys = keys


def _span(layer: Any) -> tuple[int, int]:
    """Tokens whose rows a layer has."""
    length = layer.get_seq_length()
    return length - (layer.keys.shape[-2] if layer.is_initialized and length else 0), length


def _same_size(layout: RowLayout, size: int) -> None:
    if size != layout.row_bytes:
        raise ProfileError(
            "the profile's rows are not those of the model",
            rule=layout.group,
            got=f"{layout.row_bytes} bytes",
            expected=f"{size} bytes",
        )
