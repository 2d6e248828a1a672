"""`tail_fill` as the protocol calls it: every layer filled, then the whole copy measured."""

from __future__ import annotations

from hitproof.kernels.checksum.bind import measure
from hitproof.kernels.jobs import Done, Held, Job, RepairFault
from hitproof.kernels.registry import pick
from hitproof.kernels.spans import Span
from hitproof.kernels.tail_fill import launch, reference
from hitproof.kernels.tail_fill.projection import CachePath
from hitproof.kernels.tail_fill.reference import LayerRows
from hitproof.spec.facts import Value
from hitproof.spec.repair import RepairRequest

__all__ = ["run"]


def run(request: RepairRequest, job: Job, backend: str = "torch") -> Done:
    """Copy what is held and make the missing young rows of every layer.

    `job.sources["layer_inputs"]` is a `Held` with a pool a layer, of one head. `job.parameters["paths"]` has a
    `CachePath` a layer. The pools of the segment's own rows are keys, then values of the first layer, and so on; a path
    without values has one pool. The copy's tokens are [start, start + count) of `job.target`.
    """
    held, target = job.own(), job.copy()
    fill = pick(backend, reference.tail_fill, launch.tail_fill)
    inputs: Held = job.source("layer_inputs")
    paths: tuple[CachePath, ...] = tuple(job.parameters.get("paths", ()))
    wanted = sum(1 if path.value is None else 2 for path in paths)
    if not paths or {len(held.layers), len(target.layers)} != {wanted}:
        raise RepairFault("failed", f"{len(held.layers)} pools are not the rows of {len(paths)} layers")
    first, to = held.start + held.count, target.start + target.count
    if len(inputs.layers) != len(paths) or not (inputs.start <= first and to <= inputs.start + inputs.count):
        raise RepairFault("source_lost", f"not all inputs of {len(paths)} layers are kept from token {first} to {to}")
    place = size = 0
    for layer, path in enumerate(paths):
        found, into = _rows(held, place, path), _rows(target, place, path)
        filled = fill(found, _span(inputs, layer), inputs.form, path, into)
        place += 1 if path.value is None else 2
        size += filled.bytes
    taken, end = measure(target, backend), target.start + target.count
    measured: dict[str, Value] = {
        "address": target.address,
        "end": end,
        "bytes": size,
        "position": end,
        "measured": taken,
        "recorded": taken,
    }
    return Done(
        measured,
        {**target.told("offset", "published", "stride", "pool_epoch"), **_sequence(request), "start": target.start},
    )


def _sequence(request: RepairRequest) -> dict[str, Value]:
    """One write more, and it is committed; full caches count no writes."""
    before = request.facts.get("write_sequence")
    return {"write_sequence": before + 1, "committed_sequence": before + 1} if isinstance(before, int) else {}


def _rows(held: Held, place: int, path: CachePath) -> LayerRows:
    """The rows of the layer whose keys lie in pool `place`."""
    if path.value is None:
        return LayerRows(_span(held, place), held.form)
    return LayerRows(_span(held, place), held.form, _span(held, place + 1), held.form)


def _span(held: Held, place: int) -> Span:
    return Span(held.layers[place], held.table, held.start, held.start + held.count, held.first)
