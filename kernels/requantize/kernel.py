"""Values out of one number format into another; each is read once, scaled, rounded once and written."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_numbers import load_line, load_value, store_line, store_value
from hitproof.kernels.triton_words import load_unit, store_unit

__all__ = ["requantize_kernel"]


@triton.jit
def _at(cells, byte, by_value, ITEM: tl.constexpr):
    """Place of a byte of cells whose values of `ITEM` bytes lie `by_value` apart."""
    return cells + (byte // ITEM).to(tl.int64) * by_value + byte % ITEM


@triton.jit
def _power_bits(exponent):
    """float32 of 2**(exponent - 127), exponent uint32 from 0 to 255; the smallest is subnormal, 255 is infinite."""
    return tl.where(exponent == 0, 0x400000, exponent << 23).to(tl.float32, bitcast=True)


@triton.jit
def _read_scale(
    cells, small, mask, by_value, KIND: tl.constexpr, GROUP: tl.constexpr, BYTE: tl.constexpr, ITEM: tl.constexpr
):
    """float32: the inline scale of the fp8 value of that number in its row."""
    group = small // GROUP
    if KIND == 3:
        found = _power_bits(load_unit(_at(cells, BYTE + group, by_value, ITEM), mask, 1).to(tl.uint32))
    else:
        bits = load_unit(_at(cells, BYTE + group * 4, by_value, ITEM), mask, 1)
        for part in tl.static_range(1, 4):
            bits |= load_unit(_at(cells, BYTE + group * 4 + part, by_value, ITEM), mask, 1) << (8 * part)
        found = bits.to(tl.uint32).to(tl.float32, bitcast=True)
    return found


@triton.jit
def _exponent_above(exact):
    """uint32: biased exponent of the least power of two at or above; of nothing and of what is no number, that of 1."""
    bits = exact.to(tl.uint32, bitcast=True)
    normal = (bits >> 23) + ((bits & 0x7FFFFF) != 0).to(tl.uint32)
    # The least power that a byte holds, 2**-127, is half of the least normal number.
    found = tl.where(bits < 0x800000, (bits > 0x400000).to(tl.uint32), normal)
    return tl.where((exact > 0) & (bits < 0x7F800000), found, 127)


@triton.jit
def _new_scale(x, mask, LIMIT: tl.constexpr):
    """float32 [rows]: what brings the largest value of each row of x to the largest number; 0 where there is none."""
    largest = tl.max(tl.where(mask & (x == x), tl.abs(x), 0.0), axis=1)
    # With one NaN in a group no scale can be made of it.
    spoilt = tl.max((mask & (x != x)).to(tl.int32), axis=1) > 0
    largest = tl.where(spoilt, 0.0, largest)
    return tl.div_rn(largest, tl.zeros_like(largest) + LIMIT)


@triton.jit
def _write_scale(cells, exact, group, mask, by_value, KIND: tl.constexpr, BYTE: tl.constexpr, ITEM: tl.constexpr):
    """float32 [rows]: the inline scale of a group, which is written."""
    if KIND == 3:
        exponent = _exponent_above(exact)
        store_unit(_at(cells, BYTE + group, by_value, ITEM), exponent.to(tl.uint64), mask, 1)
        scale = _power_bits(exponent)
    else:
        scale = tl.where(exact > 0, exact, 1.0)
        bits = scale.to(tl.uint32, bitcast=True).to(tl.uint64)
        for part in tl.static_range(4):
            store_unit(_at(cells, BYTE + group * 4 + part, by_value, ITEM), bits >> (8 * part), mask, 1)
    return scale


@triton.jit(do_not_specialize=["count", "source_first", "first"])
def requantize_kernel(
    source,  # uint8: first byte of block 0
    held,  # int64 [blocks of the segment there]
    target,  # uint8: first byte of block 0, written
    table,  # int64 [blocks of the segment in the target]
    source_blocks,  # blocks of each pool
    target_blocks,
    count,  # rows (T)
    source_first,  # row of the first block at which they begin
    first,
    from_scale,  # float32 [T, H, fp8 values] of a source whose scales lie apart, and its steps in numbers
    from_scale_row,
    from_scale_head,
    from_scale_value,
    to_scale,  # the same of the target
    to_scale_row,
    to_scale_head,
    to_scale_value,
    from_block,  # bytes from a block to the next
    to_block,
    FROM_ROW: tl.constexpr,  # source: bytes from a row, head and value to the next
    FROM_HEAD: tl.constexpr,
    FROM_VALUE: tl.constexpr,
    TO_ROW: tl.constexpr,  # target: the same
    TO_HEAD: tl.constexpr,
    TO_VALUE: tl.constexpr,
    ROWS_IN: tl.constexpr,
    ROWS_OUT: tl.constexpr,
    ITEM_IN: tl.constexpr,
    ITEM_OUT: tl.constexpr,
    UNIT_IN: tl.constexpr,  # bytes of an access to values; 0 where they lie one after the other
    UNIT_OUT: tl.constexpr,
    CODE_IN: tl.constexpr,  # formats
    CODE_OUT: tl.constexpr,
    SIZE_IN: tl.constexpr,  # bytes of a value
    SIZE_OUT: tl.constexpr,
    BYTE_IN: tl.constexpr,  # where the run begins in a cell
    BYTE_OUT: tl.constexpr,
    SMALL_IN: tl.constexpr,  # which fp8 value of the row its first is
    SMALL_OUT: tl.constexpr,
    KIND_IN: tl.constexpr,  # scales: 0 none, 1 apart, 2 inline float32, 3 inline e8m0
    KIND_OUT: tl.constexpr,
    GROUP_IN: tl.constexpr,  # values that share an inline scale
    ONE_IN: tl.constexpr,  # whether all values of a program's row share it
    SCALES_IN: tl.constexpr,  # where inline scales begin in a cell
    SCALES_OUT: tl.constexpr,
    LIMIT: tl.constexpr,  # largest number of the target's fp8 format
    VALUES: tl.constexpr,  # values of the run
    WIDTH: tl.constexpr,  # values of a program's rows: a group where the target has inline scales
    SPAN: tl.constexpr,  # the next power of two
    PAD_AT: tl.constexpr,  # bytes at the end of a cell that hold nothing
    PAD: tl.constexpr,
    ELEMENTS: tl.constexpr,
):
    """Program (i, h, g) writes values [g * WIDTH, (g + 1) * WIDTH) of a run, of head h of a tile of rows."""
    TILE: tl.constexpr = ELEMENTS // SPAN
    token = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    head = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, SPAN)
    value = tl.program_id(2) * WIDTH + lane
    row_in, row_out = token + source_first, token + first
    here = tl.load(held + row_in // ROWS_IN, mask=token < count, other=-1)
    there = tl.load(table + row_out // ROWS_OUT, mask=token < count, other=-1)
    rows = (here >= 0) & (here < source_blocks) & (there >= 0) & (there < target_blocks)
    mask = rows[:, None] & (lane < WIDTH)[None, :] & (value < VALUES)[None, :]
    read = source + here * from_block + row_in % ROWS_IN * FROM_ROW + head * FROM_HEAD
    write = target + there * to_block + row_out % ROWS_OUT * TO_ROW + head * TO_HEAD

    if UNIT_IN == 0:
        x = load_line((read + BYTE_IN)[:, None], value[None, :], mask, CODE_IN)
    else:
        x = load_value(_at(read[:, None], BYTE_IN + value * SIZE_IN, FROM_VALUE, ITEM_IN), mask, CODE_IN, UNIT_IN)
    if KIND_IN == 1:
        place = token[:, None] * from_scale_row + head * from_scale_head + (SMALL_IN + value) * from_scale_value
        x *= tl.load(from_scale + place, mask=mask, other=1.0)
    elif KIND_IN > 1 and ONE_IN:
        small = SMALL_IN + tl.program_id(2) * WIDTH
        x *= _read_scale(read, small, rows, FROM_VALUE, KIND_IN, GROUP_IN, SCALES_IN, ITEM_IN)[:, None]
    elif KIND_IN > 1:
        small = SMALL_IN + value[None, :]
        x *= _read_scale(read[:, None], small, mask, FROM_VALUE, KIND_IN, GROUP_IN, SCALES_IN, ITEM_IN)
    if KIND_OUT == 1:
        place = token[:, None] * to_scale_row + head * to_scale_head + (SMALL_OUT + value) * to_scale_value
        x = tl.div_rn(x, tl.load(to_scale + place, mask=mask, other=1.0))
    elif KIND_OUT > 1:
        group = SMALL_OUT // WIDTH + tl.program_id(2)
        exact = _new_scale(x, mask, LIMIT)
        x = tl.div_rn(x, _write_scale(write, exact, group, rows, TO_VALUE, KIND_OUT, SCALES_OUT, ITEM_OUT)[:, None])
    if UNIT_OUT == 0:
        store_line((write + BYTE_OUT)[:, None], value[None, :], x, mask, CODE_OUT)
    else:
        store_value(_at(write[:, None], BYTE_OUT + value * SIZE_OUT, TO_VALUE, ITEM_OUT), x, mask, CODE_OUT, UNIT_OUT)
    if tl.program_id(2) == 0:
        for part in tl.static_range(PAD):
            byte = tl.program_id(2) + PAD_AT + part
            store_unit(_at(write, byte, TO_VALUE, ITEM_OUT), tl.zeros([TILE], tl.uint64), rows, 1)
