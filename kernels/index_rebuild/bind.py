"""`index_rebuild` as the protocol calls it: keys for the entries that are held now."""

from __future__ import annotations

import torch

from hitproof.kernels.index_rebuild.reference import TokenIndexer, hadamard, token_keys
from hitproof.kernels.recompress.bind import copy_facts, entries_between
from hitproof.kernels.recompress.inputs import LayerWeights, kept_rows, require_layers
from hitproof.kernels.recompress.pages import write_rows
from hitproof.kernels.run import Done, Held, Job, RepairFault
from hitproof.spec.repair import RepairRequest

__all__ = ["ROTATIONS", "run"]

ROTATIONS = ("none", "hadamard")
"""Orthogonal matrices by which keys may be turned before they are stored."""


def run(request: RepairRequest, job: Job) -> Done:
    """Make index keys from kept inputs of their layers.

    `job.sources["layer_inputs"]` holds the kept rows; `job.sources["kv"]` the entries that the keys stand for, with
    `recorded` and `generation` among its tags. Parameters: `weights`, a `TokenIndexer` or `LayerWeights` a layer, and
    `rotation`, which is `none` or `hadamard`.
    """
    inputs: Held = job.source("layer_inputs")
    entries: Held = job.source("kv")
    target = job.copy()
    weights: tuple[TokenIndexer | LayerWeights, ...] = job.parameters["weights"]
    rotation = job.parameters.get("rotation", "none")
    if rotation not in ROTATIONS:
        raise RepairFault("failed", f"keys are turned by one of {', '.join(ROTATIONS)}, not {rotation!r}")
    require_layers(len(weights), inputs, target)
    if target.start != request.first:
        raise RepairFault("failed", f"the copy begins at token {target.start}, not at {request.first}")
    for layer, own in enumerate(weights):
        keys = _keys(request, inputs, layer, own)
        keys = hadamard(keys) if rotation == "hadamard" else keys
        if int(keys.shape[0]) != target.count or entries.count < target.count:
            made = f"{keys.shape[0]} keys for {entries.count} entries"
            raise RepairFault("failed", f"{made} do not go into a copy of {target.count}")
        write_rows(target.layers[layer], target.table, keys, target.form, target.first)
    of_entries = entries.told("recorded", "generation")
    told = target.told("index_config", "form", "tier", "offset", "published", "stride", "pool_epoch")
    measured, assigned = copy_facts(target, inputs, (request.first, request.to))
    return Done(
        measured,
        {**told, **assigned, "kv_content": of_entries["recorded"], "kv_generation": of_entries["generation"]},
    )


def _keys(request: RepairRequest, inputs: Held, layer: int, weights: TokenIndexer | LayerWeights) -> torch.Tensor:
    """One layer's keys, `[T, D]` or `[E, D]`."""
    if isinstance(weights, TokenIndexer):
        return token_keys(kept_rows(inputs, layer, request.first, request.to), weights, request.first)
    made = entries_between(lambda first, to: kept_rows(inputs, layer, first, to), weights, request.first, request.to)
    return made.entries
