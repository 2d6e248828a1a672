"""Runs the oracle: every fault on every model, valid controls beside them, a model a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import torch

from hitproof.engine import Engine, load
from hitproof.integrations.transformers.oracle.arms import Serve, blind_arm, cold_arm, validated_arm
from hitproof.integrations.transformers.oracle.best import best_exact, known_state
from hitproof.integrations.transformers.oracle.catalogue import faults_of
from hitproof.integrations.transformers.oracle.controls import controls
from hitproof.integrations.transformers.oracle.fault import Fault
from hitproof.integrations.transformers.oracle.rows import ModelTold, OracleReport, Row, Skipped, report_of
from hitproof.integrations.transformers.oracle.stage import NotHere, Stage
from hitproof.integrations.transformers.oracle.tolerance import calibrate
from hitproof.integrations.transformers.tiny import NAMES, TinyModel, tiny_model
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

__all__ = ["Plan", "run_model", "run_oracle", "served_by_rules"]

_FEWEST = 16
"""Lengths that are drawn at least to calibrate a model."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run.

    Args:
        models: Names of tiny models.
        faults: Ids of faults.
        seeds: How many seeds of weights and tokens.
        controls: How many valid requests a model.
    """

    models: tuple[str, ...]
    faults: tuple[str, ...]
    seeds: int = 2
    controls: int = 100

    @classmethod
    def of(cls, models: Sequence[str] | None, faults: Sequence[str] | None, seeds: int, controls: int) -> Plan:
        """A plan of names that exist; all of them where none are given.

        Raises:
            UsageError: There is no such model or fault.
        """
        for name in models or ():
            if name not in NAMES:
                raise UsageError("there is no such tiny model", got=name, expected=", ".join(NAMES))
        chosen = tuple(name for name in NAMES if not models or name in models)
        return cls(chosen, tuple(fault.id for fault in faults_of(faults)), seeds, controls)


def served_by_rules(cache: Any, tokens: Sequence[int], facts: Mapping[str, Value]) -> Any:
    """The shipped prefix cache's own answer."""
    return cache.prefill(list(tokens), facts=facts, keep=False)


def run_oracle(plan: Plan, processes: int, told: Callable[[str], None] = lambda _: None) -> OracleReport:
    """Run a plan.

    Args:
        plan: What is run.
        processes: How many models at a time; with one, in this process.
        told: Is told of each model that is done.
    """
    done: dict[str, ModelTold] = {}
    for one in _run_all(plan, min(processes, len(plan.models))):
        done[one.model] = one
        told(f"{one.model}: {len(one.rows)} rows and {one.controls} controls in {one.seconds:.0f} s")
    faults = faults_of(plan.faults)
    return report_of(
        [done[name] for name in plan.models],
        {fault.id: fault.unobservable for fault in faults if fault.unobservable},
        {fault.id: fault.title for fault in faults},
    )


def run_model(name: str, plan: Plan, serve: Serve = served_by_rules) -> ModelTold:
    """Do every fault to one model, and ask for what is valid.

    Args:
        name: The tiny model's.
        plan: What is run.
        serve: Answers prompts; another one than the shipped for controls of the oracle itself.
    """
    began = perf_counter()
    models = [tiny_model(name, seed=seed) for seed in range(plan.seeds)]
    engine = load(models[0].profile)
    tolerance = calibrate(models, max(_FEWEST, plan.controls // 2))
    rows: list[Row] = []
    skipped: dict[str, Skipped] = {}
    for fault in faults_of(plan.faults):
        for seed, tiny in enumerate(models):
            for inputs in (False, True) if fault.inputs else (False,):
                try:
                    rows.append(_row(tiny, fault, seed, tolerance.limit, serve, inputs=inputs, engine=engine))
                except NotHere as why:
                    skipped[fault.id] = Skipped(name, fault.id, str(why))
    told = controls(Stage(models[0], plan.seeds, shared=64, engine=engine), plan.controls, serve)
    return ModelTold(
        model=name,
        tolerance=tolerance.limit,
        calibrated=tolerance.worst,
        runs=tolerance.runs,
        controls=len(told),
        reusable=sum(one.reusable for one in told),
        reused=sum(one.reused for one in told),
        false_rejections=sum(one.reused < one.reusable for one in told),
        controls_outside=sum(not one.error <= tolerance.limit for one in told),
        always_recomputes=bool(told) and not any(one.reused for one in told),
        seconds=perf_counter() - began,
        rows=tuple(rows),
        skipped=tuple(skipped.values()),
    )


def _run_all(plan: Plan, processes: int) -> Iterator[ModelTold]:
    if processes <= 1:
        for name in plan.models:
            yield run_model(name, plan)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        for future in as_completed([pool.submit(run_model, name, plan) for name in plan.models]):
            yield future.result()


def _one_thread() -> None:
    torch.set_num_threads(1)


def _row(
    tiny: TinyModel, fault: Fault, seed: int, limit: float, serve: Serve, *, inputs: bool, engine: Engine | None = None
) -> Row:
    """One fault done to one model.

    Raises:
        NotHere: The model cannot have it.
    """
    stage = Stage(tiny, seed, shared=fault.shared + fault.longer * seed, inputs=inputs, engine=engine)
    fault.spoil(stage)
    cold = cold_arm(stage)
    blind = blind_arm(stage, cold)
    state = known_state(stage.cache, stage.prompt(stage.asked, stage.facts))
    best = best_exact(stage.cache, state)
    validated = validated_arm(stage, cold, serve, state)
    return Row(
        model=tiny.name,
        fault=fault.id,
        seed=seed,
        natural=fault.natural,
        inputs=inputs,
        observable=not fault.unobservable,
        tolerance=limit,
        blind=blind,
        blind_caught=blind.error is None or not blind.error <= limit,
        validated=validated,
        validated_inside=validated.error <= limit,
        best_us=best,
    )
