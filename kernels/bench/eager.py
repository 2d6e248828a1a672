"""The same repairs as plain PyTorch without loops over blocks: what a framework would do that has no kernel for them.

Nothing is checked and nothing is read back, so these are no twins; a test compares what they write with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from hitproof.kernels.checksum.reference import GOLDEN, mix
from hitproof.kernels.index_rebuild import TokenIndexer, hadamard, token_keys
from hitproof.kernels.index_remap.reference import remapped
from hitproof.kernels.jobs import Held, Job
from hitproof.kernels.numbers import decode, dtype_of, encode
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.recompress.layers import entries_between
from hitproof.kernels.tail_fill.projection import rows_from_inputs
from hitproof.spec.repair import RepairRequest

__all__ = ["EAGER"]


def _rows(held: Held, layer: int, slots: torch.Tensor | None = None) -> torch.Tensor:
    """uint8 [T, H, C]: rows in order, or at any slots of the table."""
    pool = held.layers[layer]
    geometry = pool.geometry
    if slots is None:
        slots = torch.arange(held.first, held.first + held.count, device=held.table.device)
    found = pool.cells[held.table[slots // geometry.rows], slots % geometry.rows]
    return found.reshape(slots.numel(), geometry.heads, geometry.cell_bytes)


def _put(held: Held, layer: int, rows: torch.Tensor) -> None:
    """Write rows in order."""
    pool = held.layers[layer]
    geometry = pool.geometry
    slots = torch.arange(held.first, held.first + rows.shape[0], device=held.table.device)
    pool.cells[held.table[slots // geometry.rows], slots % geometry.rows] = rows.view(-1, *geometry.shape[1:])


def _clear(held: Held, layer: int) -> None:
    held.layers[layer].owned[held.table] = 0


def _share(held: Held, layer: int) -> torch.Tensor:
    """The sum of the shares of one layer's rows, as if there were no other layer."""
    rows = _rows(held, layer)
    count, heads, cell = rows.shape
    words = -(-cell // 8)
    padded = torch.nn.functional.pad(rows, (0, words * 8 - cell)).contiguous().view(torch.int64)
    places = torch.arange(1, count * heads * words + 1, device=rows.device).view(count, heads, words)
    return mix(padded ^ (places * (GOLDEN - 2**64))).sum()


def _checksum(request: RepairRequest, job: Job) -> None:
    held = job.own()
    for layer in range(len(held.layers)):
        _share(held, layer)


def _promote(request: RepairRequest, job: Job) -> None:
    held, target = job.row_by_row()
    for layer in range(len(held.layers)):
        _put(target, layer, _rows(held, layer))
        _share(target, layer)


def _relayout(request: RepairRequest, job: Job) -> None:
    held, target = job.row_by_row()
    for layer in range(len(held.layers)):
        _clear(target, layer)
        _put(target, layer, _rows(held, layer))
        _share(target, layer)


def _requantize(request: RepairRequest, job: Job) -> None:
    held, target = job.row_by_row()
    for layer in range(len(held.layers)):
        _put(target, layer, encode(decode(_rows(held, layer), held.form), target.form))
        _share(target, layer)


def _window_roll(request: RepairRequest, job: Job) -> None:
    """By position, in the source and in the copy; both have as many slots."""
    held, target = job.row_by_row()
    slots = torch.arange(held.count, device=held.table.device)
    for layer in range(len(held.layers)):
        _clear(target, layer)
        _put(target, layer, _rows(held, layer, slots))
        _share(target, layer)


def _index_remap(request: RepairRequest, job: Job) -> None:
    held, target = job.row_by_row()
    found, copy = job.source("self")
    result = remapped(found, job.source("kv"))
    copy.rows.copy_(result.rows)
    copy.positions.copy_(found.positions)
    for layer in range(len(held.layers)):
        _clear(target, layer)
        _put(target, layer, _rows(held, layer))
        _share(target, layer)


def _tail_fill(request: RepairRequest, job: Job) -> None:
    """Of layers whose rows serve as keys and values."""
    held, target, inputs = job.own(), job.copy(), job.source("layer_inputs")
    positions = torch.arange(inputs.start, inputs.start + inputs.count, device=target.table.device)
    kind = dtype_of(inputs.form.parts[0].dtype)
    for layer, path in enumerate(job.parameters["paths"]):
        hidden = decode(_rows(inputs, layer)[:, 0], inputs.form).to(kind)
        made = encode(rows_from_inputs(hidden, positions, path).key, target.form)
        _clear(target, layer)
        _put(target, layer, torch.cat((_rows(held, layer), made)))
        _share(target, layer)


def _entries(inputs: Held, layer: int, weights: LayerWeights, request: RepairRequest) -> torch.Tensor:
    kept = decode(_rows(inputs, layer)[:, 0], inputs.form)
    return entries_between(
        lambda first, to: kept[first - inputs.start : to - inputs.start], weights, request.first, request.to
    ).entries


def _recompress(request: RepairRequest, job: Job) -> None:
    target, inputs = job.copy(), job.source("layer_inputs")
    for layer, weights in enumerate(job.parameters["weights"]):
        _put(target, layer, encode(_entries(inputs, layer, weights, request), target.form).unsqueeze(1))
        _share(target, layer)


def _index_rebuild(request: RepairRequest, job: Job) -> None:
    target, inputs = job.copy(), job.source("layer_inputs")
    for layer, weights in enumerate(job.parameters["weights"]):
        if isinstance(weights, TokenIndexer):
            kept = decode(_rows(inputs, layer)[:, 0], inputs.form)
            keys = token_keys(kept, weights, request.first)
        else:
            keys = _entries(inputs, layer, weights, request)
        keys = hadamard(keys) if job.parameters["rotation"] == "hadamard" else keys
        _put(target, layer, encode(keys, target.form).unsqueeze(1))
        _share(target, layer)


EAGER: Mapping[str, Callable[[RepairRequest, Job], None]] = {
    "checksum": _checksum,
    "index_rebuild": _index_rebuild,
    "index_remap": _index_remap,
    "promote": _promote,
    "recompress": _recompress,
    "relayout": _relayout,
    "requantize": _requantize,
    "tail_fill": _tail_fill,
    "window_roll": _window_roll,
}
"""By the repair's name; each writes the copy of a job of `cases.py`."""
