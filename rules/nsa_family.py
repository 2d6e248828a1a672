"""Cache groups of native sparse attention (NSA): raw rows of which any may be selected, and an entry for each block."""

from __future__ import annotations

from hitproof.rules.cache_rows import Derived, key_value
from hitproof.rules.group_layouts import entries, full_kv, shared_constants
from hitproof.rules.model_config import ModelConfig

__all__ = ["selected_blocks"]


def selected_blocks(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Derive the groups by the keys of flash-linear-attention, whose entries are means of whole blocks.

    Which blocks a query selects, and how many, is told by its scores and by no configuration, so all raw rows are
    kept. The window's rows are among them and make no group of their own, and so are the rows of the unfinished block,
    which therefore needs no compressor state.
    """
    heads = config.integer("num_kv_heads", default=config.integer("num_heads"))
    block = config.integer("block_size")
    row = key_value(config, kv_dtype, heads=heads, width=config.integer("head_dim"))
    every = range(layers)
    return shared_constants(), [
        full_kv("full", every, row, has_v=True),
        entries("block_entries", every, row, ratio=block, has_v=True),
    ]
