"""The sum of a fingerprint over blocks of any layout; every word is read once."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_words import load_run, load_words, total_of

__all__ = ["checksum_kernel"]


@triton.jit(do_not_specialize=["count", "first", "place", "heads"])
def checksum_kernel(
    total,  # int64 [1], added to
    start,  # uint8: first byte of block 0
    table,  # int64 [blocks of the segment]
    blocks,  # blocks of the pool
    count,  # rows of the segment (T)
    first,  # row of the first block at which they begin
    place,  # head of the whole segment at which these heads begin
    heads,  # heads of the whole segment
    by_block,  # bytes from a block, row, head and value to the next
    by_row,
    by_head,
    by_value,
    ROWS: tl.constexpr,
    HEADS: tl.constexpr,
    CELL: tl.constexpr,
    ITEM: tl.constexpr,
    UNIT: tl.constexpr,
    DENSE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Program (b, i) sums the words [i * BLOCK, (i + 1) * BLOCK) of block b, by row, head and word."""
    WORDS: tl.constexpr = (CELL + 7) // 8
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word, head, row = index % WORDS, index // WORDS % HEADS, index // (WORDS * HEADS)
    begin_row = tl.program_id(0).to(tl.int64) * ROWS - first
    token = begin_row + row
    block = tl.load(table + tl.program_id(0))
    there = (block >= 0) & (block < blocks)
    inside = (index < ROWS * HEADS * WORDS) & there
    mask = inside & (token >= 0) & (token < count)
    begin = start + block * by_block
    if DENSE:
        full = (begin_row >= 0) & (begin_row + ROWS <= count)
        value = load_run(begin, index, inside, mask, full)
    else:
        cells = begin + row.to(tl.int64) * by_row + head.to(tl.int64) * by_head
        value = load_words(cells, word, mask, by_value, CELL, ITEM, UNIT)
    position = (token * heads + place + head) * WORDS + word
    tl.atomic_add(total, total_of(position, value, mask), sem="relaxed")
