"""Index keys from kept inputs in one pass; keys turned by the Walsh-Hadamard matrix; scores and a stable choice."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_rows import load_numbers, matmul_step, pair_columns, still_columns, store_rows, turned

__all__ = ["choice_kernel", "keys_kernel", "scores_kernel", "turn_kernel"]


@triton.jit(do_not_specialize=["source_blocks", "source_first", "target_blocks", "target_first", "count"])
def keys_kernel(
    source,  # uint8: first byte of block 0 of the kept inputs
    source_table,  # int64
    source_blocks,  # blocks of the pool
    source_first,  # row of the table's first block at which the first token's input lies
    from_block,  # from a block, row and number to the next: in numbers where ALIGNED, else in bytes
    from_row,
    from_value,
    target,  # uint8: first byte of block 0 of the copy
    target_table,
    target_blocks,
    target_first,  # row of the table's first block at which the keys begin
    to_block,  # bytes from a block, row and number to the next
    to_row,
    to_value,
    count,  # tokens (T)
    weight,  # [SIZE, X]
    bias,  # [SIZE]
    gain,  # [SIZE], of the layer norm
    shift,  # [SIZE]
    eps,
    cosines,  # float32 [T, TURNING / 2]
    sines,
    inputs,  # X
    ROWS: tl.constexpr,
    SOURCE_ROWS: tl.constexpr,
    ALIGNED: tl.constexpr,
    CODE: tl.constexpr,
    NATIVE: tl.constexpr,
    BIAS: tl.constexpr,
    SIZE: tl.constexpr,
    TURNING: tl.constexpr,
    TRAILING: tl.constexpr,
    READ_APART: tl.constexpr,
    WRITE_APART: tl.constexpr,
    STILL: tl.constexpr,
    PAIRS: tl.constexpr,
    FORM: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_X: tl.constexpr,
):
    """Program t makes the keys of the tokens [t * BLOCK_T, (t + 1) * BLOCK_T): all in float32, rounded on writing."""
    token = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    live = token < count
    row = source_first + token
    block = tl.load(source_table + row // SOURCE_ROWS, mask=live, other=0)
    held = live & (block >= 0) & (block < source_blocks)
    at = block * from_block + row % SOURCE_ROWS * from_row
    still_column, still_there = still_columns(SIZE, TURNING, TRAILING, STILL)
    left_column, right_column, pair_there = pair_columns(SIZE, TURNING, TRAILING, READ_APART, PAIRS)
    still = tl.zeros([BLOCK_T, STILL], tl.float32)
    left = tl.zeros([BLOCK_T, PAIRS], tl.float32)
    right = tl.zeros([BLOCK_T, PAIRS], tl.float32)
    for start in range(0, inputs, BLOCK_X):
        n = start + tl.arange(0, BLOCK_X)
        mask = held[:, None] & (n < inputs)[None, :]
        hidden = load_numbers(source, at[:, None] + n.to(tl.int64)[None, :] * from_value, mask, CODE, ALIGNED)
        if STILL > 1:
            still = matmul_step(still, hidden, weight, still_column, still_there, inputs, n, NATIVE)
        if PAIRS > 1:
            left = matmul_step(left, hidden, weight, left_column, pair_there, inputs, n, NATIVE)
            right = matmul_step(right, hidden, weight, right_column, pair_there, inputs, n, NATIVE)
    if BIAS:
        still += tl.load(bias + still_column, mask=still_there, other=0.0).to(tl.float32)[None, :]
        left += tl.load(bias + left_column, mask=pair_there, other=0.0).to(tl.float32)[None, :]
        right += tl.load(bias + right_column, mask=pair_there, other=0.0).to(tl.float32)[None, :]
    # Columns that are not there are zero: their weights read as zero.
    mean = (tl.sum(still, axis=1) + tl.sum(left, axis=1) + tl.sum(right, axis=1)) / SIZE
    still = tl.where(still_there[None, :], still - mean[:, None], 0.0)
    left = tl.where(pair_there[None, :], left - mean[:, None], 0.0)
    right = tl.where(pair_there[None, :], right - mean[:, None], 0.0)
    spread = tl.sum(still * still, axis=1) + tl.sum(left * left, axis=1) + tl.sum(right * right, axis=1)
    root = tl.rsqrt(spread / SIZE + eps)
    still = _normed(still, root, gain, shift, still_column, still_there)
    if PAIRS > 1:
        left = _normed(left, root, gain, shift, left_column, pair_there)
        right = _normed(right, root, gain, shift, right_column, pair_there)
        pair = tl.arange(0, PAIRS)
        left, right = turned(left, right, cosines, sines, token, live, pair, pair_there, TURNING // 2, 0)
        left_column, right_column, pair_there = pair_columns(SIZE, TURNING, TRAILING, WRITE_APART, PAIRS)
    own_row = target_first + token
    place = tl.load(target_table + own_row // ROWS, mask=live, other=0)
    live &= (place >= 0) & (place < target_blocks)
    cells = target + place * to_block + own_row % ROWS * to_row
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


@triton.jit
def _normed(values, root, gain, shift, column, there):
    """Numbers that lie around zero, times 1 / spread [T], the gain and plus the shift."""
    by = tl.load(gain + column, mask=there, other=0.0).to(tl.float32)
    plus = tl.load(shift + column, mask=there, other=0.0).to(tl.float32)
    return values * root[:, None] * by[None, :] + plus[None, :]


@triton.jit
def _summed(values, APART: tl.constexpr, BLOCK_T: tl.constexpr, WIDTH: tl.constexpr):
    """Sums and differences of the numbers that lie `APART` in each run of twice as many."""
    pairs = tl.permute(tl.reshape(values, [BLOCK_T, WIDTH // (2 * APART), 2, APART]), [0, 1, 3, 2])
    left, right = tl.split(pairs)
    pairs = tl.permute(tl.join(left + right, left - right), [0, 1, 3, 2])
    return tl.reshape(pairs, [BLOCK_T, WIDTH])


@triton.jit(do_not_specialize=["target_blocks", "target_first", "count"])
def turn_kernel(
    keys,  # float32 [T, SIZE]
    target,  # uint8: first byte of block 0 of the copy
    target_table,  # int64
    target_blocks,
    target_first,
    to_block,
    to_row,
    to_value,
    count,  # keys (T)
    root,  # 1 / sqrt(SIZE)
    ROWS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    TURNED: tl.constexpr,
    STEPS: tl.constexpr,
    FORM: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK_T: tl.constexpr,
):
    """Program t writes the keys [t * BLOCK_T, (t + 1) * BLOCK_T), by the Walsh-Hadamard matrix where TURNED."""
    token = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    live = token < count
    column = tl.arange(0, WIDTH)
    mask = live[:, None] & (column < SIZE)[None, :]
    turned = tl.load(keys + token[:, None] * SIZE + column[None, :], mask=mask, other=0.0)
    if TURNED:
        # Sums and differences in the order of the reference: the numbers are its own to the bit.
        for step in tl.static_range(STEPS):
            turned = _summed(turned, 1 << step, BLOCK_T, WIDTH)
        turned *= root
    row = target_first + token
    place = tl.load(target_table + row // ROWS, mask=live, other=0)
    live &= (place >= 0) & (place < target_blocks)
    none, nowhere = tl.zeros([BLOCK_T, 1], tl.float32), tl.zeros([1], tl.int32)
    store_rows(
        target + place * to_block + row % ROWS * to_row,
        live,
        to_value,
        turned,
        column,
        column < SIZE,
        none,
        nowhere,
        none,
        nowhere,
        nowhere > 0,
        FORM,
        UNIT,
    )


@triton.jit(do_not_specialize=["queries", "keys"])
def scores_kernel(
    query,  # float32 [B, Q, H, SIZE]
    key,  # float32 [B, N, SIZE]
    head_weight,  # float32 [B, Q, H]
    score,  # float32 [B, Q, N]
    queries,  # Q
    keys,  # N
    heads,  # H
    root,  # 1 / sqrt(H * SIZE)
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (b, q, n) scores BLOCK_N keys for BLOCK_Q queries, head by head."""
    batch = tl.program_id(0).to(tl.int64)
    own = tl.program_id(1).to(tl.int64) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    n = tl.program_id(2).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    column = tl.arange(0, WIDTH)
    asked, there, wide = own < queries, n < keys, column < SIZE
    stored = tl.load(
        key + (batch * keys + n)[None, :] * SIZE + column[:, None], mask=wide[:, None] & there[None, :], other=0.0
    )
    total = tl.zeros([BLOCK_Q, BLOCK_N], tl.float32)
    for head in range(heads):
        at = (batch * queries + own) * heads + head
        rows = tl.load(query + at[:, None] * SIZE + column[None, :], mask=asked[:, None] & wide[None, :], other=0.0)
        product = tl.dot(rows, stored, input_precision="ieee")
        by = tl.load(head_weight + at, mask=asked, other=0.0) * root
        total += tl.maximum(product, 0.0) * by[:, None]
    tl.store(score + (batch * queries + own)[:, None] * keys + n[None, :], total, mask=asked[:, None] & there[None, :])


@triton.jit(do_not_specialize=["keys", "wanted"])
def choice_kernel(
    score,  # float32 [Q, N]
    visible,  # int64 [Q]
    chosen,  # int64 [Q, wanted]
    keys,  # N, below 2**32
    wanted,  # keys to choose, no more than KEPT
    KEPT: tl.constexpr,
):
    """Program q chooses for query q: the best KEPT so far, sorted with the next KEPT keys, until all were seen.

    A key is one whole number: its score above, in an order of unsigned words, and below it its place, inverted, so that
    of equal scores the earlier key is the larger number. 0 is no key.
    """
    query = tl.program_id(0).to(tl.int64)
    shown = tl.load(visible + query)
    best = tl.zeros([KEPT], tl.uint64)
    for start in range(0, keys, KEPT):
        place = start + tl.arange(0, KEPT)
        value = tl.load(score + query * keys + place, mask=place < keys, other=0.0)
        # Zero has two signs and one rank; what is no number ranks first, as in torch.
        bits = tl.where(value == 0.0, 0.0, value).to(tl.uint32, bitcast=True)
        ranked = tl.where(bits >> 31 != 0, bits ^ 0xFFFFFFFF, bits | 0x80000000)
        ranked = tl.where(value != value, 0xFFFFFFFF, ranked).to(tl.uint64)
        word = (ranked << 32) | (place.to(tl.uint32) ^ 0xFFFFFFFF).to(tl.uint64)
        word = tl.where((place < keys) & (place < shown), word, 0)
        both = tl.sort(tl.reshape(tl.join(best, word), [2 * KEPT]), descending=True)
        upper = tl.arange(0, 2)[:, None] == 0
        best = tl.sum(tl.where(upper, tl.reshape(both, [2, KEPT]), 0), axis=0)
    rank = tl.arange(0, KEPT)
    place = ((best & 0xFFFFFFFF).to(tl.uint32) ^ 0xFFFFFFFF).to(tl.int64)
    tl.store(chosen + query * wanted + rank, tl.where(best == 0, -1, place), mask=rank < wanted)
