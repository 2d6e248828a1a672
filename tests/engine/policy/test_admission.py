"""Short cuts of a decision under a policy are taken only where no plan is lost by them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.policy import PolicyEngine
from hitproof.engine.policy.plan_facts import plan_facts
from hitproof.engine.state import Resolved
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.condition import interpret
from tests.agreement.test_decide_agrees import random_state
from tests.engine.state_cases import SMALL, build_of, small_profile

POLICY = "longest_hit"


def policy_with(name: str, *edits: tuple[tuple[str | int, ...], object]) -> PolicyEngine:
    """A policy without admission rules, of an edited rulebook, on a small model."""
    source = read_source("mixed_attention")
    for path, value in ((("policies", POLICY, "admission"), []), *edits):
        source, _ = source.edited(path, value)
    model = small_profile(name)
    assert model is not None
    return PolicyEngine(bind_rulebook(resolve(source), model), POLICY)


def least_price(engine: PolicyEngine, state: Resolved) -> float:
    """The least price of all lengths, looked at one by one."""
    judge, inner = engine.engine.judge, engine.engine
    logical = inner.longest_match(state)
    prices = []
    for length in (*resumable_lengths(judge.groups, state, proposed_lengths(state)), 0):
        outcome = judge.outcome(state, judge.nothing(), length) if 0 < length <= logical else None
        if length > logical or (outcome is not None and not outcome.clean):
            continue
        prices.append(price_of(engine, state, length, outcome))
    return min(prices)


def price_of(engine: PolicyEngine, state: Resolved, length: int, outcome: Any) -> float:
    """What the policy minimises, by interpretation."""
    inner = engine.engine
    facts = plan_facts(state, length, outcome, inner.prefill(state, length), inner.prefill(state, 0))
    assert engine.policy.minimise is not None
    value = interpret(engine.policy.minimise, {**state.environment(), **facts})
    return float("inf") if value is None else float(value)


@pytest.mark.parametrize(
    ("minimise", "prefill"),
    [
        ("max(2 * plan.length * runtime.prefill_us_per_token, plan.prefill_us)", None),
        ("plan.prefill_us", "max(2 * length, request.length - length) * runtime.prefill_us_per_token"),
        ("plan.prefill_us - plan.host_bytes * runtime.host_us_per_byte", None),
        ("max(plan.wait_us + plan.recovery_us, runtime.compute_backlog_us) + plan.prefill_us", None),
    ],
)
def test_no_shape_of_price_loses_the_cheapest_length(minimise: str, prefill: str | None) -> None:
    """Prices that fall and rise again with the length, or fall with what is loaded, beside the shipped one."""
    edits: list[tuple[tuple[str | int, ...], object]] = [(("policies", POLICY, "minimise"), minimise)]
    if prefill is not None:
        edits.append((("prefill", "cost"), prefill))
    decided = 0
    for name in SMALL:
        engine = policy_with(name, *edits)
        for seed in range(30):
            state = random_state(engine.engine, Random(f"{name} {seed}"))
            request = state.request
            if any(getattr(request, one) is None for one in engine.bound.rulebook.door):
                continue
            if not engine.engine.can_recompute(state):
                continue
            usable = engine.decide(state, explain=False).usable
            judge = engine.engine.judge
            outcome = judge.outcome(state, judge.nothing(), usable) if usable else None
            assert (name, seed, least_price(engine, state)) == (name, seed, price_of(engine, state, usable, outcome))
            decided += usable > 0
    assert decided


def test_what_the_policy_does_not_read_is_not_kept() -> None:
    """A state under a shorter key is purged, unless the plan that is taken reads it."""
    build = build_of("stored", 129, 16)
    build.segment("kv", layout="old", marks=frozenset({64, 128}))
    build.segment("rec", end=64, marks=frozenset({64}), matched=128, filed=32)
    build.segment("other", end=64, marks=frozenset({64}), matched=128)
    answers = {
        name: PolicyEngine(build.bound, name).decide(build.state()) for name in ("longest_hit", "always_recompute")
    }
    assert {"longest_hit": 64, "always_recompute": 0} == {name: one.usable for name, one in answers.items()}
    assert {"longest_hit": "keep", "always_recompute": "purge"} == {
        name: one.dispositions["rec"] for name, one in answers.items()
    }


def test_what_a_waiting_request_wants_is_kept() -> None:
    """No room now: the plan that is waited for still finds what it reads."""
    build = build_of("stored", 129, 16)
    build.segment("kv", layout="old", marks=frozenset({64, 128}))
    build.segment("rec", end=64, marks=frozenset({64}), matched=128, filed=32)
    build.segment("other", end=64, marks=frozenset({64}), matched=128)
    build.runtime.used_blocks = build.runtime.capacity_blocks
    answer = PolicyEngine(build.bound, "longest_hit").decide(build.state())
    assert ("defer", "keep") == (answer.verdict, answer.dispositions["rec"])


def test_a_full_recompute_may_run_beside_other_work() -> None:
    """A rule over the third level decides it; the shipped ones leave it on the hot path."""
    build = build_of("homogeneous", 65, 16)
    assert "synchronous" == PolicyEngine(build.bound, "state_aware").decide(build.state()).execution
    busy = (("execution", "rebuild_when_time_allows", "when"), "plan.level == 3 and runtime.load_percent >= 80")
    engine = policy_with("homogeneous", (("policies", POLICY, "execution"), ["rebuild_when_time_allows"]), busy)
    for load, execution in ((79, "synchronous"), (80, "asynchronous")):
        build.runtime.load_percent = load
        assert (load, execution) == (load, engine.decide(build.state()).execution)
