"""Repairs from kept inputs say what is missing, write nothing then, and pass on what they cannot know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hitproof.kernels.jobs import Held, RepairFault  # noqa: E402
from hitproof.kernels.recompress.inputs import LayerWeights, values_and_gates  # noqa: E402
from hitproof.kernels.recompress.slow import drawn_compressor  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.selftest import Setup, trials_of  # noqa: E402
from hitproof.kernels.selftest.trial import read_rows  # noqa: E402


def setup_of(repair: str, name: str) -> Setup:
    """A trial by its name, made anew."""
    return next(trial for trial in trials_of(repair) if name == trial.name).build()


CASES = [
    ("recompress", "ratio 4 from token 8"),
    ("recompress", "V4 state of ratio 4"),
    ("index_rebuild", "keys of tokens"),
    ("index_rebuild", "keys of entries from token 12"),
]


def outcome(setup: Setup, **changed: Any) -> tuple[str, bool]:
    """How a repair with other kept inputs ends, and whether it wrote."""
    sources = {**setup.job.sources, "layer_inputs": replace(setup.job.sources["layer_inputs"], **changed)}
    target = setup.job.target
    assert target is not None
    before = [pool.buffer.clone() for pool in target.layers]
    status = "done"
    try:
        run_repair(setup.request, replace(setup.job, sources=sources))
    except RepairFault as fault:
        status = fault.status
    same = all(torch.equal(old, pool.buffer) for old, pool in zip(before, target.layers, strict=True))
    return status, not same


@pytest.mark.parametrize(("repair", "name"), CASES)
def test_inputs_that_are_not_kept_are_a_lost_source(repair: str, name: str) -> None:
    """One token short in front, one at the end, or a layer: the source is lost, and nothing is written."""
    setup = setup_of(repair, name)
    inputs: Held = setup.job.sources["layer_inputs"]
    assert ("source_lost", False) == outcome(setup, start=inputs.start + 1, count=inputs.count - 1, first=6)
    assert ("source_lost", False) == outcome(setup, count=inputs.count - 1)
    assert ("source_lost", False) == outcome(setup, layers=inputs.layers[1:])
    assert ("done", True) == outcome(setup)


def test_entries_from_amid_read_the_window_before_them() -> None:
    """With overlap the inputs of one more window are a source, though no entry of the copy stands for them."""
    setup = setup_of("recompress", "ratio 4 from token 8")
    inputs: Held = setup.job.sources["layer_inputs"]
    assert 4 == inputs.start < setup.request.first
    assert ("source_lost", False) == outcome(setup, start=8, count=inputs.count - 4, first=9)


@pytest.mark.parametrize(("repair", "name"), CASES)
def test_what_is_made_of_approximate_inputs_is_approximate(repair: str, name: str) -> None:
    """Exactness is passed on from the inputs, and inputs that do not tell are no source."""
    setup = setup_of(repair, name)
    inputs: Held = setup.job.sources["layer_inputs"]
    for exactness in ("exact", "approximate"):
        changed = {**setup.job.sources, "layer_inputs": replace(inputs, tags={"exactness": exactness})}
        assert exactness == run_repair(setup.request, replace(setup.job, sources=changed)).assigned["exactness"]
    silent = {**setup.job.sources, "layer_inputs": replace(inputs, tags={})}
    with pytest.raises(RepairFault):
        run_repair(setup.request, replace(setup.job, sources=silent))


@pytest.mark.parametrize(("repair", "name"), CASES)
@pytest.mark.parametrize("wrong", ["count", "start", "layers", "span"])
def test_a_copy_of_another_extent_fails(repair: str, name: str, wrong: str) -> None:
    """A copy of other rows, tokens or layers than are made is a failure, not a copy that is partly right."""
    setup = setup_of(repair, name)
    job, request = setup.job, setup.request
    target = job.target
    assert target is not None
    if wrong == "count":
        job = replace(job, target=replace(target, count=target.count - 1))
    elif wrong == "start":
        job = replace(job, target=replace(target, start=target.start + 4))
    elif wrong == "layers":
        job = replace(job, target=replace(target, layers=(*target.layers, target.layers[0])))
    else:
        request = replace(request, first=request.first + 1)
    with pytest.raises(RepairFault) as caught:
        run_repair(request, job)
    assert "failed" == caught.value.status


@pytest.mark.parametrize(
    ("repair", "name", "tokens"),
    [
        ("recompress", "ratio 4 from token 8", 4),
        ("recompress", "ratio 128 from token 128", 128),
        ("index_rebuild", "keys of tokens", 1),
        ("index_rebuild", "keys of entries from token 12", 4),
    ],
)
def test_a_later_part_of_what_is_kept_makes_the_same_rows(repair: str, name: str, tokens: int) -> None:
    """Asked for all but the first row, a repair reads the kept inputs from there and writes the same bytes."""
    setup, again = setup_of(repair, name), setup_of(repair, name)
    run_repair(setup.request, setup.job)
    target = again.job.target
    assert target is not None
    later = replace(target, start=target.start + tokens, count=target.count - 1)
    run_repair(replace(again.request, first=again.request.first + tokens), replace(again.job, target=later))
    assert setup.job.target is not None
    for layer in range(len(target.layers)):
        assert torch.equal(read_rows(setup.job.target, layer)[1:], read_rows(later, layer))


def test_keys_without_entries_fail() -> None:
    """There are no keys for entries that are not held."""
    setup = setup_of("index_rebuild", "keys of tokens")
    entries: Held = setup.job.sources["kv"]
    fewer = {**setup.job.sources, "kv": replace(entries, count=entries.count - 1)}
    with pytest.raises(RepairFault, match="entries"):
        run_repair(setup.request, replace(setup.job, sources=fewer))


@pytest.mark.parametrize(
    ("repair", "name", "parameter"),
    [("recompress", "V4 state of ratio 4", "object"), ("index_rebuild", "keys of tokens", "rotation")],
)
def test_what_a_repair_cannot_make_fails(repair: str, name: str, parameter: str) -> None:
    """An object or a rotation that the repair does not know is a failed repair."""
    setup = setup_of(repair, name)
    job = replace(setup.job, parameters={**setup.job.parameters, parameter: "another"})
    with pytest.raises(RepairFault, match="another"):
        run_repair(setup.request, job)


def test_rows_of_another_width_are_no_projections() -> None:
    """Where projections are kept, a row holds values and gates, and no other row passes for one."""
    weights = LayerWeights(drawn_compressor(4, 12, 4, overlap=True))
    rows = torch.arange(96.0).reshape(2, 48)
    values, gates = values_and_gates(rows, weights)
    assert torch.equal(rows, torch.cat([values, gates], dim=-1))
    with pytest.raises(RepairFault):
        values_and_gates(rows[:, :-2], weights)
