"""Cache groups of Llama 4: layers that see their own chunk alone, and full ones between them."""

from __future__ import annotations

from hitproof.rules.attention_families import heads_of
from hitproof.rules.cache_rows import Derived, key_value, layer_kinds, where
from hitproof.rules.group_layouts import boundary, full_kv, shared_constants, tail
from hitproof.rules.model_config import ModelConfig

__all__ = ["chunked"]

_CHUNKED = "chunked_attention"
_FULL = "full_attention"
# What an absent key means to the library that reads these configurations.
_INTERVAL = 4


def chunked(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Derive the groups: a layer with rotary positions is chunked, one without is full.

    A chunked layer is a window of one chunk that is cut at every multiple of the chunk: a query reads the rows of its
    own chunk and no older ones, so that nothing is read at a multiple.
    """
    kinds = layer_kinds(config, layers, (_CHUNKED, _FULL)) or _by_rotation(config, layers)
    heads, width = heads_of(config)
    row = key_value(config, kv_dtype, heads=heads, width=width)
    full, local = where(kinds, _FULL), where(kinds, _CHUNKED)
    groups = [full_kv("full", full, row, has_v=True)] if full else []
    if not local:
        return shared_constants(), groups
    chunk = config.integer("attention_chunk_size")
    groups += [tail(local, row, window=chunk, chunk=chunk, has_v=True), boundary(local, window=chunk, chunk=chunk)]
    return shared_constants(chunk=chunk), groups


def _by_rotation(config: ModelConfig, layers: int) -> tuple[str, ...]:
    """Kinds by `no_rope_layers`, where 1 means rotary positions; an empty list stands for the interval."""
    stated = config.entries("no_rope_layers") if config.has("no_rope_layers") else ()
    if not stated:
        interval = config.integer("no_rope_layer_interval", default=_INTERVAL)
        return tuple(_CHUNKED if (layer + 1) % interval else _FULL for layer in range(layers))
    if len(stated) != layers:
        config.refuse("no_rope_layers", "does not name every layer", got=len(stated), expected=layers)
    for layer, rotary in enumerate(stated):
        if isinstance(rotary, bool) or rotary not in (0, 1):
            config.refuse(f"no_rope_layers[{layer}]", "is neither 0 nor 1", got=rotary)
    return tuple(_CHUNKED if rotary else _FULL for rotary in stated)
