"""Entries and states of compressors from kept rows: projection, gated pooling, norm, turning, paged write."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_numbers import store_value
from hitproof.kernels.triton_rows import (
    load_numbers,
    matmul_step,
    pair_columns,
    sets_scaled,
    still_columns,
    store_rows,
    turned,
)

__all__ = ["entries_kernel", "project_kernel", "state_kernel"]


@triton.jit
def _located(table, blocks, row, wanted, by_block, by_row, ROWS: tl.constexpr):
    """Where rows begin, and which of those that are wanted lie in a block that is there."""
    row = tl.where(wanted, row, 0)
    block = tl.load(table + row // ROWS, mask=wanted, other=0)
    wanted &= (block >= 0) & (block < blocks)
    return block * by_block + row % ROWS * by_row, wanted


@triton.jit
def _gated(kept, stored, bias, place, column, there, width, READ: tl.constexpr):
    """Values and scores [S, n] of rows that are kept, or stored in a state; scores of others are minus infinity.

    `kept` and `stored`: first byte of block 0, where each row begins, and which rows are there. `READ`: the format of
    kept rows, whether they are aligned, and the step to the next number; whether there is a state, and the same of it.
    """
    CODE: tl.constexpr = READ[0]
    ALIGNED: tl.constexpr = READ[1]
    NEXT: tl.constexpr = READ[2]
    STATE: tl.constexpr = READ[3]
    STATE_ALIGNED: tl.constexpr = READ[4]
    STATE_NEXT: tl.constexpr = READ[5]
    mask = kept[2][:, None] & there[None, :]
    at = kept[1][:, None] + column * NEXT
    value = load_numbers(kept[0], at, mask, CODE, ALIGNED)
    gate = load_numbers(kept[0], at + width * NEXT, mask, CODE, ALIGNED)
    score = gate + tl.load(bias + place[:, None] * width + column, mask=mask, other=0.0)
    score = tl.where(mask, score, -float("inf"))
    if STATE:
        mask = stored[2][:, None] & there[None, :]
        at = stored[1][:, None] + column * STATE_NEXT
        value = tl.where(mask, load_numbers(stored[0], at, mask, 0, STATE_ALIGNED), value)
        score = tl.where(mask, load_numbers(stored[0], at + width * STATE_NEXT, mask, 0, STATE_ALIGNED), score)
    return value, score


@triton.jit
def _pooled(value, score, peak, total, mixed):
    """One step of a softmax over slots, number by number: the highest score so far, sum of weights, weighted sum."""
    top = tl.maximum(peak, tl.max(score, axis=0))
    base = tl.where(top == -float("inf"), 0.0, top)
    kept, share = tl.exp(peak - base), tl.exp(score - base[None, :])
    return top, total * kept + tl.sum(share, axis=0), mixed * kept + tl.sum(share * value, axis=0)


@triton.jit(
    do_not_specialize=["source_blocks", "source_first", "source_token", "state_blocks", "state_token", "entry", "row"]
)
def entries_kernel(
    source,  # uint8: first byte of block 0 of kept rows, values and then gates of a token
    source_table,  # int64
    source_blocks,  # blocks of the pool
    source_first,  # row of the table's first block that is kept first
    source_token,  # its token
    from_block,  # from a block and row to the next: in numbers where they are aligned, else in bytes
    from_row,
    state,  # the same of a stored state, values and then scores, float32; read for the tokens before `source_token`
    state_table,
    state_blocks,
    state_token,  # token of its row 0
    state_block,
    state_row,
    target,  # uint8: first byte of block 0 of the copy
    target_table,
    target_blocks,
    to_block,  # bytes from a block, row and number to the next
    to_row,
    to_value,
    row,  # row of the copy at which the entries begin
    entry,  # number of the first
    bias,  # float32 [RATIO, width]
    gain,  # float32 [SIZE]
    eps,
    cosines,  # float32 [entries, TURNING / 2]
    sines,
    ROWS: tl.constexpr,
    SOURCE_ROWS: tl.constexpr,
    STATE_ROWS: tl.constexpr,
    READ: tl.constexpr,
    RATIO: tl.constexpr,
    OVERLAP: tl.constexpr,
    SIZE: tl.constexpr,
    COVERS: tl.constexpr,
    GAIN: tl.constexpr,
    TURNING: tl.constexpr,
    TRAILING: tl.constexpr,
    READ_APART: tl.constexpr,
    WRITE_APART: tl.constexpr,
    STILL: tl.constexpr,
    PAIRS: tl.constexpr,
    FORM: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """Program i makes entry `entry` + i of all the rows that it reads: one window, or two with overlap."""
    STATE: tl.constexpr = READ[3]
    WIDTH: tl.constexpr = SIZE * (1 + OVERLAP)
    SLOTS: tl.constexpr = RATIO * (1 + OVERLAP)
    number = tl.program_id(0).to(tl.int64)
    first = (entry + number - OVERLAP) * RATIO
    still_column, still_there = still_columns(SIZE, TURNING, TRAILING, STILL)
    left_column, right_column, pair_there = pair_columns(SIZE, TURNING, TRAILING, READ_APART, PAIRS)
    still_peak, still_total = tl.full([STILL], -float("inf"), tl.float32), tl.zeros([STILL], tl.float32)
    left_peak, left_total = tl.full([PAIRS], -float("inf"), tl.float32), tl.zeros([PAIRS], tl.float32)
    right_peak, right_total = tl.full([PAIRS], -float("inf"), tl.float32), tl.zeros([PAIRS], tl.float32)
    still = tl.zeros([STILL], tl.float32)
    left = tl.zeros([PAIRS], tl.float32)
    right = tl.zeros([PAIRS], tl.float32)
    for start in range(0, SLOTS, BLOCK_S):
        slot = start + tl.arange(0, BLOCK_S)
        token = first + slot
        there = (slot < SLOTS) & (token >= 0)
        held = there & (token >= source_token)
        begin = source_first + token - source_token
        at, held = _located(source_table, source_blocks, begin, held, from_block, from_row, SOURCE_ROWS)
        kept = (source, at, held)
        stored = kept
        if STATE:
            held = there & (token >= state_token) & (token < source_token)
            begin = token - state_token
            at, held = _located(state_table, state_blocks, begin, held, state_block, state_row, STATE_ROWS)
            stored = (state, at, held)
        # With overlap the window before lends its first series, the own one its second.
        shift = tl.where(slot >= RATIO, SIZE, 0).to(tl.int64)
        place = slot % RATIO
        column = still_column.to(tl.int64)[None, :] + shift[:, None]
        value, score = _gated(kept, stored, bias, place, column, still_there, WIDTH, READ)
        still_peak, still_total, still = _pooled(value, score, still_peak, still_total, still)
        if PAIRS > 1:
            column = left_column.to(tl.int64)[None, :] + shift[:, None]
            value, score = _gated(kept, stored, bias, place, column, pair_there, WIDTH, READ)
            left_peak, left_total, left = _pooled(value, score, left_peak, left_total, left)
            column = right_column.to(tl.int64)[None, :] + shift[:, None]
            value, score = _gated(kept, stored, bias, place, column, pair_there, WIDTH, READ)
            right_peak, right_total, right = _pooled(value, score, right_peak, right_total, right)
    # Lanes beyond the row have no weight at all.
    still = (still / tl.where(still_there, still_total, 1.0))[None, :]
    left = (left / tl.where(pair_there, left_total, 1.0))[None, :]
    right = (right / tl.where(pair_there, right_total, 1.0))[None, :]
    columns, there = (still_column, left_column, right_column), (still_there, pair_there, pair_there)
    still, left, right = sets_scaled((still, left, right), columns, there, gain, eps, COVERS, GAIN, False, 0)
    own = number + tl.zeros([1], tl.int64)
    live = own >= 0
    if PAIRS > 1:
        pair = tl.arange(0, PAIRS)
        left, right = turned(left, right, cosines, sines, own, live, pair, pair_there, TURNING // 2, 0)
        left_column, right_column, pair_there = pair_columns(SIZE, TURNING, TRAILING, WRITE_APART, PAIRS)
    at, live = _located(target_table, target_blocks, row + own, live, to_block, to_row, ROWS)
    store_rows(
        target + at,
        live,
        to_value,
        still,
        still_column,
        still_there,
        left,
        left_column,
        right,
        right_column,
        pair_there,
        FORM,
        UNIT,
    )


@triton.jit(do_not_specialize=["source_blocks", "source_first", "source_token", "state_blocks", "state_token", "row"])
def state_kernel(
    source,  # as in `entries_kernel`
    source_table,
    source_blocks,
    source_first,
    source_token,
    from_block,
    from_row,
    state,
    state_table,
    state_blocks,
    state_token,
    state_block,
    state_row,
    target,
    target_table,
    target_blocks,
    to_block,
    to_row,
    to_value,
    row,
    token,  # of the oldest row that the new state holds
    live,  # rows that it holds; the others become blank
    count,  # rows of a stored state
    bias,
    width,
    ROWS: tl.constexpr,
    SOURCE_ROWS: tl.constexpr,
    STATE_ROWS: tl.constexpr,
    READ: tl.constexpr,
    RATIO: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Program (i, d) writes `BLOCK_R` rows of a state: values and scores of the columns [d * BLOCK_D, ...)."""
    STATE: tl.constexpr = READ[3]
    own = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    column = tl.program_id(1).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    there = column < width
    token += own
    held = (own < live) & (token >= source_token)
    begin = source_first + token - source_token
    at, held = _located(source_table, source_blocks, begin, held, from_block, from_row, SOURCE_ROWS)
    kept = (source, at, held)
    stored = kept
    if STATE:
        held = (own < live) & (token >= state_token) & (token < source_token)
        begin = token - state_token
        at, held = _located(state_table, state_blocks, begin, held, state_block, state_row, STATE_ROWS)
        stored = (state, at, held)
    value, score = _gated(kept, stored, bias, token % RATIO, column[None, :], there, width, READ)
    at, written = _located(target_table, target_blocks, row + own, own < count, to_block, to_row, ROWS)
    mask = written[:, None] & there[None, :]
    place = target + at[:, None] + column[None, :] * to_value
    store_value(place, value, mask, 0, UNIT)
    store_value(place + width * to_value, score, mask, 0, UNIT)


@triton.jit(do_not_specialize=["source_blocks", "source_first", "count"])
def project_kernel(
    source,  # uint8: first byte of block 0 of kept inputs
    source_table,
    source_blocks,
    source_first,
    from_block,  # in numbers where ALIGNED, else in bytes
    from_row,
    made,  # float32 [T, 2 * width]: values and gates
    count,  # tokens (T)
    weight,  # [width, inputs]
    bias,  # [width]
    inputs,
    width,
    begin,  # column of `made` at which this projection begins
    SOURCE_ROWS: tl.constexpr,
    CODE: tl.constexpr,
    ALIGNED: tl.constexpr,
    NEXT: tl.constexpr,
    NATIVE: tl.constexpr,
    BIAS: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (t, d) projects the tokens of a tile onto the columns [d * BLOCK_D, (d + 1) * BLOCK_D), in float32."""
    token = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    column = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    there = column < width
    at, held = _located(
        source_table, source_blocks, source_first + token, token < count, from_block, from_row, SOURCE_ROWS
    )
    sums = tl.zeros([BLOCK_T, BLOCK_D], tl.float32)
    for start in range(0, inputs, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        place = at[:, None] + n.to(tl.int64)[None, :] * NEXT
        rows = load_numbers(source, place, held[:, None] & (n < inputs)[None, :], CODE, ALIGNED)
        sums = matmul_step(sums, rows, weight, column, there, inputs, n, NATIVE)
    if BIAS:
        sums += tl.load(bias + column, mask=there, other=0.0).to(tl.float32)[None, :]
    at = token[:, None] * (2 * width) + begin + column[None, :]
    tl.store(made + at, sums, mask=(token < count)[:, None] & there[None, :])
