"""A prefix as a cache holds it: rows of every layer, and kept layer inputs, in blocks and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import DynamicCache

from hitproof.kernels.blocks import Geometry, pool_of
from hitproof.kernels.jobs import Held
from hitproof.kernels.numbers import RowFormat, decode, dtype_of, encode, plain_row
from hitproof.kernels.spans import Span, read_span, write_span
from hitproof.spec.repair import RepairRequest

__all__ = ["TAGS", "WAYS", "cache_of", "cache_rows", "error_in_logits", "held_rows", "numbers", "request", "room_for"]

ROWS = 16
TAGS = {"published": False, "pool_epoch": 1}
"""What a copy is told that its bytes cannot say."""
WAYS = ("key", "value")


def room_for(start: int, count: int, pools: int, form: RowFormat, heads: int, seed: int = 0) -> Held:
    """Poisoned blocks for so many rows in each pool, in random order."""
    blocks = -(-count // ROWS) + 2
    table = torch.randperm(blocks, generator=torch.Generator().manual_seed(seed))[: -(-count // ROWS)]
    # A NaN in every format, so that a row that nobody wrote does not pass for one.
    layers = tuple(pool_of(Geometry(ROWS, heads, form.cell_bytes), blocks, poison=0xFF) for _ in range(pools))
    return Held(layers, table, count, form, start=start, tags=TAGS)


def held_rows(rows: list[Any], start: int, dtype: str = "fp32") -> Held:
    """Rows [T, H, D], a pool each, stored in blocks."""
    count, heads, size = rows[0].shape
    held = room_for(start, count, len(rows), plain_row(dtype, size), heads, seed=count)
    for pool, numbers_of in zip(held.layers, rows, strict=True):
        write_span(Span(pool, held.table, start, start + count), start, encode(numbers_of, held.form))
    return held


def numbers(held: Held, pool: int, first: int, to: int) -> Any:
    """[T, H, D]: the rows of the tokens [first, to), as they lie in the blocks."""
    span = Span(held.layers[pool], held.table, held.start, held.start + held.count)
    return decode(read_span(span, first, to), held.form).to(dtype_of(held.form.parts[0].dtype))


def cache_rows(cache: Any, layers: list[int]) -> list[Any]:
    """[T, H, D] each: keys and values of some layers of a model's cache, layer by layer."""
    return [getattr(cache.layers[i], f"{way}s")[0].transpose(0, 1) for i in layers for way in WAYS]


def cache_of(model: Any, length: int, rows: Mapping[int, tuple[Any, Any]]) -> Any:
    """The model's own cache at a length, filled with nothing but these keys and values [T, H, D] a layer."""
    cache = DynamicCache(config=model.config)
    for index, layer in enumerate(cache.layers):
        key, value = (part.transpose(0, 1)[None] for part in rows[index])
        layer.lazy_initialization(key, value)
        layer.keys, layer.values = key, value
        if layer.is_sliding:
            layer.cumulative_length = length
    return cache


def request(repair: str, length: int, first: int, to: int, facts: Mapping[str, Any]) -> RepairRequest:
    """What a plan asks of a repair."""
    return RepairRequest(repair, "window", 0, length, first, to, facts, {}, {})


def error_in_logits(got: Any, cold: Any) -> float:
    """The largest difference of logits, as a share of their spread."""
    return float((got - cold).abs().max() / cold.std())
