"""Words of eight bytes on the device: read from and written to rows at any byte, and their share of a fingerprint."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["load_run", "load_unit", "load_words", "store_run", "store_unit", "store_words", "total_of"]


@triton.jit
def load_unit(place, mask, UNIT: tl.constexpr):
    """uint64: `UNIT` bytes at `place`, a pointer to uint8 that is a multiple of `UNIT`; 0 where masked."""
    if UNIT == 8:
        found = tl.load(place.to(tl.pointer_type(tl.uint64)), mask=mask, other=0)
    elif UNIT == 4:
        found = tl.load(place.to(tl.pointer_type(tl.uint32)), mask=mask, other=0).to(tl.uint64)
    elif UNIT == 2:
        found = tl.load(place.to(tl.pointer_type(tl.uint16)), mask=mask, other=0).to(tl.uint64)
    else:
        found = tl.load(place, mask=mask, other=0).to(tl.uint64)
    return found


@triton.jit
def store_unit(place, value, mask, UNIT: tl.constexpr):
    """Write the low `UNIT` bytes of a uint64 to `place`, a pointer to uint8 that is a multiple of `UNIT`."""
    if UNIT == 8:
        tl.store(place.to(tl.pointer_type(tl.uint64)), value, mask=mask)
    elif UNIT == 4:
        tl.store(place.to(tl.pointer_type(tl.uint32)), value.to(tl.uint32), mask=mask)
    elif UNIT == 2:
        tl.store(place.to(tl.pointer_type(tl.uint16)), value.to(tl.uint16), mask=mask)
    else:
        tl.store(place, value.to(tl.uint8), mask=mask)


@triton.jit
def load_words(cells, word, mask, by_value, CELL: tl.constexpr, ITEM: tl.constexpr, UNIT: tl.constexpr):
    """uint64: words of cells, little-endian, the last one filled with zero bytes.

    `cells` points to the first byte of each cell. Values of `ITEM` bytes lie `by_value` apart; a cell that lies whole
    is one value. `UNIT` divides addresses, steps, `ITEM` and `CELL`.
    """
    found = tl.zeros(word.shape, tl.uint64)
    for part in tl.static_range(8 // UNIT):
        byte = word * 8 + part * UNIT
        place = cells + (byte // ITEM).to(tl.int64) * by_value + byte % ITEM
        found |= load_unit(place, mask & (byte < CELL), UNIT) << (8 * part * UNIT)
    return found


@triton.jit
def store_words(cells, word, value, mask, by_value, CELL: tl.constexpr, ITEM: tl.constexpr, UNIT: tl.constexpr):
    """Write words of cells, and nothing beyond a cell's last byte; arguments as in `load_words`."""
    for part in tl.static_range(8 // UNIT):
        byte = word * 8 + part * UNIT
        place = cells + (byte // ITEM).to(tl.int64) * by_value + byte % ITEM
        store_unit(place, value >> (8 * part * UNIT), mask & (byte < CELL), UNIT)


@triton.jit
def load_run(begin, index, whole, part, full):
    """uint64: words that lie one after the other from `begin`, a pointer to uint8 that is a multiple of 8.

    `part` masks single words. Rows of an odd number of words would so forbid accesses of two words, and most blocks are
    full: there `whole`, a mask by a constant, is used. Of the two accesses one is always off.
    """
    words = begin.to(tl.pointer_type(tl.uint64)) + index
    return tl.load(words, mask=whole & full, other=0) | tl.load(words, mask=part & (full == 0), other=0)


@triton.jit
def store_run(begin, index, value, whole, part, full):
    """Write words one after the other; arguments as in `load_run`."""
    words = begin.to(tl.pointer_type(tl.uint64)) + index
    tl.store(words, value, mask=whole & full)
    tl.store(words, value, mask=part & (full == 0))


@triton.jit
def total_of(position, value, mask):
    """int64: sum of the shares of words (uint64) at positions (int64, not negative) in the whole; see `checksum`.

    The constants are above 2**63, and shifts must not copy a sign: all of it is unsigned.
    """
    word = value ^ ((position.to(tl.uint64) + 1) * 0x9E3779B97F4A7C15)
    word ^= word >> 33
    word *= 0xFF51AFD7ED558CCD
    word ^= word >> 33
    word *= 0xC4CEB9FE1A85EC53
    word ^= word >> 33
    return tl.sum(tl.where(mask, word, 0), axis=0).to(tl.int64, bitcast=True)
