"""The three arms of a row: cold, blind, validated; each answers the logits of the same tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hitproof.engine.observe.observer import Silent
from hitproof.engine.recovery import Recovered
from hitproof.engine.state import Resolved
from hitproof.integrations.transformers.oracle.rows import Blinded, Validated
from hitproof.integrations.transformers.oracle.stage import WANTED, Stage, forward
from hitproof.spec.decision import PlanStep
from hitproof.spec.errors import HitproofError
from hitproof.spec.facts import Value
from hitproof.spec.rulebook import LEVELS

__all__ = ["Serve", "blind_arm", "cold_arm", "error_of", "price_of", "validated_arm"]

Serve = Callable[[Any, Sequence[int], Mapping[str, Value]], Any]
"""Answers a prompt by a prefix cache; what `PrefixCache.prefill` answers."""


class _Watch(Silent):
    """Adds up what repairs cost, those in vain included."""

    def __init__(self) -> None:
        self.spent_us = 0.0

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """A recovery ended; a prompt may need more than one."""
        self.spent_us += price_of([taken.repair for taken in recovered.steps if taken.repair is not None])


def error_of(got: Any, cold: Any) -> float:
    """Largest difference of a logit as a share of the spread of the cold ones; infinite where one is no number."""
    error = float((got - cold).abs().max() / cold.std())
    return error if math.isfinite(error) else math.inf


def cold_arm(stage: Stage) -> Any:
    """[wanted, vocabulary]: the prompt in one pass, nothing reused."""
    return forward(stage.model, stage.asked, stage.cache.state.fresh())[-WANTED:]


def blind_arm(stage: Stage, cold: Any) -> Blinded:
    """Goes on behind what matches, as it lies; or behind the library's own cache, where the fault is in that."""
    tokens, reused = stage.asked, len(stage.shared)
    try:
        if stage.live is not None:
            logits = forward(stage.model, stage.wanted, stage.live)
        else:
            past, reused = stage.blind.find(tokens)
            logits = forward(stage.model, tokens[reused:], past)
    # State that the library or our own installing refuses is no wrong answer.
    except (HitproofError, IndexError, RuntimeError, ValueError) as error:
        return Blinded(None, f"{type(error).__name__}: {error}".split("\n")[0][:120], reused)
    return Blinded(error_of(logits[-WANTED:], cold), "", reused)


def validated_arm(stage: Stage, cold: Any, serve: Serve, state: Resolved) -> Validated:
    """Answers by the rules.

    Args:
        stage: What is stored.
        cold: Logits to compare with.
        serve: Answers the prompt.
        state: What is stored, for the price of what is not reused.
    """
    core = stage.manager._core
    watch, earlier = _Watch(), core.observer
    core.observer = watch
    try:
        served = serve(stage.cache, stage.asked, stage.facts)
    finally:
        core.observer = earlier
    decision, reused = served.answer.decision, served.usable
    plan = decision.plan if decision is not None and reused else ()
    level = max((step.level for step in plan), key=LEVELS.index, default="none") if reused else LEVELS[-1]
    return Validated(
        error=error_of(served.logits[-WANTED:], cold),
        verdict=served.answer.verdict,
        level=level,
        repairs=tuple(dict.fromkeys(step.repair for step in plan)),
        logical=served.logical,
        reused=reused,
        cost_us=stage.cache.engine.prefill(state, reused) + watch.spent_us,
        failed=() if decision is None else decision.failed,
    )


def price_of(steps: Sequence[PlanStep]) -> float:
    """Price of one recovery's repairs, in microseconds; what one forward pass makes together is paid once."""
    joint: dict[str, float] = {}
    alone = 0.0
    for step in steps:
        price = step.cost_us or 0.0
        if step.joint is None:
            alone += price
        else:
            joint[step.joint] = max(price, joint.get(step.joint, 0.0))
    return alone + sum(joint.values())
