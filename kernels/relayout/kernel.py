"""Rows out of blocks of one shape into blocks of another; what is left of a block is zeroed in the same pass."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_words import load_words, store_run, store_words, total_of

__all__ = ["relayout_kernel"]


@triton.jit(do_not_specialize=["count", "source_first", "place", "heads"])
def relayout_kernel(
    total,  # int64 [1], added to
    source,  # uint8: first byte of block 0
    held,  # int64 [blocks of the segment there]
    target,  # uint8: first byte of block 0, written
    table,  # int64 [blocks of the copy]
    source_blocks,  # blocks of each pool
    target_blocks,
    count,  # rows of the segment (T)
    source_first,  # row of the first source block at which they begin
    place,  # head of the whole segment at which these heads begin
    heads,  # heads of the whole segment
    from_block,  # source: bytes from a block, row, head and value to the next
    from_row,
    from_head,
    from_value,
    to_block,  # target: the same
    to_row,
    to_head,
    to_value,
    ROWS_IN: tl.constexpr,
    ROWS: tl.constexpr,
    HEADS: tl.constexpr,
    CELL: tl.constexpr,
    ITEM_IN: tl.constexpr,
    ITEM_OUT: tl.constexpr,
    UNIT_IN: tl.constexpr,
    UNIT_OUT: tl.constexpr,
    DENSE_OUT: tl.constexpr,
    RUN: tl.constexpr,  # bytes of rows between two gaps of a target block
    GAP: tl.constexpr,  # bytes of a gap
    USED: tl.constexpr,  # bytes up to the end of a block's last row
    SIZE: tl.constexpr,  # bytes of a block
    BLOCK: tl.constexpr,
):
    """Program (b, i) writes part i of block b of the copy: words by row, head and word, then what is no row's."""
    WORDS: tl.constexpr = (CELL + 7) // 8
    ALL: tl.constexpr = ROWS * HEADS * WORDS
    PARTS: tl.constexpr = (ALL + BLOCK - 1) // BLOCK
    GAPS: tl.constexpr = (USED - 1) // (RUN + GAP) * GAP
    lane = tl.arange(0, BLOCK)
    block = tl.load(table + tl.program_id(0))
    there = (block >= 0) & (block < target_blocks)
    write = target + block * to_block
    if tl.program_id(1) < PARTS:
        index = tl.program_id(1) * BLOCK + lane
        word, head, row = index % WORDS, index // WORDS % HEADS, index // (WORDS * HEADS)
        token = tl.program_id(0).to(tl.int64) * ROWS + row
        inside = (index < ALL) & there
        mask = inside & (token < count)
        place_in = token + source_first
        found = tl.load(held + place_in // ROWS_IN, mask=mask, other=-1)
        mask &= (found >= 0) & (found < source_blocks)
        cells = source + found * from_block + place_in % ROWS_IN * from_row + head.to(tl.int64) * from_head
        value = load_words(cells, word, mask, from_value, CELL, ITEM_IN, UNIT_IN)
        if DENSE_OUT:
            store_run(write, index, value, inside, inside, True)
        else:
            cells = write + row.to(tl.int64) * to_row + head.to(tl.int64) * to_head
            store_words(cells, word, value, inside, to_value, CELL, ITEM_OUT, UNIT_OUT)
        position = (token * heads + place + head) * WORDS + word
        tl.atomic_add(total, total_of(position, value, mask), sem="relaxed")
    else:
        rest = (tl.program_id(1) - PARTS) * BLOCK + lane
        byte = USED + rest - GAPS
        if GAPS > 0:
            byte = tl.where(rest < GAPS, rest // GAP * (RUN + GAP) + RUN + rest % GAP, byte)
        nothing = tl.zeros([BLOCK], tl.uint8)
        tl.store(write + byte, nothing, mask=(rest < GAPS + SIZE - USED) & there)
