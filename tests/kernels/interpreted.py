"""Single device functions called on tensors, and pools for kernels under test."""

from __future__ import annotations

from typing import Any

import torch

from hitproof.kernels.blocks import Geometry, Pool, gather, pool_of, scatter
from tests.kernels.tiny_kernels import decode_kernel, encode_kernel, total_kernel

__all__ = ["copies", "decoded", "encoded", "filled", "poisoned", "total"]

_BLOCK = 1 << 16


def encoded(values: Any, code: int) -> Any:
    """int64: bits of float32 numbers in a format."""
    bits = torch.empty(values.numel(), dtype=torch.int64)
    encode_kernel[(-(-values.numel() // _BLOCK),)](values, bits, values.numel(), CODE=code, BLOCK=_BLOCK)
    return bits


def decoded(bits: Any, code: int) -> Any:
    """float32: numbers of bits (int64) of a format."""
    values = torch.empty(bits.numel(), dtype=torch.float32)
    decode_kernel[(-(-bits.numel() // _BLOCK),)](bits, values, bits.numel(), CODE=code, BLOCK=_BLOCK)
    return values


def total(places: Any, words: Any) -> int:
    """The sum of the shares of words (int64) at places, at most 64 of them, modulo 2**64."""
    into = torch.zeros(1, dtype=torch.int64)
    total_kernel[(1,)](places, words, into, words.numel(), BLOCK=64)
    return int(into) & (2**64 - 1)


def poisoned(geometry: Geometry, count: int, first: int, random: Any) -> tuple[Pool, Any]:
    """A poisoned pool with room to spare, and a table of its blocks in no order."""
    needed = -(-(first + count) // geometry.rows)
    pool = pool_of(geometry, needed + 2, poison=0xA5, slack=9)
    return pool, torch.tensor(random.sample(range(needed + 2), needed), dtype=torch.int64)


def filled(geometry: Geometry, count: int, first: int, random: Any) -> tuple[Pool, Any]:
    """The same with random rows in it."""
    pool, table = poisoned(geometry, count, first, random)
    draw = torch.Generator().manual_seed(random.randrange(2**31))
    shape = (count, geometry.heads, geometry.cell_bytes)
    scatter(pool, table, torch.randint(0, 256, shape, dtype=torch.uint8, generator=draw), first)
    assert shape == tuple(gather(pool, table, count, first).shape)
    return pool, table


def copies(pool: Pool) -> tuple[Pool, Pool]:
    """Two pools of the same bytes, each in memory of its own."""
    one, two = (Pool(pool.buffer.clone(), pool.geometry, pool.blocks) for _ in range(2))
    return one, two
