"""Rows out of staging into blocks; each word is read once, written once, and summed between the two."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_words import load_run, load_words, store_run, store_words, total_of

__all__ = ["promote_kernel"]


@triton.jit(do_not_specialize=["count", "first", "place", "heads"])
def promote_kernel(
    total,  # int64 [1], added to
    staging,  # uint8: first byte of block 0
    staged,  # int64 [blocks of the segment]
    target,  # uint8: first byte of block 0, written
    table,  # int64 [blocks of the segment]
    staging_blocks,  # blocks of each pool
    target_blocks,
    count,  # rows of the segment (T)
    first,  # row of the first block at which they begin, in both
    place,  # head of the whole segment at which these heads begin
    heads,  # heads of the whole segment
    from_block,  # staging: bytes from a block, row, head and value to the next
    from_row,
    from_head,
    from_value,
    to_block,  # target: the same
    to_row,
    to_head,
    to_value,
    ROWS: tl.constexpr,
    HEADS: tl.constexpr,
    CELL: tl.constexpr,
    ITEM: tl.constexpr,
    UNIT_IN: tl.constexpr,
    UNIT_OUT: tl.constexpr,
    DENSE_IN: tl.constexpr,
    DENSE_OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Program (b, i) moves the words [i * BLOCK, (i + 1) * BLOCK) of block b, by row, head and word."""
    WORDS: tl.constexpr = (CELL + 7) // 8
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word, head, row = index % WORDS, index // WORDS % HEADS, index // (WORDS * HEADS)
    begin_row = tl.program_id(0).to(tl.int64) * ROWS - first
    token = begin_row + row
    source = tl.load(staged + tl.program_id(0))
    block = tl.load(table + tl.program_id(0))
    there = (source >= 0) & (source < staging_blocks) & (block >= 0) & (block < target_blocks)
    inside = (index < ROWS * HEADS * WORDS) & there
    mask = inside & (token >= 0) & (token < count)
    full = (begin_row >= 0) & (begin_row + ROWS <= count)
    read, write = staging + source * from_block, target + block * to_block
    if DENSE_IN:
        value = load_run(read, index, inside, mask, full)
    else:
        cells = read + row.to(tl.int64) * from_row + head.to(tl.int64) * from_head
        value = load_words(cells, word, mask, from_value, CELL, ITEM, UNIT_IN)
    if DENSE_OUT:
        store_run(write, index, value, inside, mask, full)
    else:
        cells = write + row.to(tl.int64) * to_row + head.to(tl.int64) * to_head
        store_words(cells, word, value, mask, to_value, CELL, ITEM, UNIT_OUT)
    position = (token * heads + place + head) * WORDS + word
    tl.atomic_add(total, total_of(position, value, mask), sem="relaxed")
