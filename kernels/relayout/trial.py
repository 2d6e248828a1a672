"""`relayout` between blocks of other sizes, orders and pitches."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hitproof.kernels.blocks import Geometry
from hitproof.kernels.jobs import Job
from hitproof.kernels.selftest.sizes import Size, random_rows, sizes
from hitproof.kernels.selftest.trial import COPY_TAGS, Setup, Trial, empty_copy, held_rows, request_for

__all__ = ["trials"]


def trials() -> list[Trial]:
    """Every size as the copy's, from blocks with another number of rows, the other order and no gaps, at odd bytes."""
    return [Trial("relayout", size.name, size.dtype, size.geometry.layout, partial(_build, size)) for size in sizes()]


def _build(size: Size) -> Setup:
    ours = size.geometry
    order = "head_major" if ours.layout == "token_major" else "token_major"
    theirs = Geometry(ours.rows // 2 + 3, ours.heads, ours.cell_bytes, order, offset=5)  # type: ignore[arg-type]
    if size.dtype == "fp32":
        # Values with the tokens innermost, as some kernels keep V.
        theirs = replace(theirs, layout="value_major", item_bytes=4)
    rows = random_rows(size)
    held = held_rows(rows, theirs, size.form, first=2)
    target = empty_copy(ours, size.form, size.count, layers=size.layers)
    told = {name: COPY_TAGS[name] for name in ("layout", "kernel_version", "v_layout", "published", "pool_epoch")}
    return Setup(request_for("relayout", held, target), Job(held, target), told, rows, cleared=True)
