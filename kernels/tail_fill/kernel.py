"""Cached rows of missing tokens from their layer's inputs: norm, projection, norm of the head, turning, paged write."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_rows import (
    load_numbers,
    matmul_step,
    pair_columns,
    rounded,
    scaled,
    sets_scaled,
    still_columns,
    store_rows,
    turned,
)

__all__ = ["fill_kernel"]


@triton.jit(do_not_specialize=["source_blocks", "source_first", "target_blocks", "target_first", "count"])
def fill_kernel(
    source,  # uint8: first byte of block 0 of the kept inputs
    source_table,  # int64
    source_blocks,  # blocks of the pool
    source_first,  # row of the table's first block at which the first missing token's input lies
    from_block,  # from a block and row to the next: in numbers where ALIGNED, else in bytes
    from_row,
    target,  # uint8: first byte of block 0 of the copy
    target_table,
    target_blocks,
    target_first,  # row of the copy that is the first missing token's
    to_block,  # bytes from a block, row, head and number to the next
    to_row,
    to_head,
    to_value,
    count,  # missing tokens (T)
    input_gain,  # float32 [N]
    input_eps,
    weight,  # [HEADS * SIZE, N]
    bias,  # [HEADS * SIZE]
    head_gain,  # float32 [COVERED]
    head_eps,
    cosines,  # float32 [T, TURNING / 2]
    sines,
    inputs,  # N
    ROWS: tl.constexpr,
    SOURCE_ROWS: tl.constexpr,
    ALIGNED: tl.constexpr,
    NEXT: tl.constexpr,
    CODE: tl.constexpr,
    NATIVE: tl.constexpr,
    SIZE: tl.constexpr,
    INPUT_NORM: tl.constexpr,
    INPUT_GAIN: tl.constexpr,
    INPUT_ROUNDS: tl.constexpr,
    BIAS: tl.constexpr,
    HEAD_NORM: tl.constexpr,
    HEAD_GAIN: tl.constexpr,
    HEAD_ROUNDS: tl.constexpr,
    COVERS: tl.constexpr,
    TURNING: tl.constexpr,
    TRAILING: tl.constexpr,
    READ_APART: tl.constexpr,
    WRITE_APART: tl.constexpr,
    STILL: tl.constexpr,
    PAIRS: tl.constexpr,
    FORM: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (t, h) makes head h of the tokens [t * BLOCK_T, (t + 1) * BLOCK_T). `NEXT` is from number to number.

    Every step is rounded to the inputs' format once. `INPUT_NORM` and `HEAD_NORM`: 0 without, 1 with, and 2 for a
    head's norm behind the turning.
    """
    token = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    head = tl.program_id(1).to(tl.int64)
    live = token < count
    row = source_first + token
    block = tl.load(source_table + row // SOURCE_ROWS, mask=live, other=0)
    held = live & (block >= 0) & (block < source_blocks)
    at = block * from_block + row % SOURCE_ROWS * from_row
    root = tl.zeros([BLOCK_T], tl.float32)
    if INPUT_NORM:
        for start in range(0, inputs, BLOCK_N):
            n = start + tl.arange(0, BLOCK_N)
            mask = held[:, None] & (n < inputs)[None, :]
            found = load_numbers(source, at[:, None] + n.to(tl.int64)[None, :] * NEXT, mask, CODE, ALIGNED)
            root += tl.sum(found * found, axis=1)
        root = tl.rsqrt(root / inputs + input_eps)
    still_column, still_there = still_columns(SIZE, TURNING, TRAILING, STILL)
    left_column, right_column, pair_there = pair_columns(SIZE, TURNING, TRAILING, READ_APART, PAIRS)
    still = tl.zeros([BLOCK_T, STILL], tl.float32)
    left = tl.zeros([BLOCK_T, PAIRS], tl.float32)
    right = tl.zeros([BLOCK_T, PAIRS], tl.float32)
    line = head * SIZE
    for start in range(0, inputs, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        mask = held[:, None] & (n < inputs)[None, :]
        hidden = load_numbers(source, at[:, None] + n.to(tl.int64)[None, :] * NEXT, mask, CODE, ALIGNED)
        if INPUT_NORM:
            hidden = scaled(hidden, root, input_gain, n, n < inputs, inputs, 2, INPUT_GAIN, INPUT_ROUNDS, CODE)
        if STILL > 1:
            still = matmul_step(still, hidden, weight, line + still_column, still_there, inputs, n, NATIVE)
        if PAIRS > 1:
            left = matmul_step(left, hidden, weight, line + left_column, pair_there, inputs, n, NATIVE)
            right = matmul_step(right, hidden, weight, line + right_column, pair_there, inputs, n, NATIVE)
    if BIAS:
        still += tl.load(bias + line + still_column, mask=still_there, other=0.0).to(tl.float32)[None, :]
        left += tl.load(bias + line + left_column, mask=pair_there, other=0.0).to(tl.float32)[None, :]
        right += tl.load(bias + line + right_column, mask=pair_there, other=0.0).to(tl.float32)[None, :]
    still, left, right = rounded(still, CODE), rounded(left, CODE), rounded(right, CODE)
    there = (still_there, pair_there, pair_there)
    if HEAD_NORM == 1:
        columns = (still_column, left_column, right_column)
        still, left, right = sets_scaled(
            (still, left, right), columns, there, head_gain, head_eps, COVERS, HEAD_GAIN, HEAD_ROUNDS, CODE
        )
    if PAIRS > 1:
        pair = tl.arange(0, PAIRS)
        left, right = turned(left, right, cosines, sines, token, live, pair, pair_there, TURNING // 2, CODE)
        left_column, right_column, pair_there = pair_columns(SIZE, TURNING, TRAILING, WRITE_APART, PAIRS)
    if HEAD_NORM == 2:
        columns = (still_column, left_column, right_column)
        still, left, right = sets_scaled(
            (still, left, right), columns, there, head_gain, head_eps, COVERS, HEAD_GAIN, HEAD_ROUNDS, CODE
        )
    own_row = target_first + token
    place = tl.load(target_table + own_row // ROWS, mask=live, other=0)
    live &= (place >= 0) & (place < target_blocks)
    cells = target + place * to_block + own_row % ROWS * to_row + head * to_head
    store_rows(
        cells,
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
