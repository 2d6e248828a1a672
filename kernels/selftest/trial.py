"""A trial of a repair: its request and rows, what must be true of the copy, and slow ways to say so.

What is expected is worked out byte by byte with plain loops, so that no fault of the pools' views can hide in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

import torch

from hitproof.kernels.blocks import Geometry, Pool, pool_of
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.numbers import ROUNDING, RowFormat
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = [
    "COPY_TAGS",
    "POISON",
    "Setup",
    "Trial",
    "allowed_error",
    "empty_copy",
    "held_rows",
    "read_rows",
    "request_for",
    "shuffled",
    "slow_address",
    "trials_of",
    "writable",
]

POISON = 0xA5
"""What stands in every byte that nobody has written."""
_SLACK = 96
COPY_TAGS: Mapping[str, Value] = {
    "form": "full",
    "tier": "device",
    "published": False,
    "pool_epoch": 7,
    "layout": "layout of the copy",
    "kernel_version": "kernel of the copy",
    "v_layout": "rows",
    "encoding": "encoding of the copy",
    "scale_version": "scales of the copy",
}
"""Facts that a copy shall have, other than those that the rows were found with."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One repair about to run.

    Args:
        request: As the engine would ask.
        job: Rows and free blocks.
        truth: What must be told of the copy, worked out in another way. Facts of place and fingerprints are looked at
            on the bytes and need not stand here.
        rows: uint8 [T, H, C] that the copy must hold exactly; None where values are compared, or nothing is written.
        values: float64 [T, H, V] that the copy must hold.
        allowed: How far each value may be off, of the same shape.
        cleared: Whether all else in the copy's blocks must be zero; else it must be as it was.
    """

    request: RepairRequest
    job: Job
    truth: Mapping[str, Value] = field(default_factory=dict)
    rows: torch.Tensor | None = None
    values: torch.Tensor | None = None
    allowed: torch.Tensor | None = None
    cleared: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """A repair on one set of sizes, made anew each time it is built, always the same.

    Args:
        repair: Its name.
        name: The sizes, in words.
        dtype: Number format of what is written, by the names of repair declarations.
        layout: Order of rows in the copy's blocks.
        build: Makes it.
    """

    repair: str
    name: str
    dtype: str
    layout: str
    build: Callable[[], Setup]


def trials_of(repair: str) -> list[Trial]:
    """All trials of a repair, from its folder."""
    found: list[Trial] = import_module(f"hitproof.kernels.{repair}.trial").trials()
    return found


def slow_address(geometry: Geometry, block: int, row: int, head: int, byte: int) -> int:
    """Where a byte of a cell lies, from the buffer's start; spelled out for each layout."""
    start = geometry.offset + block * geometry.stride
    if geometry.layout == "token_major":
        return start + row * geometry.pitch + head * geometry.cell_bytes + byte
    if geometry.layout == "head_major":
        return start + head * geometry.rows * geometry.pitch + row * geometry.pitch + byte
    value, inside = divmod(byte, geometry.item_bytes)
    values = geometry.cell_bytes // geometry.item_bytes
    return start + ((head * values + value) * geometry.rows + row) * geometry.item_bytes + inside


def shuffled(blocks: int, needed: int, seed: int) -> torch.Tensor:
    """A table of `needed` blocks out of `blocks`, in no order."""
    order = torch.randperm(blocks, generator=torch.Generator().manual_seed(seed))
    return order[:needed].to(torch.int64)


def empty_copy(
    geometry: Geometry, form: RowFormat, count: int, *, layers: int = 1, first: int = 0, start: int = 0, seed: int = 1
) -> Held:
    """Poisoned blocks in which a copy of `count` rows has its place, among others that nobody may touch."""
    needed = -(-(first + count) // geometry.rows)
    pools = tuple(pool_of(geometry, needed + 2, poison=POISON, slack=_SLACK) for _ in range(layers))
    table = shuffled(needed + 2, needed, seed)
    # As if the allocator had kept its promise; where the test's own memory lies is of no interest.
    return Held(pools, table, count, form, first=first, start=start, base=1 << 40, tags=COPY_TAGS)


def held_rows(
    rows: torch.Tensor,
    geometry: Geometry,
    form: RowFormat,
    *,
    first: int = 0,
    start: int = 0,
    seed: int = 0,
    tags: Mapping[str, Value] | None = None,
) -> Held:
    """Rows as a repair finds them, written byte by byte into poisoned blocks.

    Args:
        rows: uint8 [T, L, H, C]; L layers.
        geometry: Where they lie.
        form: Their format.
        first: Row of the first block.
        start: Token of the first row.
        seed: Draws the table.
        tags: Other tags than those of a copy.
    """
    count, layers = rows.shape[:2]
    held = replace(
        empty_copy(geometry, form, count, layers=layers, first=first, start=start, seed=seed),
        tags={**COPY_TAGS, "layout": "layout as found", **(tags or {})},
    )
    for layer, pool in enumerate(held.layers):
        for row in range(count):
            block = int(held.table[(first + row) // geometry.rows])
            for head in range(geometry.heads):
                places = _places(geometry, block, (first + row) % geometry.rows, head)
                pool.buffer[places] = rows[row, layer, head]
    return held


def read_rows(held: Held, layer: int) -> torch.Tensor:
    """uint8 [T, H, C]: the rows of a layer, read byte by byte."""
    pool = held.layers[layer]
    geometry = pool.geometry
    rows = torch.zeros((held.count, geometry.heads, geometry.cell_bytes), dtype=torch.uint8)
    for row in range(held.count):
        block = int(held.table[(held.first + row) // geometry.rows])
        for head in range(geometry.heads):
            rows[row, head] = pool.buffer[_places(geometry, block, (held.first + row) % geometry.rows, head)]
    return rows


def _places(geometry: Geometry, block: int, row: int, head: int) -> torch.Tensor:
    if geometry.layout != "value_major":
        return slow_address(geometry, block, row, head, 0) + torch.arange(geometry.cell_bytes)
    return torch.tensor([slow_address(geometry, block, row, head, byte) for byte in range(geometry.cell_bytes)])


def writable(held: Held, pool: Pool) -> tuple[torch.Tensor, torch.Tensor]:
    """Two bool [bytes of the buffer]: bytes of the copy's rows, and bytes of its blocks."""
    geometry = pool.geometry
    rows = torch.zeros(pool.buffer.numel(), dtype=torch.bool)
    blocks = torch.zeros_like(rows)
    for block in held.table.tolist():
        begin = geometry.offset + block * geometry.stride
        blocks[begin : begin + geometry.block_bytes] = True
    for row in range(held.count):
        block = int(held.table[(held.first + row) // geometry.rows])
        for head in range(geometry.heads):
            rows[_places(geometry, block, (held.first + row) % geometry.rows, head)] = True
    return rows, blocks


def request_for(repair: str, held: Held | None, target: Held | None, **facts: Value) -> RepairRequest:
    """A request as the engine states it: the facts before, and what is wanted after."""
    before = {} if held is None else {**held.tags, "address": held.address}
    wanted = {} if target is None else dict(target.tags)
    count = next((one.count for one in (target, held) if one is not None), 0)
    start = next((one.start for one in (target, held) if one is not None), 0)
    return RepairRequest(
        repair=repair,
        group="group",
        segment=0,
        length=start + count,
        first=start,
        to=start + count,
        facts={**before, **facts},
        wanted={**before, **wanted, **facts},
        sources={},
    )


def allowed_error(
    values: torch.Tensor, dtype: str, scale: torch.Tensor | float = 1.0, terms: float = 0.0
) -> torch.Tensor:
    """How far values may be off after one rounding to a format.

    Args:
        values: The exact values.
        dtype: The format.
        scale: Of fp8 values.
        terms: What the arithmetic before the rounding, in float32, may add.
    """
    rounding = ROUNDING[dtype]
    # The scale itself is a float32, and so is the product that decoding forms: three more roundings.
    near = rounding.relative * (1 + 2.0**-10) + 3 * ROUNDING["fp32"].relative
    return values.abs() * near + rounding.absolute * torch.as_tensor(scale) * (1 + 2.0**-10) + terms
