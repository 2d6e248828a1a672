"""Staging to blocks on the device: all blocks of a layer in one launch, moved and summed in one pass."""

from __future__ import annotations

import torch

from hitproof.kernels.access import Access, access_of, fitting, start_of
from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.checksum.reference import MASK
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.launching import launch
from hitproof.kernels.promote.reference import fits

__all__ = ["CONFIGS", "enqueue", "promote", "specs"]

CONFIGS = {
    DEFAULT: Config({"BLOCK": 1024}, warps=4),
    "sm90": Config({"BLOCK": 2048}, warps=8),
    "sm100": Config({"BLOCK": 2048}, warps=8),
    INTERPRET: Config({"BLOCK": 4096}),
}


def promote(
    staging: Pool,
    staged: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    *,
    first: int = 0,
    head: int = 0,
    heads: int | None = None,
    workspace: torch.Tensor | None = None,
) -> int:
    """The twin of `reference.promote`; waits for the device.

    The share is that of the words as they were written, taken before they leave the registers.

    Args:
        staging, staged, target, table, count, first, head, heads: As there.
        workspace: int64 [1] on the target's device, overwritten; made where left out.

    Raises:
        TensorError: As there. Nothing is written.
    """
    fits(staging, staged, target, table, count, first)
    device = target.buffer.device
    total = torch.empty(1, dtype=torch.int64, device=device) if workspace is None else workspace
    total.zero_()
    enqueue(total, staging, staged.to(device), target, table.to(device), count, first, head, heads)
    return int(total) & MASK


def enqueue(
    total: torch.Tensor,
    staging: Pool,
    staged: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    first: int = 0,
    head: int = 0,
    heads: int | None = None,
) -> None:
    """Copy, and add to a sum; neither allocates nor waits, so that it can be captured in a graph.

    Args:
        total: int64 [1]; added to, modulo 2**64.
        staging, target: Pools that fit each other, of memory that the device reaches.
        staged, table: int64 on the device. Where a block is not there, nothing is moved and nothing added.
        count, first, head, heads: As in `reference.promote`.
    """
    from hitproof.kernels.promote.kernel import promote_kernel

    into = fitting(target)
    tile = config_for(CONFIGS, target.buffer.device).tiles["BLOCK"]
    grid = (-(-(first + count) // into.rows) if count else 0, -(-into.words // tile))
    launch(
        promote_kernel,
        grid,
        CONFIGS,
        total,
        start_of(staging),
        staged,
        start_of(target),
        table,
        staging.blocks,
        target.blocks,
        count,
        first,
        head,
        into.heads if heads is None else heads,
        *staging.geometry.steps[:4],
        *target.geometry.steps[:4],
        **_constants(fitting(staging), into),
    )


def _constants(source: Access, into: Access) -> dict[str, int]:
    return {
        "ROWS": into.rows,
        "HEADS": into.heads,
        "CELL": into.cell,
        "ITEM": into.item,
        "UNIT_IN": source.unit,
        "UNIT_OUT": into.unit,
        "DENSE_IN": source.dense,
        "DENSE_OUT": into.dense,
    }


def specs() -> list[CompileSpec]:
    """V4's rows between aligned pages, and the same out of staging at an odd byte."""
    from hitproof.kernels.promote.kernel import promote_kernel

    types = {"total": "*i64", "staging": "*u8", "staged": "*i64", "target": "*u8", "table": "*i64"}
    types |= dict.fromkeys(("staging_blocks", "target_blocks", "count", "first", "place", "heads"), "i32")
    types |= {f"{way}_{step}": "i64" for way in ("from", "to") for step in ("block", "row", "head", "value")}
    page = Geometry(64, 1, 584, block_bytes=37_440)
    aligned, odd = access_of(page, 0), access_of(page, 1)
    pools = ("total", "staging", "target", "from_block", "to_block")
    return [
        CompileSpec(promote_kernel, "584 bytes a row, aligned", types, _constants(aligned, aligned), CONFIGS, pools),
        CompileSpec(
            promote_kernel, "584 bytes a row, from odd bytes", types, _constants(odd, aligned), CONFIGS, pools[::2]
        ),
    ]
