"""`requantize` between every two of its formats, with scales in the row and apart."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from hitproof.kernels.blocks import Geometry
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.numbers import ROUNDING, V4_ROW, RowFormat, decode, encode, plain_row, scales_for
from hitproof.kernels.selftest.sizes import random_values
from hitproof.kernels.selftest.trial import (
    COPY_TAGS,
    Setup,
    Trial,
    allowed_error,
    empty_copy,
    held_rows,
    request_for,
)

__all__ = ["trials"]

_FORMATS = ("bf16", "fp32", "fp8_e4m3", "fp8_e5m2")
_HEADS, _SIZE, _ROWS, _COUNT, _LAYERS = 2, 80, 16, 35, 2


def trials() -> list[Trial]:
    """Every two formats; fp8 rows have scales a head, which lie apart. And DeepSeek-V4's rows, to bf16 and back."""
    found = [
        Trial("requantize", f"{source} to {target}", target, layout, partial(_plain, source, target, layout))
        for source in (*_FORMATS, "fp16")
        for target in _FORMATS
        for layout in ("token_major", "head_major")
    ]
    found += [
        Trial("requantize", "V4 rows to bf16", "bf16", "token_major", partial(_v4, V4_ROW, plain_row("bf16", 512))),
        Trial("requantize", "bf16 to V4 rows", "fp8_e4m3", "token_major", partial(_v4, plain_row("bf16", 512), V4_ROW)),
    ]
    return found


def _plain(source: str, target: str, layout: str) -> Setup:
    values = random_values(_COUNT, _LAYERS, _HEADS, _SIZE, seed=5)
    read, write = plain_row(source, _SIZE), plain_row(target, _SIZE)
    read_scale = scales_for(values, source, (0, 1, 3))[0] if source.startswith("fp8") else None
    held = replace(_held(encode(values, read, read_scale), read, layout), scale=read_scale)
    exact = decode(encode(values, read, read_scale), read, read_scale).double()
    write_scale = scales_for(exact, target, (0, 1, 3))[0] if target.startswith("fp8") else None
    allowed = allowed_error(exact, target, 1.0 if write_scale is None else write_scale.double())
    return _setup(held, write, layout, exact, allowed, write_scale)


def _v4(read: RowFormat, write: RowFormat) -> Setup:
    values = random_values(70, 1, 1, 512, seed=6)
    cells = encode(values, read)
    exact = decode(cells, read).double()
    allowed = allowed_error(exact, "bf16")
    if write is V4_ROW:
        # A power of two next above the exact scale: less than twice as large.
        groups = exact[..., :448].unflatten(-1, (7, 64)).abs().amax(-1) * 2 / ROUNDING["fp8_e4m3"].largest
        allowed[..., :448] = allowed_error(exact[..., :448], "fp8_e4m3", groups.repeat_interleave(64, -1))
    return _setup(_held(cells, read, "token_major"), write, "token_major", exact, allowed, None)


def _held(cells: torch.Tensor, form: RowFormat, layout: str) -> Held:
    geometry = Geometry(_ROWS, cells.shape[2], form.cell_bytes, layout, offset=1)  # type: ignore[arg-type]
    return held_rows(cells, geometry, form, first=3, tags={"encoding": "encoding as found", "exactness": "exact"})


def _setup(
    held: Held, write: RowFormat, layout: str, exact: torch.Tensor, allowed: torch.Tensor, scale: torch.Tensor | None
) -> Setup:
    geometry = Geometry(32, exact.shape[2], write.cell_bytes, layout)  # type: ignore[arg-type]
    geometry = replace(geometry, stride=-(-geometry.block_bytes // 16) * 16)
    target = replace(empty_copy(geometry, write, held.count, layers=exact.shape[1]), scale=scale)
    told = {name: COPY_TAGS[name] for name in ("published", "pool_epoch", "encoding", "scale_version")}
    told["exactness"] = "approximate"
    job = Job(held, target)
    return Setup(request_for("requantize", held, target), job, told, None, exact, allowed)
