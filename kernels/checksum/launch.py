"""The fingerprint's sum on the device: all blocks of a layer in one launch."""

from __future__ import annotations

import torch

from hitproof.kernels.access import Access, access_of, fitting, start_of
from hitproof.kernels.blocks import Geometry, Pool, read_table
from hitproof.kernels.checksum.reference import MASK
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.launching import launch

__all__ = ["CONFIGS", "enqueue", "share_of", "specs"]

CONFIGS = {
    DEFAULT: Config({"BLOCK": 1024}, warps=4),
    "sm90": Config({"BLOCK": 2048}, warps=8),
    "sm100": Config({"BLOCK": 2048}, warps=8),
    INTERPRET: Config({"BLOCK": 4096}),
}


def share_of(
    pool: Pool,
    table: torch.Tensor,
    count: int,
    first: int = 0,
    head: int = 0,
    heads: int | None = None,
    *,
    workspace: torch.Tensor | None = None,
) -> int:
    """The twin of `reference.share_of`; waits for the device.

    Args:
        pool, table, count, first, head, heads: As there.
        workspace: int64 [1] on the pool's device, overwritten; made where left out.

    Raises:
        TensorError: The table does not fit.
    """
    read_table(pool, table, count, first)
    device = pool.buffer.device
    total = torch.empty(1, dtype=torch.int64, device=device) if workspace is None else workspace
    total.zero_()
    enqueue(total, pool, table.to(device), count, first, head, heads)
    return int(total) & MASK


def enqueue(
    total: torch.Tensor,
    pool: Pool,
    table: torch.Tensor,
    count: int,
    first: int = 0,
    head: int = 0,
    heads: int | None = None,
) -> None:
    """Add the share of some rows to a sum; neither allocates nor waits, so that it can be captured in a graph.

    Args:
        total: int64 [1]; added to, modulo 2**64.
        pool: The blocks.
        table: int64 on the pool's device. A block that is not there adds nothing.
        count, first, head, heads: As in `reference.share_of`.
    """
    from hitproof.kernels.checksum.kernel import checksum_kernel

    geometry, shape, start = pool.geometry, fitting(pool), start_of(pool)
    tile = config_for(CONFIGS, start.device).tiles["BLOCK"]
    grid = (-(-(first + count) // geometry.rows) if count else 0, -(-shape.words // tile))
    launch(
        checksum_kernel,
        grid,
        CONFIGS,
        total,
        start,
        table,
        pool.blocks,
        count,
        first,
        head,
        geometry.heads if heads is None else heads,
        *geometry.steps[:4],
        **_constants(shape),
    )


def _constants(shape: Access) -> dict[str, int]:
    return {
        "ROWS": shape.rows,
        "HEADS": shape.heads,
        "CELL": shape.cell,
        "ITEM": shape.item,
        "UNIT": shape.unit,
        "DENSE": shape.dense,
    }


def specs() -> list[CompileSpec]:
    """V4's rows in aligned blocks, and rows of 128 bf16 values by head at an odd byte."""
    from hitproof.kernels.checksum.kernel import checksum_kernel

    types = {"total": "*i64", "start": "*u8", "table": "*i64", "blocks": "i32", "count": "i32", "first": "i32"}
    types |= {"place": "i32", "heads": "i32", "by_block": "i64", "by_row": "i32", "by_head": "i32", "by_value": "i32"}
    v4 = _constants(access_of(Geometry(64, 1, 584, block_bytes=37_440), 0))
    odd = _constants(access_of(Geometry(16, 8, 256, "head_major"), 1))
    return [
        CompileSpec(checksum_kernel, "584 bytes a row, aligned", types, v4, CONFIGS, ("total", "start", "by_block")),
        CompileSpec(checksum_kernel, "256 bytes a row, odd bytes", types, odd, CONFIGS, ("total",)),
    ]
