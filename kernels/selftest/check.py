"""Whether a repair kept its contract in a trial: facts, rows, sources, and bytes that are none of its business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from hitproof.kernels.jobs import Done, Held, Job, RepairFault
from hitproof.kernels.numbers import decode
from hitproof.kernels.run import run_repair
from hitproof.kernels.selftest.slow import slow_fingerprint
from hitproof.kernels.selftest.trial import Setup, Trial, read_rows, writable
from hitproof.spec.errors import TensorError
from hitproof.spec.rulebook import Repair

__all__ = ["Failure", "check_sources", "check_trial"]

_PLACE = ("address", "offset", "stride")
_PRINT = ("measured", "recorded")


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong, and which entry of the declaration it is about, if any."""

    text: str
    about: str = ""


def check_trial(trial: Trial, declared: Repair, backend: str = "torch") -> list[Failure]:
    """Run a repair once and look at everything that its declaration promises.

    Returns:
        What is wrong; empty where the contract was kept.
    """
    setup = trial.build()
    before = _images(setup.job)
    try:
        done = run_repair(setup.request, setup.job, backend)
    except (RepairFault, TensorError) as fault:
        return [Failure(f"did not run: {fault}")]
    found = [
        *_names(done, declared),
        *_truths(done, setup, declared),
        *_rows(setup),
        *_elsewhere(setup, before, declared),
    ]
    if trial.dtype not in declared.dtypes:
        found.append(Failure(f"writes {trial.dtype}, which is not declared", "dtypes"))
    if trial.layout not in declared.layouts:
        found.append(Failure(f"writes {trial.layout}, which is not declared", "layouts"))
    return found


def check_sources(trial: Trial, declared: Repair, backend: str = "torch") -> list[Failure]:
    """Run a repair with exactly what it is declared to consume, and with each of these gone.

    With them it must be done; without any one of them the outcome must be `source_lost`, and nothing written.
    """
    found: list[Failure] = []
    for names in declared.consumes:
        status = _with_only(trial, frozenset(names), backend)
        if status != "done":
            found.append(Failure(f"from [{', '.join(names)}] alone: {status}", "consumes"))
        for gone in names:
            status = _with_only(trial, frozenset(names) - {gone}, backend)
            if not status.startswith("source_lost"):
                found.append(Failure(f"without {gone}: {status}, not source_lost", "consumes"))
    return found


def _with_only(trial: Trial, names: frozenset[str], backend: str) -> str:
    setup = trial.build()
    job = setup.job
    kept: Mapping[str, Any] = {name: source for name, source in job.sources.items() if name in names}
    job = replace(job, sources=kept, held=job.held if "self" in names else None)
    before = _images(job)
    try:
        run_repair(setup.request, job, backend)
    except RepairFault as fault:
        written = any(not torch.equal(old, new) for old, new in zip(before, _images(job), strict=True))
        return f"{fault.status}{' after writing' if written else ''}: {fault}"
    return "done"


def _names(done: Done, declared: Repair) -> Iterator[Failure]:
    for kind, told in (("measured", done.measured), ("assigned", done.assigned)):
        names = {name for name, how in declared.establishes.items() if how == kind}
        for name in sorted(set(told) - names):
            yield Failure(f"{name} is {kind}, and not declared so", name)
        for name in sorted(names - set(told)):
            yield Failure(f"{name} is declared {kind}, and not told", name)


def _truths(done: Done, setup: Setup, declared: Repair) -> Iterator[Failure]:
    target = setup.job.target
    known = dict(setup.truth)
    place = target if target is not None else setup.job.held
    if place is not None:
        geometry = place.layers[0].geometry
        begin = geometry.offset + int(place.table[0]) * geometry.stride if place.count else 0
        known |= {"address": (place.base or 0) + begin, "stride": geometry.stride}
        known |= {"offset": place.first * (geometry.pitch if geometry.layout != "value_major" else geometry.item_bytes)}
        known |= dict.fromkeys(_PRINT, slow_fingerprint([read_rows(place, n) for n in range(len(place.layers))]))
    for name, value in {**done.measured, **done.assigned}.items():
        if name not in known:
            yield Failure(f"{name} was told, and the trial does not know it", name)
        elif known[name] != value:
            yield Failure(f"{name} is {known[name]!r}, and {value!r} was told", name)
    if target is not None and declared.writes == "new_block":
        yield from _aligned(target, declared.alignment)


def _aligned(target: Held, alignment: int) -> Iterator[Failure]:
    geometry = target.layers[0].geometry
    for name, number in (("base", target.address + target.offset), ("stride", geometry.stride)):
        if number % alignment:
            yield Failure(f"the trial's own {name} {number} is no multiple of {alignment}", "alignment")


def _rows(setup: Setup) -> Iterator[Failure]:
    target = setup.job.target
    if target is None:
        return
    for layer in range(len(target.layers)):
        rows = read_rows(target, layer)
        if setup.rows is not None and not torch.equal(rows, setup.rows[:, layer]):
            yield Failure(f"layer {layer}: {int((rows != setup.rows[:, layer]).sum())} bytes of rows are wrong")
        if setup.values is not None and setup.allowed is not None:
            off = (decode(rows, target.form, target.scale).double() - setup.values[:, layer]).abs()
            # Written so that a NaN is wrong too.
            wrong = ~(off <= setup.allowed[:, layer])
            if bool(wrong.any()):
                yield Failure(f"layer {layer}: {int(wrong.sum())} values are off, by up to {float(off.max()):.3g}")


def _elsewhere(setup: Setup, before: list[torch.Tensor], declared: Repair) -> Iterator[Failure]:
    target = setup.job.target if declared.writes != "nothing" else None
    after = _images(setup.job)
    own = {} if target is None else {id(pool.buffer): pool for pool in target.layers}
    for old, new, buffer in zip(before, after, _buffers(setup.job), strict=True):
        changed = old != new
        if id(buffer) in own and target is not None:
            rows, blocks = writable(target, own[id(buffer)])
            beyond = changed & ~(blocks if setup.cleared else rows)
            if setup.cleared and bool((new[blocks & ~rows] != 0).any()):
                yield Failure("the rest of the copy's blocks is not zero")
        else:
            beyond = changed
        if bool(beyond.any()):
            yield Failure(f"{int(beyond.sum())} bytes changed that are none of its business", "writes")


def _images(job: Job) -> list[torch.Tensor]:
    return [buffer.clone() for buffer in _buffers(job)]


def _buffers(job: Job) -> list[torch.Tensor]:
    places = [job.held, job.target, *job.sources.values()]
    return [pool.buffer for place in places if isinstance(place, Held) for pool in place.layers]
