"""Trials of `tail_fill`: keys and values of head sizes from 64 to 256, and latents of 576, in every format."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from hitproof.kernels.blocks import Geometry, Layout
from hitproof.kernels.jobs import Job
from hitproof.kernels.numbers import ROUNDING, RowFormat, decode, dtype_of, encode, plain_row
from hitproof.kernels.selftest.trial import COPY_TAGS, Setup, Trial, empty_copy, held_rows, request_for
from hitproof.kernels.tail_fill.projection import CachePath
from hitproof.kernels.tail_fill.slow import drawn_path, slow_row

__all__ = ["trials"]

INPUTS = 24


def trials() -> list[Trial]:
    """A window that lost its youngest rows, by head size, format and order; the oldest rows make room."""
    cases: list[tuple[str, Layout, int, int, int, bool, int]] = [
        # Format, order, heads, head size, rows a block, latent, tokens missing.
        ("bf16", "token_major", 2, 64, 16, False, 5),
        ("bf16", "head_major", 1, 256, 32, False, 1),
        ("bf16", "token_major", 1, 576, 64, True, 9),
        ("fp16", "head_major", 3, 80, 16, False, 17),
        ("fp16", "token_major", 1, 128, 256, False, 3),
        ("fp32", "token_major", 2, 96, 16, False, 8),
        ("fp32", "head_major", 1, 512, 128, True, 2),
    ]
    return [
        Trial(
            "tail_fill",
            f"{dtype} {layout} {rows} tokens a block, {heads} x {size}{', latent' * latent}, {missing} missing",
            dtype,
            layout,
            partial(_build, dtype, layout, heads, size, rows, latent, missing),
        )
        for dtype, layout, heads, size, rows, latent, missing in cases
    ]


def _build(dtype: str, layout: Layout, heads: int, size: int, rows: int, latent: bool, missing: int) -> Setup:
    start, first, end = 100, 103, 121
    to, layers = end + missing, 2
    draw = torch.Generator().manual_seed(missing)
    form, kept = plain_row(dtype, size), plain_row(dtype, INPUTS)
    paths = tuple(drawn_path(dtype_of(dtype), INPUTS, heads, size, latent=latent, seed=n) for n in range(layers))
    pools = layers * (1 if latent else 2)
    found = encode(torch.randn((end - start, pools, heads, size), generator=draw), form)
    held = held_rows(found, Geometry(16, heads, form.cell_bytes, offset=1), form, first=3, start=start)
    hidden = encode(torch.randn((missing + 6, layers, 1, INPUTS), generator=draw), kept)
    inputs = held_rows(hidden, Geometry(8, 1, kept.cell_bytes), kept, first=5, start=end - 4)
    geometry = Geometry(rows, heads, form.cell_bytes, layout, offset=32)
    geometry = replace(geometry, stride=-(-geometry.block_bytes // 16) * 16)
    target = empty_copy(geometry, form, to - first, layers=pools, start=first)
    new, allowed = _expected(decode(hidden, kept).double()[4 : 4 + missing, :, 0], paths, end, dtype)
    values = torch.cat((decode(found[first - start :], form).double(), new))
    allowed = torch.cat((torch.zeros((end - first, *allowed.shape[1:])), allowed))
    truth = {
        "start": first,
        "end": to,
        "position": to,
        "bytes": (to - first) * pools * heads * _cell_bytes(form),
        "write_sequence": 5,
        "committed_sequence": 5,
        **{name: COPY_TAGS[name] for name in ("published", "pool_epoch")},
    }
    request = request_for("tail_fill", held, target, start=start, end=end, write_sequence=4, committed_sequence=4)
    job = Job(held, target, {"layer_inputs": inputs}, {"paths": paths})
    return Setup(request, job, truth, None, values, allowed, cleared=True)


def _expected(
    hidden: torch.Tensor, paths: tuple[CachePath, ...], first: int, dtype: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """[T, L, H, D] of all pools, and how far each may be off: four roundings of the terms that it is made of."""
    rows, allowed = [], []
    for token, layers in enumerate(hidden.tolist()):
        made = [
            slow_row(row, first + token, path, which)
            for row, path in zip(layers, paths, strict=True)
            for which in (("key",) if path.value is None else ("key", "value"))
        ]
        near = 4 * (ROUNDING[dtype].relative + INPUTS * ROUNDING["fp32"].relative)
        rows.append([row for row, _ in made])
        allowed.append([near * size for _, size in made])
    values = torch.tensor(rows, dtype=torch.float64)
    return values, torch.tensor(allowed, dtype=torch.float64)[:, :, None, None].expand_as(values)


def _cell_bytes(form: RowFormat) -> int:
    return sum(part.count * ROUNDING[part.dtype].bytes for part in form.parts)
