"""The oracle on real tiny models: blind reuse is wrong where a fault says so, validated reuse never is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

import torch

from hitproof.integrations.transformers.oracle.arms import cold_arm, error_of, price_of
from hitproof.integrations.transformers.oracle.blind import Blind
from hitproof.integrations.transformers.oracle.catalogue import FAULTS, faults_of
from hitproof.integrations.transformers.oracle.rows import ModelTold, Row, report_of
from hitproof.integrations.transformers.oracle.run import Plan, run_model, served_by_rules
from hitproof.integrations.transformers.oracle.stage import NotHere, Stage, forward
from hitproof.integrations.transformers.oracle.tolerance import calibrate
from hitproof.integrations.transformers.tiny import tiny_model
from hitproof.spec.decision import PlanStep
from hitproof.spec.errors import UsageError

MEASURED = {
    "gemma-3": ("stale_window",),
    "gpt-oss": ("stale_window",),
    "deepseek-v4": (
        "stale_window",
        "cropped_cache",
        "tail_buffer_dropped",
        "stale_overlap",
        "index_shifted",
        "other_scale",
    ),
    "deepseek-v3.2": ("index_shifted",),
    "nemotron-h": ("stale_recurrence", "rolled_back_recurrence"),
    "qwen3-next": ("stale_recurrence", "rolled_back_recurrence"),
}
"""Faults whose errors were measured on these models before this was written, each far outside of valid reuse."""
LEVELS = {"demoted": "in_place", "ring_written_on": "intra_layer", "torn_copy": "full_recompute"}
"""Faults of gpt-oss, and the level that the best plan has for them."""


@cache
def told(model: str) -> ModelTold:
    """One seed of the measured faults of a model, and nine valid requests, one of each way."""
    faults = {*MEASURED[model], *(LEVELS if model == "gpt-oss" else ())}
    return run_model(model, Plan((model,), tuple(faults), seeds=1, controls=9))


def rows(model: str, fault: str) -> list[Row]:
    """The rows of one fault."""
    return [row for row in told(model).rows if row.fault == fault]


@pytest.mark.parametrize(("model", "fault"), [(model, fault) for model, faults in MEASURED.items() for fault in faults])
def test_a_measured_fault_is_seen_and_kept_out(model: str, fault: str) -> None:
    """Blind reuse is outside of the tolerance or raises, validated reuse is within it; the fault must be observable."""
    found = rows(model, fault)
    assert found
    for row in found:
        assert row.observable
        assert row.blind_caught, row
        assert row.validated_inside, row
        assert row.dearer <= 1.05, row


@pytest.mark.parametrize("model", MEASURED)
def test_nothing_valid_is_rejected(model: str) -> None:
    """Of every way in which a prefix comes to be stored, all that can be reused is, within the tolerance."""
    one = told(model)
    assert (one.controls, one.false_rejections, one.controls_outside) == (9, 0, 0)
    assert one.reused == one.reusable
    assert not one.always_recomputes


@pytest.mark.parametrize(("fault", "level"), LEVELS.items())
def test_a_plan_of_each_level_answers_as_cold(fault: str, level: str) -> None:
    """A copy, a pass over the receptive field, and the whole prefill: each is chosen where it is best, and is right."""
    for row in rows("gpt-oss", fault):
        assert row.validated.level == level
        assert row.validated_inside
        assert row.validated.cost_us == pytest.approx(row.best_us, rel=0.01)


def test_an_engine_that_always_recomputes_shows() -> None:
    """Its logits are right in every row, and every valid control is a false rejection; the report is not good."""

    def recomputes(prefix: Any, tokens: Sequence[int], facts: Mapping[str, Any]) -> Any:
        return served_by_rules(prefix, tokens, {**facts, "salt": uuid4().hex})

    one = run_model("gpt-oss", Plan(("gpt-oss",), ("stale_window",), seeds=1, controls=9), serve=recomputes)
    assert all(row.validated_inside and not row.validated.reused for row in one.rows)
    assert one.always_recomputes
    assert one.false_rejections == 9
    assert not report_of([one], {}).good


def test_an_engine_that_asks_no_rule_shows() -> None:
    """The blind arm in the place of the validated one is outside, and the report counts it and is not good."""

    def asks_nothing(prefix: Any, tokens: Sequence[int], facts: Mapping[str, Any]) -> Any:
        blind = Blind(prefix)
        blind.note([*tokens[:130], *STORED[tuple(tokens[:130])]])
        past, length = blind.find(tokens)
        answer = SimpleNamespace(decision=None, verdict="reuse")
        logits = forward(prefix.model, tokens[length:], past)
        return SimpleNamespace(logits=logits, usable=length, logical=length, answer=answer)

    stage = Stage(tiny_model("gpt-oss"), 0, shared=130)
    STORED = {tuple(stage.shared): stage.other}
    one = run_model("gpt-oss", Plan(("gpt-oss",), ("stale_window",), seeds=1, controls=0), serve=asks_nothing)
    report = report_of([one], {})
    assert report.validated_outside == len(one.rows) == 1
    assert not report.good


def test_at_most_two_faults_are_declared_unobservable() -> None:
    """Each with its reason, and none of those that were measured."""
    declared = [fault for fault in FAULTS.values() if fault.unobservable]
    assert len(declared) <= 2
    assert {fault.id for fault in declared}.isdisjoint({name for names in MEASURED.values() for name in names})


def test_every_fault_has_a_source_and_a_sentence() -> None:
    """Ids are those of the catalogue, and nothing is left to guess."""
    for name, fault in FAULTS.items():
        assert (name, fault.title[-1]) == (fault.id, ".")
        assert fault.source


def test_the_tolerance_comes_from_valid_runs_and_parts_them_from_faults() -> None:
    """No valid run comes near it, and a window of other tokens is far beyond."""
    tiny = tiny_model("gemma-3")
    tolerance = calibrate([tiny])
    assert tolerance.limit >= 10 * tolerance.worst
    assert tolerance.runs >= 48
    stage = Stage(tiny, 5, shared=90)
    past = stage.run(stage.shared)
    cold = forward(tiny.model, stage.asked, stage.cache.state.fresh())[-len(stage.wanted) :]
    assert error_of(forward(tiny.model, stage.wanted, past), cold) <= tolerance.limit
    other = stage.run(stage.tokens(90))
    assert error_of(forward(tiny.model, stage.wanted, other), cold) > 100 * tolerance.limit


def test_what_is_no_number_is_outside() -> None:
    """A NaN compares with nothing, so it counts as endlessly far off."""
    cold = torch.tensor([[1.0, 2.0]])
    assert math.inf == error_of(torch.tensor([[math.nan, 2.0]]), cold)


def test_a_joint_pass_is_paid_once() -> None:
    """Of repairs that one forward pass makes together the dearest is paid; the others each."""
    steps = [
        PlanStep("a", 0, "warm_up", "forward", "intra_layer", "warm_up", 40.0),
        PlanStep("b", 0, "warm_up", "forward", "intra_layer", "warm_up", 70.0),
        PlanStep("c", 0, "verify", "checksum", "in_place", None, 10.0),
        PlanStep("d", 0, "verify", "checksum", "in_place", None, 10.0),
    ]
    assert 90.0 == price_of(steps)


def test_changed_weights_are_put_back() -> None:
    """A fault leaves the model as it found it, be it stopped by an error."""
    stage = Stage(tiny_model("gemma-3"), 0, shared=40)
    before = {name: tensor.clone() for name, tensor in stage.model.named_parameters()}
    with pytest.raises(RuntimeError), stage.otherwise(lambda name: "k_proj" in name, lambda tensor: 2 * tensor):
        assert any(not torch.equal(before[name], now) for name, now in stage.model.named_parameters())
        raise RuntimeError
    assert all(torch.equal(before[name], now) for name, now in stage.model.named_parameters())
    with pytest.raises(NotHere), stage.otherwise(lambda name: "compressor" in name, lambda tensor: tensor):
        pass


def test_unknown_names_are_bad_usage() -> None:
    """A model or fault that does not exist is told with those that do."""
    with pytest.raises(UsageError, match="no such fault"):
        faults_of(["stale_windows"])
    with pytest.raises(UsageError, match="no such tiny model"):
        Plan.of(["gemma-4"], None, 1, 0)


def test_inputs_that_ran_behind_another_compressor_are_not_rebuilt_from() -> None:
    """A version that changed by name alone: kept inputs of later layers are outputs of the old one, so no source."""
    tiny = tiny_model("deepseek-v4")
    stage = Stage(tiny, 0, shared=130, inputs=True)
    with stage.otherwise(lambda name: "compressor" in name and "inv_freq" not in name, lambda tensor: 1.3 * tensor):
        stage.store(stage.shared, {"compressor_version": "1"})
    served = served_by_rules(stage.cache, stage.asked, {"compressor_version": "2"})
    assert error_of(served.logits[-len(stage.wanted) :], cold_arm(stage)) <= calibrate([tiny]).limit
