"""Keys led to the rows of their entries, keys that share a row found by a hash table, and the map filed."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["clear_kernel", "file_kernel", "grant_kernel", "judge_kernel", "lead_kernel"]


@triton.jit(do_not_specialize=["size"])
def clear_kernel(
    ends,  # int64 [size]: row that a place of the hash table stands for; -1 for none
    users,  # int32 [size]: keys that lead to it
    verdict,  # int64 [4]
    size,
    BLOCK: tl.constexpr,
):
    """Empty the hash table and the verdict; program i does the places [i * BLOCK, (i + 1) * BLOCK)."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    tl.store(ends + place, tl.full([BLOCK], -1, tl.int64), mask=inside)
    tl.store(users + place, tl.zeros([BLOCK], tl.int32), mask=inside)
    tl.store(verdict + place, tl.zeros([BLOCK], tl.int64), mask=place < 4)


@triton.jit(do_not_specialize=["keys", "moves", "turns", "last"])
def lead_kernel(
    rows,  # int32 or int64 [keys]
    positions,  # int64 [keys]
    old,  # int64 [moves], ascending
    moved,  # int64 [moves]
    owned,  # int64 [moves]: positions at the new rows
    new,  # int64 [keys]
    flags,  # uint8 [keys]: 0 well, 1 lost, 2 misled
    slots,  # int64 [keys]: place of the key's row in the hash table
    ends,
    users,
    keys,
    moves,
    turns,  # bits of `moves`
    last,  # places of the hash table, a power of two, less one
    BLOCK: tl.constexpr,
):
    """Program i leads the keys [i * BLOCK, (i + 1) * BLOCK) by binary search, and enters their rows in the table."""
    key = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = key < keys
    row = tl.load(rows + key, mask=inside, other=-1).to(tl.int64)
    below = tl.zeros([BLOCK], tl.int64)
    for turn in range(turns):
        # One read a key and turn, whatever the rows are: what would lie beyond the table reads its last row.
        ahead = below + ((below * 0 + 1) << (turns - 1 - turn).to(tl.int64))
        there = tl.load(old + tl.minimum(ahead, moves) - 1, mask=inside, other=0)
        below = tl.where((ahead <= moves) & (there < row), ahead, below)
    found = inside & (below < moves)
    known = found & (row >= 0) & (tl.load(old + below, mask=found, other=-1) == row)
    end = tl.load(moved + below, mask=known, other=-1)
    holds = end >= 0
    stands = tl.load(positions + key, mask=inside, other=0)
    owner = tl.load(owned + below, mask=holds, other=0)
    tl.store(new + key, end, mask=inside)
    lost = (row >= 0) & (holds == 0)
    misled = holds & (owner != stands)
    tl.store(flags + key, lost.to(tl.uint8) + misled.to(tl.uint8) * 2, mask=inside)
    # The bits in the middle of a product with 2**64 over the golden ratio are well mixed.
    slot = ((end.to(tl.uint64) * 0x9E3779B97F4A7C15) >> 20).to(tl.int64) & last
    todo = holds
    while tl.max(todo.to(tl.int32), axis=0) > 0:
        # No place holds -2, so that a key that has its place changes nothing.
        there = tl.atomic_cas(ends + slot, tl.where(todo, -1, -2).to(tl.int64), end)
        placed = todo & ((there == -1) | (there == end))
        tl.atomic_add(users + slot, 1, mask=placed)
        tl.store(slots + key, slot, mask=placed)
        todo = todo & (placed == 0)
        slot = (slot + 1) & last


@triton.jit(do_not_specialize=["keys", "largest"])
def judge_kernel(
    new,
    flags,
    slots,
    users,
    verdict,  # int64: keys that are lost, keys that are misled, rows that are too large; each added to
    keys,
    largest,  # row that the map's type can hold
    BLOCK: tl.constexpr,
):
    """Program i marks those of the keys [i * BLOCK, (i + 1) * BLOCK) that share a row as misled, and counts faults."""
    key = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = key < keys
    row = tl.load(new + key, mask=inside, other=-1)
    holds = row >= 0
    slot = tl.load(slots + key, mask=holds, other=0)
    shared = tl.load(users + slot, mask=holds, other=0) > 1
    flag = tl.where(shared, 2, tl.load(flags + key, mask=inside, other=0).to(tl.int32))
    tl.store(flags + key, flag.to(tl.uint8), mask=inside)
    tl.atomic_add(verdict, tl.sum((flag == 1).to(tl.int64), axis=0))
    tl.atomic_add(verdict + 1, tl.sum((flag == 2).to(tl.int64), axis=0))
    tl.atomic_add(verdict + 2, tl.sum((row > largest).to(tl.int64), axis=0))


@triton.jit(do_not_specialize=["keys"])
def file_kernel(
    new,
    positions,
    verdict,
    rows,  # int32 or int64 [keys]: the copy's map
    stands,  # int64 [keys]: its positions
    keys,
    BLOCK: tl.constexpr,
):
    """Program i writes its part of the copy's map, unless the verdict tells of a fault."""
    well = tl.load(verdict) + tl.load(verdict + 1) + tl.load(verdict + 2) == 0
    key = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    write = (key < keys) & well
    row = tl.load(new + key, mask=write, other=0)
    tl.store(rows + key, row.to(rows.dtype.element_ty), mask=write)
    tl.store(stands + key, tl.load(positions + key, mask=write, other=0), mask=write)


@triton.jit(do_not_specialize=["blocks"])
def grant_kernel(
    verdict,
    table,  # int64 [blocks]: blocks of the copy
    granted,  # int64 [blocks]: the same, or -1 each, which stands for no block
    blocks,
    BLOCK: tl.constexpr,
):
    """Program i grants its part of the copy's blocks, unless the verdict tells of a fault."""
    well = tl.load(verdict) + tl.load(verdict + 1) + tl.load(verdict + 2) == 0
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    block = tl.load(table + place, mask=(place < blocks) & well, other=-1)
    tl.store(granted + place, block, mask=place < blocks)
