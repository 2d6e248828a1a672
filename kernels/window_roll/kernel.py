"""Rows moved from slots to slots, with their fingerprint, and every other byte of the copy's blocks zeroed, at once."""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_words import load_words, store_unit, store_words, total_of

__all__ = ["roll_kernel"]


@triton.jit(do_not_specialize=["source_blocks", "target_blocks", "slots", "place", "heads"])
def roll_kernel(
    total,  # int64 [1], added to where MEASURED
    source,  # uint8: first byte of block 0
    source_table,  # int64: slot s is row s % P of block source_table[s // P]
    source_blocks,  # blocks of the pool
    from_block,  # bytes from a block, row, head and value to the next
    from_row,
    from_head,
    from_value,
    target,  # the same of the copy
    target_table,
    target_blocks,
    to_block,
    to_row,
    to_head,
    to_value,
    slot_from,  # int64 [slots]: the source's slot of each slot of the copy; -1 for zeros, -2 to leave it as it is
    turn,  # int64 [slots]: number of each slot's row in the segment, for the fingerprint
    slots,  # slots of the copy that are told of; those behind them are zeroed
    place,  # head of the whole segment at which these heads begin
    heads,  # heads of the whole segment
    SOURCE_ROWS: tl.constexpr,
    SOURCE_ITEM: tl.constexpr,
    SOURCE_UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    HEADS: tl.constexpr,
    CELL: tl.constexpr,
    ITEM: tl.constexpr,
    UNIT: tl.constexpr,
    FILLED: tl.constexpr,
    GAP: tl.constexpr,
    GAPS: tl.constexpr,
    REST: tl.constexpr,
    MEASURED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Program (b, i) writes words [i * BLOCK, (i + 1) * BLOCK) of the copy's block b, and as many units of its gaps.

    After each of `GAPS` runs of `FILLED` bytes come `GAP` bytes, and `REST` bytes behind the last row.
    """
    WORDS: tl.constexpr = (CELL + 7) // 8
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word, head, row = index % WORDS, index // WORDS % HEADS, index // (WORDS * HEADS)
    slot = tl.program_id(0).to(tl.int64) * ROWS + row
    block = tl.load(target_table + tl.program_id(0))
    inside = (block >= 0) & (block < target_blocks)
    begin = target + block * to_block
    told = inside & (row < ROWS) & (slot < slots)
    found = tl.load(slot_from + slot, mask=told, other=-1)
    moved = told & (found >= 0)
    # What is not moved reads as slot 0, masked: indices stay inside their tables.
    found_slot = tl.where(moved, found, 0)
    found_block = tl.load(source_table + found_slot // SOURCE_ROWS, mask=moved, other=0)
    moved &= (found_block >= 0) & (found_block < source_blocks)
    cells = source + found_block * from_block + found_slot % SOURCE_ROWS * from_row + head.to(tl.int64) * from_head
    value = load_words(cells, word, moved, from_value, CELL, SOURCE_ITEM, SOURCE_UNIT)
    cells = begin + row.to(tl.int64) * to_row + head.to(tl.int64) * to_head
    store_words(cells, word, value, inside & (row < ROWS) & (found != -2), to_value, CELL, ITEM, UNIT)
    if GAPS * GAP + REST > 0:
        byte = index * UNIT
        between = byte < GAPS * GAP
        if GAP > 0:
            behind_run = byte // GAP * (FILLED + GAP) + FILLED + byte % GAP
        else:
            behind_run = byte
        behind_rows = GAPS * (FILLED + GAP) + FILLED + byte - GAPS * GAP
        at = tl.where(between, behind_run, behind_rows)
        zero = tl.zeros([BLOCK], tl.uint64)
        store_unit(begin + at.to(tl.int64), zero, inside & (byte < GAPS * GAP + REST), UNIT)
    if MEASURED:
        number = tl.load(turn + slot, mask=moved, other=0)
        tl.atomic_add(total, total_of((number * heads + place + head) * WORDS + word, value, moved))
