"""Steps that kernels share which make rows: numbers read, projected, normed, turned, and written with their scales.

A row's numbers come in three sets: those that stay, and the first and the second number of each pair that turns. The
numbers of a pair so meet at the same place of two tensors, whichever way a model pairs them. A set that a row does not
have is one masked number wide.
"""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_numbers import (
    from_bf16_bits,
    from_fp16_bits,
    store_value,
    to_bf16_bits,
    to_fp16_bits,
)

__all__ = [
    "load_numbers",
    "matmul_step",
    "pair_columns",
    "rounded",
    "scale_of",
    "scaled",
    "sets_scaled",
    "still_columns",
    "store_rows",
    "turned",
]


@triton.jit
def load_numbers(start, at, mask, CODE: tl.constexpr, ALIGNED: tl.constexpr):
    """float32 numbers of fp32, bf16 or fp16 rows, 0 where masked; `at` counts numbers where ALIGNED, else bytes."""
    if CODE == 0:
        if ALIGNED:
            found = tl.load(start.to(tl.pointer_type(tl.float32)) + at, mask=mask, other=0.0)
        else:
            bits = _two_bytes(start, at, mask) | (_two_bytes(start, at + 2, mask) << 16)
            found = bits.to(tl.float32, bitcast=True)
    else:
        if ALIGNED:
            half = tl.load(start.to(tl.pointer_type(tl.uint16)) + at, mask=mask, other=0)
        else:
            half = _two_bytes(start, at, mask).to(tl.uint16)
        if CODE == 1:
            found = from_bf16_bits(half)
        else:
            found = from_fp16_bits(half)
    return found


@triton.jit
def _two_bytes(start, at, mask):
    """uint32: two bytes at any place."""
    low = tl.load(start + at, mask=mask, other=0).to(tl.uint32)
    return low | (tl.load(start + at + 1, mask=mask, other=0).to(tl.uint32) << 8)


@triton.jit
def rounded(values, CODE: tl.constexpr):
    """float32 values rounded to fp32, bf16 or fp16, to nearest even."""
    if CODE == 1:
        values = from_bf16_bits(to_bf16_bits(values))
    elif CODE == 2:
        values = from_fp16_bits(to_fp16_bits(values))
    return values


@triton.jit
def matmul_step(sums, rows, weight, line, there, inputs, n, NATIVE: tl.constexpr):
    """Add the products of some numbers `n` of rows [T, n] with lines of a weight [lines, inputs].

    With NATIVE the rows are numbers of the weight's own 16-bit type, and products are formed in it: they are exact in
    float32 either way.
    """
    place = weight + line.to(tl.int64)[None, :] * inputs + n[:, None]
    lines = tl.load(place, mask=there[None, :] & (n < inputs)[:, None], other=0.0)
    if NATIVE:
        sums = tl.dot(rows.to(lines.dtype), lines, sums)
    else:
        sums = tl.dot(rows, lines.to(tl.float32), sums, input_precision="ieee")
    return sums


@triton.jit
def still_columns(SIZE: tl.constexpr, TURNING: tl.constexpr, TRAILING: tl.constexpr, WIDTH: tl.constexpr):
    """Columns that do not turn, and which of `WIDTH` there are."""
    at = tl.arange(0, WIDTH)
    if TRAILING:
        column = at
    else:
        column = at + TURNING
    if SIZE - TURNING == WIDTH:
        # Said outright, so that no mask is kept in registers.
        there = tl.full([WIDTH], True, tl.int1)
    else:
        there = at < SIZE - TURNING
    return column, there


@triton.jit
def pair_columns(
    SIZE: tl.constexpr, TURNING: tl.constexpr, TRAILING: tl.constexpr, APART: tl.constexpr, WIDTH: tl.constexpr
):
    """Columns of each pair's two numbers, neighbours or half of `TURNING` apart, and which of `WIDTH` there are."""
    at = tl.arange(0, WIDTH)
    first: tl.constexpr = SIZE - TURNING if TRAILING else 0
    if APART:
        left, right = first + at, first + at + TURNING // 2
    else:
        left, right = first + 2 * at, first + 2 * at + 1
    if TURNING // 2 == WIDTH:
        there = tl.full([WIDTH], True, tl.int1)
    else:
        there = at < TURNING // 2
    return left, right, there


@triton.jit
def scaled(
    values,
    root,
    gain,
    column,
    there,
    covered,
    COVER: tl.constexpr,
    GAIN: tl.constexpr,
    ROUNDS_FIRST: tl.constexpr,
    CODE: tl.constexpr,
):
    """Rows times 1 / root mean square [T], and times the gain, in the columns that the norm covers.

    `COVER`: 0 where it covers none of the columns, 2 where all of them, else 1: those below `covered`.
    """
    if COVER == 1:
        there = there & (column < covered)
    if COVER > 0:
        made = values * root[:, None]
        if ROUNDS_FIRST:
            made = rounded(made, CODE)
        if GAIN:
            made *= tl.load(gain + column, mask=there, other=1.0)[None, :]
        made = rounded(made, CODE)
        if COVER == 1:
            values = tl.where(there[None, :], made, values)
        else:
            values = made
    return values


@triton.jit
def _squares(values, column, covered, COVER: tl.constexpr):
    """Sum of the squares of each row's numbers [T, n] in the columns that a norm covers."""
    squares = values * values
    if COVER == 0:
        squares *= 0.0
    elif COVER == 1:
        squares = tl.where((column < covered)[None, :], squares, 0.0)
    return tl.sum(squares, axis=1)


@triton.jit
def sets_scaled(
    sets, columns, there, gain, eps, COVERS: tl.constexpr, GAIN: tl.constexpr, ROUNDS: tl.constexpr, CODE: tl.constexpr
):
    """All three sets of rows under one norm; numbers that are not there are zeros.

    `COVERS` is `row_constants.covers` of the norm: how many columns its mean is over, and how it covers those that stay
    and those that turn. `GAIN`, `ROUNDS`: whether it has a weight, and rounds before that.
    """
    COVERED: tl.constexpr = COVERS[0]
    STILL: tl.constexpr = COVERS[1]
    PAIRS: tl.constexpr = COVERS[2]
    squares = _squares(sets[0], columns[0], COVERED, STILL)
    squares += _squares(sets[1], columns[1], COVERED, PAIRS)
    squares += _squares(sets[2], columns[2], COVERED, PAIRS)
    root = tl.rsqrt(squares / COVERED + eps)
    still = scaled(sets[0], root, gain, columns[0], there[0], COVERED, STILL, GAIN, ROUNDS, CODE)
    left = scaled(sets[1], root, gain, columns[1], there[1], COVERED, PAIRS, GAIN, ROUNDS, CODE)
    right = scaled(sets[2], root, gain, columns[2], there[2], COVERED, PAIRS, GAIN, ROUNDS, CODE)
    return still, left, right


@triton.jit
def turned(left, right, cosines, sines, row, live, pair, there, pairs, CODE: tl.constexpr):
    """Pairs [T, n] turned by cosines and sines, float32 [rows, pairs], of the rows that they are."""
    at = row[:, None] * pairs + pair[None, :]
    mask = live[:, None] & there[None, :]
    cosine, sine = tl.load(cosines + at, mask=mask, other=1.0), tl.load(sines + at, mask=mask, other=0.0)
    return rounded(left * cosine - right * sine, CODE), rounded(right * cosine + left * sine, CODE)


@triton.jit
def scale_of(largest, LIMIT: tl.constexpr, SCALES: tl.constexpr):
    """The scale by which the largest number of a group is divided, and its byte where it is a power of two."""
    exact = tl.div_rn(largest, LIMIT)
    bits = exact.to(tl.uint32, bitcast=True)
    if SCALES == 1:
        return tl.where(exact > 0, exact, 1.0), bits
    # The next power of two: one more where any bit of the mantissa is set.
    byte = (bits >> 23) + tl.where((bits & 0x7FFFFF) != 0, 1, 0).to(tl.uint32)
    # Below the smallest normal number the exponent stands in the mantissa's highest bit.
    byte = tl.where(bits < 0x800000, tl.where(bits > 0x400000, 1, 0).to(tl.uint32), byte)
    byte = tl.where(exact > 0, tl.minimum(byte, 254), 127)
    small = tl.where(byte == 0, 0x400000, byte << 23).to(tl.uint32)
    return small.to(tl.float32, bitcast=True), byte


@triton.jit
def store_rows(
    place,
    live,
    by_value,
    still,
    still_column,
    still_there,
    left,
    left_column,
    right,
    right_column,
    pair_there,
    FORM: tl.constexpr,
    UNIT: tl.constexpr,
):
    """Write rows [T] of three sets to `place` [T], pointers to the first byte of each.

    `FORM` is `row_constants.form_constants` of their format. Where it has scales (1: float32, 2: powers of two), the
    first part's numbers share one in groups.
    """
    FIRST: tl.constexpr = FORM[0]
    SCALES: tl.constexpr = FORM[5]
    GROUP: tl.constexpr = FORM[6]
    LIMIT: tl.constexpr = FORM[7]
    SCALES_AT: tl.constexpr = FORM[8]
    PAD_AT: tl.constexpr = FORM[9]
    PAD: tl.constexpr = FORM[10]
    GROUPS: tl.constexpr = FIRST // GROUP
    if SCALES != 0:
        for group in tl.static_range(GROUPS):
            still_own = still_there & (still_column // GROUP == group)
            left_own = pair_there & (left_column // GROUP == group)
            right_own = pair_there & (right_column // GROUP == group)
            largest = tl.max(tl.where(still_own[None, :], tl.abs(still), 0.0), axis=1)
            largest = tl.maximum(largest, tl.max(tl.where(left_own[None, :], tl.abs(left), 0.0), axis=1))
            largest = tl.maximum(largest, tl.max(tl.where(right_own[None, :], tl.abs(right), 0.0), axis=1))
            scale, byte = scale_of(largest, LIMIT, SCALES)
            if SCALES == 1:
                store_value(place + SCALES_AT + 4 * group, scale, live, 0, UNIT)
            else:
                tl.store(place + SCALES_AT + group, byte.to(tl.uint8), mask=live)
            still = tl.where(still_own[None, :], tl.div_rn(still, scale[:, None]), still)
            left = tl.where(left_own[None, :], tl.div_rn(left, scale[:, None]), left)
            right = tl.where(right_own[None, :], tl.div_rn(right, scale[:, None]), right)
    for blank in tl.static_range(PAD):
        tl.store(place + PAD_AT + blank, tl.zeros(live.shape, tl.uint8), mask=live)
    _store_set(place, live, by_value, still, still_column, still_there, FORM, UNIT)
    _store_set(place, live, by_value, left, left_column, pair_there, FORM, UNIT)
    _store_set(place, live, by_value, right, right_column, pair_there, FORM, UNIT)


@triton.jit
def _store_set(
    place,
    live,
    by_value,
    values,
    column,
    there,
    FORM: tl.constexpr,
    UNIT: tl.constexpr,
):
    """Write one set of numbers, each in the format of its column."""
    FIRST: tl.constexpr = FORM[0]
    FIRST_CODE: tl.constexpr = FORM[1]
    FIRST_BYTES: tl.constexpr = FORM[2]
    REST_CODE: tl.constexpr = FORM[3]
    REST_BYTES: tl.constexpr = FORM[4]
    mask = live[:, None] & there[None, :]
    own = mask & (column < FIRST)[None, :]
    store_value(place[:, None] + column[None, :].to(tl.int64) * by_value, values, own, FIRST_CODE, UNIT)
    if REST_BYTES > 0:
        behind = tl.where(column < FIRST, 0, column - FIRST)
        at = FIRST * FIRST_BYTES + behind[None, :].to(tl.int64) * REST_BYTES
        store_value(place[:, None] + at, values, mask & (column >= FIRST)[None, :], REST_CODE, UNIT)
