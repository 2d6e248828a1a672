"""Trials of `index_rebuild`: keys of tokens and of entries, in eight bits and in bfloat16, turned and not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from hitproof.kernels.blocks import Geometry
from hitproof.kernels.index_rebuild.reference import TokenIndexer
from hitproof.kernels.index_rebuild.slow import drawn_indexer, slow_hadamard, slow_keys
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.numbers import V4_INDEX_ROW, V4_ROW, V32_INDEX_ROW, RowFormat, decode, encode, plain_row
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.slow import slow_entries
from hitproof.kernels.recompress.trial import allowed_row_error, kept_inputs
from hitproof.kernels.selftest.trial import COPY_TAGS, Setup, Trial, empty_copy, held_rows, request_for

__all__ = ["trials"]


def trials() -> list[Trial]:
    """Keys of every token (DeepSeek-V3.2) and of entries of ratio 4 (DeepSeek-V4)."""
    cases: list[tuple[str, str, Callable[[], Setup]]] = [
        ("keys of tokens", "bf16", partial(_of_tokens, 24, 0, 17, plain_row("bf16", 24), 16, 0, 2)),
        ("V3.2 keys of tokens", "fp8_e4m3", partial(_of_tokens, 128, 0, 70, V32_INDEX_ROW, 64, 8_640)),
        ("keys of tokens from token 100", "bf16", partial(_of_tokens, 64, 100, 133, plain_row("bf16", 64), 16, 0)),
        ("V4 keys of entries", "fp8_e4m3", partial(_of_entries, 128, 0, 276, V4_INDEX_ROW, 64, 8_640, 40)),
        ("keys of entries from token 12", "bf16", partial(_of_entries, 32, 12, 100, plain_row("bf16", 32), 16, 0, 0)),
        (
            "V4 keys of entries, turned",
            "fp8_e4m3",
            partial(_of_entries, 128, 0, 40, V4_INDEX_ROW, 64, 8_640, 0, "hadamard"),
        ),
    ]
    return [Trial("index_rebuild", name, dtype, "token_major", build) for name, dtype, build in cases]


def _of_tokens(size: int, first: int, to: int, form: RowFormat, rows: int, page: int, layers: int = 1) -> Setup:
    inputs = 40
    weights = tuple(drawn_indexer(inputs, size, size // 2, seed) for seed in range(layers))
    kept = plain_row("bf16", inputs)
    draw = torch.Generator().manual_seed(to)
    cells = encode(torch.randn((to - first, layers, 1, inputs), generator=draw), kept)
    values = decode(cells, kept)
    exact = [slow_keys(values[:, layer, 0], weights[layer], first) for layer in range(layers)]
    held = held_rows(cells, Geometry(16, 1, kept.cell_bytes), kept, first=2, start=first, tags={"exactness": "exact"})
    return _setup(held, weights, exact, form, Geometry(rows, 1, form.cell_bytes, block_bytes=page), (first, to))


def _of_entries(
    size: int, first: int, to: int, form: RowFormat, rows: int, page: int, inputs: int, rotation: str = "none"
) -> Setup:
    kept = kept_inputs(4, size, 8, max(0, first - 4), to, inputs, layers=2)
    exact = [
        slow_entries(*own, weights.compressor)[first // 4 :]
        for own, weights in zip(kept.rows, kept.weights, strict=True)
    ]
    if rotation == "hadamard":
        exact = [slow_hadamard(keys) for keys in exact]
    geometry = Geometry(rows, 1, form.cell_bytes, block_bytes=page)
    return _setup(kept.held, kept.weights, exact, form, geometry, (first, to), rotation)


def _setup(
    held: Held,
    weights: tuple[TokenIndexer, ...] | tuple[LayerWeights, ...],
    exact: list[torch.Tensor],
    form: RowFormat,
    geometry: Geometry,
    span: tuple[int, int],
    rotation: str = "none",
) -> Setup:
    layers, count = len(exact), int(exact[0].shape[0])
    target = empty_copy(geometry, form, count, layers=layers, start=span[0])
    target = replace(target, tags={**COPY_TAGS, "index_config": "indexer of the request"})
    entries = held_rows(
        torch.zeros((count, layers, 1, V4_ROW.cell_bytes), dtype=torch.uint8),
        Geometry(64, 1, V4_ROW.cell_bytes),
        V4_ROW,
        start=span[0],
        tags={"recorded": "fingerprint of the entries", "generation": 5},
    )
    job = Job(None, target, {"layer_inputs": held, "kv": entries}, {"weights": weights, "rotation": rotation})
    truth = {
        "start": span[0],
        "end": span[1],
        "bytes": count * layers * form.cell_bytes,
        "exactness": "exact",
        "kv_content": "fingerprint of the entries",
        "kv_generation": 5,
        **{name: target.tags[name] for name in ("form", "tier", "published", "pool_epoch", "index_config")},
    }
    values = torch.stack(exact, dim=1)[:, :, None]
    request = replace(request_for("index_rebuild", None, target), length=span[1], first=span[0], to=span[1])
    return Setup(request, job, truth, None, values, allowed_row_error(values, form))
