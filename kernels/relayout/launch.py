"""Rows into another layout on the device: all blocks of a layer's copy in one launch, moved, summed and zeroed."""

from __future__ import annotations

import torch

from hitproof.kernels.access import access_of, fitting, start_of
from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.checksum.reference import MASK
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.launching import launch
from hitproof.kernels.relayout.reference import fits
from hitproof.kernels.spans import own_blocks

__all__ = ["CONFIGS", "enqueue", "relayout", "specs"]

CONFIGS = {
    DEFAULT: Config({"BLOCK": 1024}, warps=4),
    "sm90": Config({"BLOCK": 1024}, warps=8),
    "sm100": Config({"BLOCK": 1024}, warps=8),
    INTERPRET: Config({"BLOCK": 4096}),
}


def relayout(
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    *,
    source_first: int = 0,
    head: int = 0,
    heads: int | None = None,
    workspace: torch.Tensor | None = None,
) -> int:
    """The twin of `reference.relayout`; waits for the device.

    The share is that of the words as they were written, taken before they leave the registers.

    Args:
        source, held, target, table, count, source_first, head, heads: As there.
        workspace: int64 [1] on the target's device, overwritten; made where left out.

    Raises:
        TensorError: As there, or the copy lies over what it is made from. Nothing is written.
    """
    fits(source, held, target, table, count, source_first)
    own_blocks(target, table.cpu(), count, source, held.cpu())
    device = target.buffer.device
    total = torch.empty(1, dtype=torch.int64, device=device) if workspace is None else workspace
    total.zero_()
    enqueue(total, source, held.to(device), target, table.to(device), count, source_first, head, heads)
    return int(total) & MASK


def enqueue(
    total: torch.Tensor,
    source: Pool,
    held: torch.Tensor,
    target: Pool,
    table: torch.Tensor,
    count: int,
    source_first: int = 0,
    head: int = 0,
    heads: int | None = None,
) -> None:
    """Copy, zero, and add to a sum; neither allocates nor waits, so that it can be captured in a graph.

    Args:
        total: int64 [1]; added to, modulo 2**64.
        source, target: Pools of the same bytes a row and head, that do not overlap.
        held, table: int64 on the device. A block that is not there is neither read nor written; what would have come
            from it is zero.
        count, source_first, head, heads: As in `reference.relayout`.
    """
    from hitproof.kernels.relayout.kernel import relayout_kernel

    constants = _constants(source.geometry, target.geometry, start_of(source).data_ptr(), start_of(target).data_ptr())
    tile = config_for(CONFIGS, target.buffer.device).tiles["BLOCK"]
    parts = -(-fitting(target).words // tile) + -(-_rest(target.geometry) // tile)
    launch(
        relayout_kernel,
        (-(-count // target.geometry.rows), parts),
        CONFIGS,
        total,
        start_of(source),
        held,
        start_of(target),
        table,
        source.blocks,
        target.blocks,
        count,
        source_first,
        head,
        target.geometry.heads if heads is None else heads,
        *source.geometry.steps[:4],
        *target.geometry.steps[:4],
        **constants,
    )


def _gaps(geometry: Geometry) -> tuple[int, int]:
    """Bytes of rows between two gaps, and bytes of a gap."""
    if geometry.layout == "value_major":
        return geometry.used_bytes, 0
    run = geometry.cell_bytes * (geometry.heads if geometry.layout == "token_major" else 1)
    return run, geometry.pitch - run


def _rest(geometry: Geometry) -> int:
    """Bytes of a block that are no row's."""
    return geometry.block_bytes - geometry.rows * geometry.heads * geometry.cell_bytes


def _constants(source: Geometry, target: Geometry, source_address: int, target_address: int) -> dict[str, int]:
    read, write = access_of(source, source_address), access_of(target, target_address)
    run, gap = _gaps(target)
    return {
        "ROWS_IN": read.rows,
        "ROWS": write.rows,
        "HEADS": write.heads,
        "CELL": write.cell,
        "ITEM_IN": read.item,
        "ITEM_OUT": write.item,
        "UNIT_IN": read.unit,
        "UNIT_OUT": write.unit,
        "DENSE_OUT": write.dense,
        "RUN": run,
        "GAP": gap,
        "USED": target.used_bytes,
        "SIZE": target.block_bytes,
    }


def specs() -> list[CompileSpec]:
    """V4's rows out of blocks of 256 into pages of 64, and V of 8 heads turned so that tokens are innermost."""
    from hitproof.kernels.relayout.kernel import relayout_kernel

    types = {"total": "*i64", "source": "*u8", "held": "*i64", "target": "*u8", "table": "*i64"}
    types |= dict.fromkeys(("source_blocks", "target_blocks", "count", "source_first", "place", "heads"), "i32")
    types |= {f"{way}_{step}": "i64" for way in ("from", "to") for step in ("block", "row", "head", "value")}
    page = _constants(Geometry(256, 1, 584), Geometry(64, 1, 584, block_bytes=37_440), 0, 0)
    turned = _constants(Geometry(16, 8, 256), Geometry(16, 8, 256, "value_major", item_bytes=2), 0, 0)
    pools = ("total", "source", "target", "from_block", "to_block")
    return [
        CompileSpec(relayout_kernel, "584 bytes a row, 256 to 64 rows a block", types, page, CONFIGS, pools),
        CompileSpec(relayout_kernel, "V of 8 heads of 128 bf16 values, turned", types, turned, CONFIGS, pools),
    ]
