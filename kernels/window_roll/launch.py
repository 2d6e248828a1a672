"""Rings and spans moved on the device: all blocks of a copy in one launch, its fingerprint taken on the way."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.checksum.reference import MASK
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.launching import launch, unit_of
from hitproof.kernels.window_roll.boundary import Boundary
from hitproof.kernels.window_roll.reference import Order, Ring, Rolled, plan_roll

__all__ = ["CONFIGS", "LEAVE", "Moves", "ZERO", "enqueue", "programs_of", "specs", "window_roll_measured"]

CONFIGS = {
    DEFAULT: Config({"BLOCK": 1024}, warps=4),
    "sm90": Config({"BLOCK": 2048}, warps=8),
    "sm100": Config({"BLOCK": 2048}, warps=8),
    INTERPRET: Config({"BLOCK": 4096}),
}
ZERO, LEAVE = -1, -2
"""In place of a slot to move from: the slot of the copy is zeroed, or is left to whoever writes it."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Which slot each slot of a copy takes its row from, on the device of the pools.

    Args:
        source, target: Blocks of the same heads and bytes a row.
        source_table, table: int64: slot s is row s % P of block table[s // P]. Every block of `table` is written.
        slot_from: int64 [slots]: a slot of the source, `ZERO` or `LEAVE`.
        turn: int64 [slots]: the row's number in the segment; not read where `ZERO` or `LEAVE`.
    """

    source: Pool
    source_table: torch.Tensor
    target: Pool
    table: torch.Tensor
    slot_from: torch.Tensor
    turn: torch.Tensor


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
    *,
    workspace: torch.Tensor | None = None,
) -> tuple[Rolled, int]:
    """The twin of `reference.window_roll_measured`, in one pass; waits for the device.

    The share is that of the bytes as they are written.

    Args:
        ring, start, end, boundary, into, table, slots, order, head, heads: As there.
        workspace: int64 [1] on the pool's device, overwritten; made where left out.

    Raises:
        TensorError: As there. Nothing is written.
    """
    plan = plan_roll(ring, start, end, boundary, into, table, slots, order)
    device = into.buffer.device
    slot_from = torch.full((slots,), ZERO, dtype=torch.int64)
    slot_from[plan.places] = plan.slots
    turn = plan.rolled.positions - start
    total = torch.empty(1, dtype=torch.int64, device=device) if workspace is None else workspace
    total.zero_()
    blocks = table[: -(-slots // into.geometry.rows)].to(device)
    moves = Moves(ring.pool, ring.table.to(device), into, blocks, slot_from.to(device), turn.to(device))
    enqueue(moves, total, head, heads)
    return plan.rolled, int(total) & MASK


def enqueue(moves: Moves, total: torch.Tensor | None, head: int = 0, heads: int | None = None) -> None:
    """Move rows, zero the rest of the copy's blocks; neither allocates nor waits, so that a graph can capture it.

    Args:
        moves: What goes where; the target is changed.
        total: int64 [1], to which the rows' share of the fingerprint is added; None where nobody asks for it.
        head, heads: As in `checksum.reference.partial`.
    """
    from hitproof.kernels.window_roll.kernel import roll_kernel

    source, target = moves.source, moves.target
    from_start, to_start = (pool.buffer[pool.geometry.offset :] for pool in (source, target))
    shape = _shape(source.geometry, target.geometry, from_start.data_ptr(), to_start.data_ptr(), total is not None)
    tile = config_for(CONFIGS, to_start.device).tiles["BLOCK"]
    launch(
        roll_kernel,
        (moves.table.numel(), _tiles(shape, tile)),
        CONFIGS,
        moves.turn if total is None else total,
        from_start,
        moves.source_table,
        source.blocks,
        *source.geometry.steps[:4],
        to_start,
        moves.table,
        target.blocks,
        *target.geometry.steps[:4],
        moves.slot_from,
        moves.turn,
        moves.slot_from.numel(),
        head,
        target.geometry.heads if heads is None else heads,
        **shape,
    )


def programs_of(source: Pool, target: Pool, tile: int) -> int:
    """Programs a block of a copy, for tiles of so many words."""
    one, two = (pool.buffer[pool.geometry.offset :].data_ptr() for pool in (source, target))
    return _tiles(_shape(source.geometry, target.geometry, one, two, False), tile)


def _tiles(shape: dict[str, int], tile: int) -> int:
    """Programs a block: enough for its words, and for the units of its gaps."""
    words = shape["ROWS"] * shape["HEADS"] * -(-shape["CELL"] // 8)
    units = (shape["GAPS"] * shape["GAP"] + shape["REST"]) // shape["UNIT"]
    return -(-max(words, units) // tile)


def _shape(source: Geometry, target: Geometry, from_address: int, to_address: int, measured: bool) -> dict[str, int]:
    """Compile-time arguments: both geometries, and what may be taken at once from each address."""
    cell, heads = target.cell_bytes, target.heads
    runs, filled = {
        "token_major": (target.rows, heads * cell),
        "head_major": (target.rows * heads, cell),
        "value_major": (1, target.used_bytes),
    }[target.layout]
    gap = target.pitch - filled if runs > 1 else 0
    rest = target.block_bytes - target.used_bytes
    return {
        "SOURCE_ROWS": source.rows,
        "SOURCE_ITEM": source.shape[3],
        "SOURCE_UNIT": unit_of(8, from_address, *source.steps[:4], source.shape[3]),
        "ROWS": target.rows,
        "HEADS": heads,
        "CELL": cell,
        "ITEM": target.shape[3],
        "UNIT": unit_of(8, to_address, *target.steps[:4], target.shape[3], filled, gap, rest),
        "FILLED": filled,
        "GAP": gap,
        "GAPS": runs - 1,
        "REST": rest,
        "MEASURED": int(measured),
    }


def specs() -> list[CompileSpec]:
    """V4's window pages, aligned, and rows of 128 bf16 values at an odd byte into blocks by head with gaps."""
    from hitproof.kernels.window_roll.kernel import roll_kernel

    types = {"total": "*i64", "source": "*u8", "source_table": "*i64", "source_blocks": "i32"}
    types |= {"from_block": "i64", "from_row": "i32", "from_head": "i32", "from_value": "i32"}
    types |= {"target": "*u8", "target_table": "*i64", "target_blocks": "i32"}
    types |= {"to_block": "i64", "to_row": "i32", "to_head": "i32", "to_value": "i32"}
    types |= {"slot_from": "*i64", "turn": "*i64", "slots": "i32", "place": "i32", "heads": "i32"}
    page = Geometry(64, 1, 584, block_bytes=37_440)
    odd, gaps = Geometry(16, 8, 256), Geometry(32, 8, 256, "head_major", pitch=272, block_bytes=70_000)
    aligned = ("total", "source", "from_block", "target", "to_block", "slot_from", "turn")
    return [
        CompileSpec(roll_kernel, "V4 window pages", types, _shape(page, page, 0, 0, True), CONFIGS, aligned),
        CompileSpec(
            roll_kernel, "odd bytes to rows by head", types, _shape(odd, gaps, 1, 0, False), CONFIGS, ("total",)
        ),
    ]
