"""Small kernels for tests: one device function tried alone, and a few lanes to be counted."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_numbers import decode_bits, encode_bits
from hitproof.kernels.triton_words import total_of

__all__ = ["decode_kernel", "encode_kernel", "some_lanes_kernel", "total_kernel"]


@triton.jit
def encode_kernel(values, bits, count, CODE: tl.constexpr, BLOCK: tl.constexpr):
    """Bits of numbers in a format."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(values + index, mask=index < count)
    tl.store(bits + index, encode_bits(value, CODE).to(tl.int64), mask=index < count)


@triton.jit
def decode_kernel(bits, values, count, CODE: tl.constexpr, BLOCK: tl.constexpr):
    """Numbers of bits of a format."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(values + index, decode_bits(tl.load(bits + index, mask=index < count), CODE), mask=index < count)


@triton.jit
def total_kernel(places, words, into, count, BLOCK: tl.constexpr):
    """Sum of the shares of words."""
    index = tl.arange(0, BLOCK)
    word = tl.load(words + index, mask=index < count, other=0).to(tl.uint64, bitcast=True)
    tl.store(into, total_of(tl.load(places + index, mask=index < count, other=0), word, index < count))


@triton.jit
def some_lanes_kernel(source, target, total, N: tl.constexpr):
    """Five of eight words read, three written, two added; 16 x 16 products of 32 numbers."""
    lane = tl.arange(0, 8)
    read = tl.load(source + lane, mask=lane < 5, other=0)
    tl.store(target + lane, read.to(tl.int64), mask=lane < 3)
    tl.atomic_add(total + lane, read, mask=lane < 2)
    if tl.load(source) == 0:
        zero = tl.zeros([16, N], tl.float32)
        tl.store(total, tl.sum(tl.sum(tl.dot(zero, tl.trans(zero)), axis=0), axis=0).to(tl.int32))
