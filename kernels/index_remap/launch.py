"""An index led to new rows on the device: nothing waits for the verdict, and no byte is written if it is bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hitproof.kernels.checksum.reference import MASK
from hitproof.kernels.configs import DEFAULT, INTERPRET, CompileSpec, Config, config_for
from hitproof.kernels.index_remap.reference import Move, Remapped, RowMap, require_copy
from hitproof.kernels.launching import launch
from hitproof.kernels.relayout.launch import enqueue as enqueue_copy
from hitproof.kernels.spans import Span
from hitproof.spec.errors import TensorError

__all__ = ["CONFIGS", "Workspace", "enqueue", "index_remap_measured", "places", "specs"]

CONFIGS = {
    # One key a lane: its search and its place in the table take many registers.
    DEFAULT: Config({"BLOCK": 128}, warps=4),
    "gfx942": Config({"BLOCK": 128}, warps=2),
    "gfx950": Config({"BLOCK": 128}, warps=2),
    INTERPRET: Config({"BLOCK": 4096}),
}
_LOST, _MISLED = 1, 2


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the kernels hand to one another, and to who asks what came of it.

    Args:
        new: int64 [E]: the row to which each key leads now.
        flags: uint8 [E]: 0 for a key that is well, 1 for a lost one, 2 for a misled one.
        slots: int64 [E]: place of each key's row in the hash table.
        ends: int64 [S]: the hash table, S a power of two and at least 2 * E.
        users: int32 [S]: keys that lead to each of its rows.
        verdict: int64 [4]: lost keys, misled keys, rows that are too large for the map's type; one number is spare.
        granted: int64 [L, blocks of the copy]: the copy's table a layer, -1 throughout where nothing may be written.
        total: int64 [1]: the sum of the copy's fingerprint.
    """

    new: torch.Tensor
    flags: torch.Tensor
    slots: torch.Tensor
    ends: torch.Tensor
    users: torch.Tensor
    verdict: torch.Tensor
    granted: torch.Tensor
    total: torch.Tensor

    @classmethod
    def of(cls, keys: int, layers: int, blocks: int, device: torch.device) -> Workspace:
        """Buffers for so many keys and layers, and blocks of a copy's longest table."""

        def made(*shape: int, kind: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.empty(shape, dtype=kind, device=device)

        return cls(
            new=made(keys),
            flags=made(keys, kind=torch.uint8),
            slots=made(keys),
            ends=made(places(keys)),
            users=made(places(keys), kind=torch.int32),
            verdict=made(4),
            granted=made(layers, blocks),
            total=made(1),
        )


def places(keys: int) -> int:
    """Places of the hash table for so many keys: no more than half are taken, so that a search is short."""
    return 1 << max(2, (2 * keys - 1).bit_length())


def index_remap_measured(
    keys: Sequence[Span],
    found: RowMap,
    move: Move,
    into: Sequence[Span],
    copy: RowMap,
    *,
    workspace: Workspace | None = None,
) -> tuple[Remapped, int]:
    """The twin of `reference.index_remap_measured`; waits for the device.

    Args:
        keys, found, move, into, copy: As there.
        workspace: Overwritten; made where left out.

    Raises:
        TensorError: As there. Nothing is written.
    """
    require_copy(keys, found, into, copy)
    device = found.rows.device
    blocks = max((place.table.numel() for place in into), default=0)
    used = workspace or Workspace.of(found.rows.numel(), len(into), blocks, device)
    enqueue(keys, found, move, into, copy, used)
    if int(used.verdict[2]):
        largest = torch.iinfo(found.rows.dtype).max
        raise TensorError(
            "a row is too large for the index's type", got=int(used.new.max()), expected=f"up to {largest}"
        )
    lost, misled = (torch.nonzero(used.flags == flag).flatten() for flag in (_LOST, _MISLED))
    return Remapped(used.new.to(found.rows.dtype), lost, misled), int(used.total) & MASK


def enqueue(
    keys: Sequence[Span], found: RowMap, move: Move, into: Sequence[Span], copy: RowMap, workspace: Workspace
) -> None:
    """Lead, judge, and copy if all is well; neither allocates nor waits, so that it can be captured in a graph.

    Args:
        keys, found, move, into, copy: As in `index_remap_measured`, all on the device.
        workspace: Overwritten; holds what came of it.
    """
    from hitproof.kernels.index_remap.kernel import (
        clear_kernel,
        file_kernel,
        grant_kernel,
        judge_kernel,
        lead_kernel,
    )

    tile = config_for(CONFIGS, found.rows.device).tiles["BLOCK"]
    count, size = found.rows.numel(), workspace.ends.numel()
    grid = (-(-count // tile),)
    launch(clear_kernel, (-(-size // tile),), CONFIGS, workspace.ends, workspace.users, workspace.verdict, size)
    launch(
        lead_kernel,
        grid,
        CONFIGS,
        found.rows,
        found.positions,
        move.old,
        move.new,
        move.positions,
        workspace.new,
        workspace.flags,
        workspace.slots,
        workspace.ends,
        workspace.users,
        count,
        move.old.numel(),
        move.old.numel().bit_length(),
        size - 1,
    )
    largest = torch.iinfo(found.rows.dtype).max
    launch(
        judge_kernel,
        grid,
        CONFIGS,
        workspace.new,
        workspace.flags,
        workspace.slots,
        workspace.users,
        workspace.verdict,
        count,
        largest,
    )
    launch(
        file_kernel,
        grid,
        CONFIGS,
        workspace.new,
        found.positions,
        workspace.verdict,
        copy.rows,
        copy.positions,
        count,
    )
    workspace.total.zero_()
    heads = [place.pool.geometry.heads for place in into]
    for layer, (source, place) in enumerate(zip(keys, into, strict=True)):
        granted, blocks = workspace.granted[layer], place.table.numel()
        launch(grant_kernel, (-(-blocks // tile),), CONFIGS, workspace.verdict, place.table, granted, blocks)
        share = sum(heads[:layer]), sum(heads)
        copied = source.pool, source.table, place.pool, granted, count, source.first
        enqueue_copy(workspace.total, *copied, *share)


def specs() -> list[CompileSpec]:
    """Maps of 32 and of 64 bits."""
    from hitproof.kernels.index_remap.kernel import (
        clear_kernel,
        file_kernel,
        grant_kernel,
        judge_kernel,
        lead_kernel,
    )

    table = {"ends": "*i64", "users": "*i32"}
    keyed = {"new": "*i64", "flags": "*u8", "slots": "*i64"}
    found = [
        CompileSpec(
            clear_kernel, "table emptied", {**table, "verdict": "*i64", "size": "i32"}, {}, CONFIGS, tuple(table)
        )
    ]
    for kind in ("i32", "i64"):
        types = {"rows": f"*{kind}", "positions": "*i64", "old": "*i64", "moved": "*i64", "owned": "*i64"}
        types |= {**keyed, **table, "keys": "i32", "moves": "i32", "turns": "i32", "last": "i32"}
        named = f"map of {kind[1:]} bits"
        found.append(
            CompileSpec(lead_kernel, named, types, {}, CONFIGS, ("rows", "positions", "new", "flags", "slots"))
        )
        filed = {"new": "*i64", "positions": "*i64", "verdict": "*i64", "rows": f"*{kind}", "stands": "*i64"}
        aligned = ("new", "positions", "rows", "stands")
        found.append(CompileSpec(file_kernel, named, {**filed, "keys": "i32"}, {}, CONFIGS, aligned))
    judged = {**keyed, "users": "*i32", "verdict": "*i64", "keys": "i32", "largest": "i64"}
    granted = {"verdict": "*i64", "table": "*i64", "granted": "*i64", "blocks": "i32"}
    return [
        *found,
        CompileSpec(judge_kernel, "faults counted", judged, {}, CONFIGS, tuple(keyed)),
        CompileSpec(grant_kernel, "blocks granted", granted, {}, CONFIGS, ("table",)),
    ]
