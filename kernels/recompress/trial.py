"""Trials of `recompress`: DeepSeek-V4's sizes and awkward ones, entries from the start and from amid, states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from hitproof.kernels.blocks import Geometry
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.norms import Linear
from hitproof.kernels.numbers import ROUNDING, V4_ROW, RowFormat, decode, encode, plain_row
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.slow import drawn_compressor, slow_entries
from hitproof.kernels.selftest.trial import (
    COPY_TAGS,
    Setup,
    Trial,
    allowed_error,
    empty_copy,
    held_rows,
    request_for,
)

__all__ = ["Kept", "allowed_row_error", "kept_inputs", "trials"]

_TERMS = 2.0**-15
"""What float32 may add to a number about 1: a projection, a softmax, a norm and a rotation."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Kept rows of several layers, and what a slow reading makes of them.

    Args:
        held: The rows.
        weights: What the repair takes, a layer each.
        rows: float64 values and gates of all tokens from the first, a layer each.
    """

    held: Held
    weights: tuple[LayerWeights, ...]
    rows: tuple[tuple[torch.Tensor, torch.Tensor], ...]


def trials() -> list[Trial]:
    """Entries of both ratios, and states amid a window, at its end and at a length that keeps none."""
    cases: list[tuple[str, str, Callable[[], Setup]]] = [
        ("V4 entries of ratio 4", "fp8_e4m3", partial(_entries, 4, 512, 64, 0, 68, V4_ROW, 64, 37_440)),
        ("V4 entries of ratio 128", "fp8_e4m3", partial(_entries, 128, 512, 64, 0, 384, V4_ROW, 2, 1_728)),
        ("ratio 4 from token 8", "bf16", partial(_entries, 4, 64, 8, 8, 100, plain_row("bf16", 64), 16, 0, 48, 2)),
        ("ratio 4, one entry", "fp32", partial(_entries, 4, 72, 72, 0, 4, plain_row("fp32", 72), 16, 0, 20)),
        ("ratio 128 from token 128", "fp32", partial(_entries, 128, 80, 16, 128, 384, plain_row("fp32", 80), 1, 0)),
        ("V4 state of ratio 4", "fp32", partial(_state, 4, 512, 21, 4, 32_832)),
        ("V4 state of ratio 128", "fp32", partial(_state, 128, 512, 200, 8, 32_832)),
        ("state of ratio 4 before its first entry", "fp32", partial(_state, 4, 64, 3, 4, 0)),
        ("state of ratio 4 at a boundary", "fp32", partial(_state, 4, 96, 128, 4, 0)),
        ("state of ratio 128 at a boundary", "fp32", partial(_state, 128, 64, 256, 8, 0)),
    ]
    return [Trial("recompress", name, dtype, "token_major", build) for name, dtype, build in cases]


def kept_inputs(ratio: int, size: int, rotary: int, first: int, to: int, inputs: int = 0, layers: int = 1) -> Kept:
    """Rows of the tokens [first, to) in blocks of 16, bfloat16 inputs of a size, or float32 projections without one."""
    overlap = ratio == 4
    compressors = [drawn_compressor(ratio, size, rotary, overlap, seed) for seed in range(layers)]
    width = compressors[0].width
    draw = torch.Generator().manual_seed(layers + to)
    form = plain_row("bf16", inputs) if inputs else plain_row("fp32", 2 * width)
    cells = encode(torch.randn((to, layers, 1, form.values), generator=draw), form)
    exact = decode(cells, form).double()
    weights, rows = [], []
    for layer, compressor in enumerate(compressors):
        if not inputs:
            values, gates = exact[:, layer, 0].split(width, dim=-1)
            weights.append(LayerWeights(compressor))
        else:
            value, gate = (torch.randn((width, inputs), generator=draw) / inputs**0.5 for _ in range(2))
            values, gates = (exact[:, layer, 0] @ weight.double().T for weight in (value, gate))
            weights.append(LayerWeights(compressor, Linear(value), Linear(gate)))
        rows.append((values, gates))
    geometry = Geometry(16, 1, form.cell_bytes, offset=3)
    held = held_rows(cells[first:], geometry, form, first=5, start=first, tags={"exactness": "exact"})
    return Kept(held, tuple(weights), tuple(rows))


def allowed_row_error(exact: torch.Tensor, form: RowFormat) -> torch.Tensor:
    """How far rows may be off when they were computed in float32 and stored in a format, `[..., V]`."""
    parts, allowed = exact.split([part.count for part in form.parts], dim=-1), []
    for part, values in zip(form.parts, parts, strict=True):
        scale: torch.Tensor | float = 1.0
        if part.dtype.startswith("fp8"):
            # A power of two is less than twice as large as the exact scale.
            largest = values.unflatten(-1, (-1, form.group)).abs().amax(-1) * 2 / ROUNDING[part.dtype].largest
            scale = largest.repeat_interleave(form.group, -1)
        allowed.append(allowed_error(values, part.dtype, scale, _TERMS * (1 + float(values.abs().max()))))
    return torch.cat(allowed, dim=-1)


def _entries(
    ratio: int,
    size: int,
    rotary: int,
    first: int,
    to: int,
    form: RowFormat,
    rows: int,
    page: int,
    inputs: int = 0,
    layers: int = 1,
) -> Setup:
    overlap = ratio == 4 and first > 0
    kept = kept_inputs(ratio, size, rotary, first - (ratio if overlap else 0), to, inputs, layers)
    exact = torch.stack(
        [
            slow_entries(*own, weights.compressor)[first // ratio :]
            for own, weights in zip(kept.rows, kept.weights, strict=True)
        ],
        dim=1,
    )[:, :, None]
    geometry = Geometry(rows, 1, form.cell_bytes, block_bytes=page)
    return _setup(kept, "compressed_global", form, geometry, (first, to), _Wanted(exact.shape[0], None, exact))


def _state(ratio: int, size: int, length: int, rows: int, page: int) -> Setup:
    overlap = ratio == 4
    live = length % ratio + (ratio if overlap and length >= ratio else 0)
    kept = kept_inputs(ratio, size, 8, length - live, length)
    compressor = kept.weights[0].compressor
    width = compressor.width
    capacity = ratio - 1 + (ratio if overlap else 0)
    values = torch.zeros((capacity, 2 * width))
    values[:, width:] = -torch.inf
    for row in range(live):
        token = length - live + row
        values[row, :width] = kept.rows[0][0][token].float()
        values[row, width:] = kept.rows[0][1][token].float() + compressor.position_bias[token % ratio]
    form = plain_row("fp32", 2 * width)
    cells = encode(values, form)[:, None, None]
    geometry = Geometry(rows, 1, form.cell_bytes, block_bytes=page)
    return _setup(kept, "compressor_state", form, geometry, (length - live, length), _Wanted(capacity, cells, None))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the copy must hold: bytes, or values."""

    count: int
    cells: torch.Tensor | None
    exact: torch.Tensor | None


def _setup(kept: Kept, made: str, form: RowFormat, geometry: Geometry, span: tuple[int, int], wanted: _Wanted) -> Setup:
    target = empty_copy(geometry, form, wanted.count, layers=len(kept.weights), start=span[0])
    target = replace(target, tags={**COPY_TAGS, "compressor_version": "compressor of the copy"})
    request = replace(request_for("recompress", None, target), length=span[1], first=span[0], to=span[1])
    job = Job(None, target, {"layer_inputs": kept.held}, {"object": made, "weights": kept.weights})
    truth = {
        "start": span[0],
        "end": span[1],
        "bytes": wanted.count * len(kept.weights) * form.cell_bytes,
        "marks": frozenset({span[1]}),
        "exactness": "exact",
        **{name: target.tags[name] for name in ("form", "tier", "published", "pool_epoch", "compressor_version")},
    }
    allowed = None if wanted.exact is None else allowed_row_error(wanted.exact, form)
    return Setup(request, job, truth, wanted.cells, wanted.exact, allowed)
