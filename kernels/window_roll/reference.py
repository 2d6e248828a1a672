"""A ring of rows brought to a new boundary: moved into a private copy, in the order in which the next step writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from hitproof.kernels.blocks import Pool, read_table
from hitproof.kernels.checksum.reference import partial
from hitproof.kernels.relayout import clear
from hitproof.kernels.spans import gather_slots, own_blocks, scatter_slots
from hitproof.kernels.window_roll.boundary import Boundary, members
from hitproof.spec.errors import TensorError

__all__ = [
    "Order",
    "Ring",
    "RollPlan",
    "Rolled",
    "lost_rows",
    "plan_roll",
    "ring_after",
    "slots_of",
    "window_roll",
    "window_roll_measured",
]

Order = Literal["by_position", "packed"]
"""Position p at slot p % R; or oldest first from slot 0 on, as dynamic caches keep their window."""


@dataclass(frozen=True, slots=True)
class Ring:
    """Rows that lie in whatever order a ring was written in.

    Args:
        pool: The blocks.
        table: int64 [blocks]: slot s is row s % P of block table[s // P].
        positions: int64 [R]: the token whose row lies at each slot, -1 where none does.
    """

    pool: Pool
    table: torch.Tensor
    positions: torch.Tensor

    def __post_init__(self) -> None:
        capacity = self.table.numel() * self.pool.geometry.rows
        if self.positions.dtype != torch.int64 or self.positions.dim() != 1 or self.positions.numel() > capacity:
            raise TensorError(
                "a ring has one position a slot",
                got=f"{self.positions.dtype} {list(self.positions.shape)}",
                expected=f"torch.int64, {capacity} or fewer",
            )
        held = self.positions[self.positions >= 0]
        if torch.unique(held).numel() != held.numel():
            raise TensorError("a position lies in a ring twice", got=held.tolist()[:20], expected="each once")


@dataclass(frozen=True, slots=True)
class Rolled:
    """What was written.

    Args:
        positions: int64 [R]: as in `Ring`, of the copy.
        window: int64 [M]: slots of the rows that the query at the boundary reads, in the order of positions.
        bytes: Bytes of the rows moved.
    """

    positions: torch.Tensor
    window: torch.Tensor
    bytes: int


@dataclass(frozen=True, slots=True)
class RollPlan:
    """Where each row comes from and goes to.

    Args:
        slots: int64 [T]: the ring's slots of the segment's rows, in the order of tokens.
        places: int64 [T]: their slots in the copy.
        blocks: Blocks of the copy in order, none of which is read.
        rolled: What will have been written.
    """

    slots: torch.Tensor
    places: torch.Tensor
    blocks: list[int]
    rolled: Rolled


def ring_after(position: int, slots: int) -> torch.Tensor:
    """int64 [R]: what a ring holds into which rows 0 to `position` were written, each p at slot p % R.

    Args:
        position: The position pointer, one past the youngest row written.
        slots: R.
    """
    places = torch.arange(slots, dtype=torch.int64)
    youngest = position - 1 - (position - 1 - places) % slots
    return torch.where(youngest >= 0, youngest, -1)


def lost_rows(ring: Ring, first: int, to: int) -> torch.Tensor:
    """int64: positions of [first, to) whose rows the ring does not hold; overwritten, or never written."""
    wanted = torch.arange(first, to, dtype=torch.int64)
    return wanted[~torch.isin(wanted, ring.positions)]


def window_roll(
    ring: Ring, start: int, end: int, boundary: Boundary, into: Pool, table: torch.Tensor, slots: int, order: Order
) -> Rolled:
    """Move the rows of [start, end) into a private ring, and say which of them the window at the boundary reads.

    All rows of the segment survive, so that its span and its fingerprint stay; rows beyond `end`, which another
    continuation may have written, do not. Nothing is computed: every row is moved byte by byte, and all that is left of
    the copy's blocks is zeroed.

    Args:
        ring: The found rows; only read.
        start, end: Tokens of the segment.
        boundary: Where and how the window's edge is drawn.
        into: Blocks of the copy; changed. The geometry may be another, heads and bytes of a row may not.
        table: int64 [blocks] of the copy.
        slots: R, capacity of the copy in rows.
        order: Where in the copy each row lies.

    Raises:
        TensorError: The ring has lost a row of the segment, the window reads beyond the segment, or the copy is too
            small. Nothing is written.
    """
    plan = plan_roll(ring, start, end, boundary, into, table, slots, order)
    rows = gather_slots(ring.pool, ring.table, plan.slots)
    clear(into, plan.blocks)
    scatter_slots(into, table, plan.places, rows)
    return plan.rolled


def window_roll_measured(
    ring: Ring,
    start: int,
    end: int,
    boundary: Boundary,
    into: Pool,
    table: torch.Tensor,
    slots: int,
    order: Order,
    head: int = 0,
    heads: int | None = None,
) -> tuple[Rolled, int]:
    """Roll, and take the copy's share of the fingerprint, by token whatever the order of its slots.

    Args:
        ring, start, end, boundary, into, table, slots, order: As in `window_roll`.
        head, heads: As in `checksum.reference.partial`.

    Returns:
        What was written, and a number below 2**64.

    Raises:
        TensorError: As in `window_roll`.
    """
    rolled = window_roll(ring, start, end, boundary, into, table, slots, order)
    places = slots_of(rolled.positions, torch.arange(start, end, dtype=torch.int64))
    return rolled, partial(gather_slots(into, table, places), head=head, heads=heads)


def plan_roll(
    ring: Ring, start: int, end: int, boundary: Boundary, into: Pool, table: torch.Tensor, slots: int, order: Order
) -> RollPlan:
    """Look at everything before a byte is written; arguments as in `window_roll`.

    Raises:
        TensorError: As in `window_roll`.
    """
    lost = lost_rows(ring, start, end)
    if lost.numel():
        raise TensorError("the ring has lost rows of the segment", got=lost.tolist()[:20], expected="every row")
    read = members(boundary)
    if read.numel() and not start <= int(read[0]) <= int(read[-1]) < end:
        raise TensorError(
            "the window reads beyond the segment",
            got=f"{int(read[0])} to {int(read[-1])}",
            expected=f"[{start}, {end})",
        )
    if not end - start <= slots <= table.numel() * into.geometry.rows:
        raise TensorError(
            "the copy has no place for every row", got=slots, expected=f"{end - start} or more, in blocks"
        )
    kept = torch.arange(start, end, dtype=torch.int64)
    places = kept % slots if order == "by_position" else kept - start
    positions = torch.full((slots,), -1, dtype=torch.int64)
    positions[places] = kept
    found = slots_of(ring.positions, kept)
    read_table(ring.pool, ring.table, ring.table.numel() * ring.pool.geometry.rows)
    blocks = own_blocks(into, table, slots, ring.pool, ring.table)
    theirs, ours = ring.pool.geometry, into.geometry
    if (theirs.heads, theirs.cell_bytes) != (ours.heads, ours.cell_bytes):
        raise TensorError(
            "the rows do not fit the pool",
            got=f"{theirs.heads} heads of {theirs.cell_bytes} bytes",
            expected=f"{ours.heads} heads of {ours.cell_bytes} bytes",
        )
    size = kept.numel() * ours.heads * ours.cell_bytes
    return RollPlan(found, places, blocks, Rolled(positions, slots_of(positions, read), size))


def slots_of(positions: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """int64 [T]: the slot at which each wanted position lies.

    Args:
        positions: int64 [R], as in `Ring`.
        wanted: int64 [T]; each of them lies somewhere.
    """
    order = torch.argsort(positions)
    return order[torch.searchsorted(positions[order], wanted)]
