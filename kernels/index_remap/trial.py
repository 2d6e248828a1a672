"""Trials of `index_remap`: maps of both types, keys of real pages, entries that moved beyond the reach of 32 bits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from hitproof.kernels.blocks import Geometry
from hitproof.kernels.index_remap.reference import Move, RowMap
from hitproof.kernels.jobs import Job
from hitproof.kernels.numbers import V4_INDEX_ROW
from hitproof.kernels.selftest.sizes import Size, random_rows
from hitproof.kernels.selftest.trial import COPY_TAGS, Setup, Trial, empty_copy, held_rows, request_for

__all__ = ["trials"]

RATIO = 4


def trials() -> list[Trial]:
    """Keys that fill no whole block, in one layer and in several."""
    cases = [("int32", 0, 65, 1), ("int64", 2**31, 65, 2), ("int64", 0, 1, 1), ("int32", 0, 64, 3)]
    return [
        Trial(
            "index_remap",
            f"{dtype} map, {count} keys, {layers} layers, rows from {base}",
            dtype,
            "token_major",
            partial(_build, dtype, base, count, layers),
        )
        for dtype, base, count, layers in cases
    ]


def _build(dtype: str, base: int, count: int, layers: int) -> Setup:
    form = V4_INDEX_ROW
    ours = Geometry(64, 1, form.cell_bytes, block_bytes=8_640)
    rows = random_rows(Size("keys", "fp8_e4m3", form, ours, count, layers))
    held = held_rows(rows, replace(ours, offset=3), form, first=2)
    target = empty_copy(ours, form, count, layers=layers)
    kind = getattr(torch, dtype)
    draw = torch.Generator().manual_seed(count)
    # Entries lie anywhere in a pool of 200 rows, and their whole pool was moved.
    old = torch.randperm(200, generator=draw)[:count]
    new = base + torch.randperm(1000, generator=draw)[:200]
    stands = torch.arange(count) * RATIO
    positions = torch.full((200,), -1, dtype=torch.int64)
    positions[old] = stands
    found, copy = RowMap(old.to(kind), stands), RowMap(torch.zeros_like(old).to(kind), torch.zeros_like(stands))
    move = Move(torch.arange(200), new, positions, generation=6)
    truth = {"kv_generation": 6, **{name: COPY_TAGS[name] for name in ("published", "pool_epoch")}}
    job = Job(held, target, {"self": (found, copy), "kv": move})
    return Setup(request_for("index_remap", held, target), job, truth, rows, cleared=True)
