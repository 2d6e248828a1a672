"""`index_rebuild` as the protocol calls it: keys for the entries that are held now."""

from __future__ import annotations

from hitproof.kernels.index_rebuild import launch, reference
from hitproof.kernels.index_rebuild.reference import ROTATIONS, TokenIndexer
from hitproof.kernels.jobs import Done, Held, Job, RepairFault
from hitproof.kernels.recompress.bind import copy_facts
from hitproof.kernels.recompress.inputs import LayerWeights, kept_from, require_layers
from hitproof.kernels.recompress.layers import require_windows
from hitproof.kernels.registry import pick
from hitproof.kernels.spans import Span
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
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
    of_tokens = pick(backend, reference.write_token_keys, launch.write_token_keys)
    of_windows = pick(backend, reference.write_entry_keys, launch.write_entry_keys)
    for own in weights:
        _require_places(request, own, entries, target)
    for layer, own in enumerate(weights):
        if isinstance(own, TokenIndexer):
            kept_from(inputs, request.first, request.to)
            end = inputs.start + inputs.count
            kept = Span(inputs.layers[layer], inputs.table, inputs.start, end, inputs.first)
            into = Span(target.layers[layer], target.table, request.first, request.to, target.first)
            of_tokens(kept, inputs.form, own, into, target.form, rotation)
        else:
            of_windows(inputs, layer, own, request.first, request.to, target, rotation)
    of_entries = entries.told("recorded", "generation")
    told = target.told("index_config", "form", "tier", "offset", "published", "stride", "pool_epoch")
    measured, assigned = copy_facts(target, inputs, (request.first, request.to), backend)
    return Done(
        measured,
        {**told, **assigned, "kv_content": of_entries["recorded"], "kv_generation": of_entries["generation"]},
    )


def _require_places(request: RepairRequest, weights: TokenIndexer | LayerWeights, entries: Held, target: Held) -> None:
    """A row of the copy for each key, and an entry for each.

    Raises:
        RepairFault: There is not.
    """
    made = request.to - request.first
    if isinstance(weights, LayerWeights):
        require_windows(request.first, request.to, weights.compressor.ratio)
        made //= weights.compressor.ratio
    if made != target.count or entries.count < target.count:
        raise RepairFault("failed", f"{made} keys for {entries.count} entries do not go into a copy of {target.count}")
