"""Trials of `window_roll`: rings in every format, real pages among them, rolled to the start of a copy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from hitproof.kernels.blocks import Geometry
from hitproof.kernels.jobs import Job
from hitproof.kernels.selftest.sizes import Size, random_rows, sizes
from hitproof.kernels.selftest.trial import COPY_TAGS, Setup, Trial, empty_copy, held_rows, request_for
from hitproof.kernels.window_roll.boundary import Boundary

__all__ = ["trials"]


def trials() -> list[Trial]:
    """Every size of a format that rings are kept in; the ring has gone round, and holds three rows too many."""
    return [
        Trial("window_roll", size.name, size.dtype, size.geometry.layout, partial(_build, size))
        for size in sizes()
        if size.dtype != "fp8_e5m2"
    ]


def _build(size: Size) -> Setup:
    slots, position = size.count, 5 * size.count + 7
    start, end = position - slots, max(position - 3, position - slots + 1)
    physical = random_rows(size)
    theirs = Geometry(size.geometry.rows + 1, size.geometry.heads, size.geometry.cell_bytes, offset=7)
    held = held_rows(physical, theirs, size.form)
    target = empty_copy(size.geometry, size.form, end - start, layers=size.layers, start=start)
    boundary = Boundary(
        end, end - start, (start + 1,), skipped=((start, start + 3),), version="boundary of the request"
    )
    truth = {
        "boundary_version": "boundary of the request",
        "write_sequence": 10,
        "committed_sequence": 10,
        **{name: COPY_TAGS[name] for name in ("published", "pool_epoch")},
    }
    request = request_for("window_roll", held, target, start=start, end=end, position=position, write_sequence=9)
    request = replace(request, length=end, first=boundary.first, to=end)
    rows = torch.stack([physical[token % slots] for token in range(start, end)])
    job = Job(held, target, {"window_boundary": boundary}, {"into_order": "packed"})
    return Setup(request, job, truth, rows, cleared=True)
