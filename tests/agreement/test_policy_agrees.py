"""Deciding under a policy is taking the cheapest of all admitted plans, looked at one by one."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.policy import PolicyEngine
from hitproof.engine.policy.plan_facts import plan_facts
from hitproof.engine.state import Resolved
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import Decision
from tests.agreement.test_decide_agrees import random_state
from tests.engine.state_cases import SHIPPED, SMALL, engine_of

QUICK = ("verdict", "logical", "usable", "plan", "cost_us", "total_us", "execution", "promised", "admission")
POLICIES = tuple(load_rulebook("mixed_attention").policy.policies)


@cache
def policy_of(name: str, policy: str) -> PolicyEngine:
    """A policy on a model."""
    return PolicyEngine(engine_of(name).bound, policy)


def loaded(state: Resolved, random: Random) -> Resolved:
    """The same state in a system that is more or less busy."""
    runtime, request = state.runtime, state.request
    blocks = (request.length or 1) // (request.granularity or 1) + 1
    runtime.capacity_blocks = random.choice([blocks // 2, blocks, 2 * blocks, 10**6])
    runtime.used_blocks = random.choice([0, 0, blocks // 2, None])
    runtime.reserved_blocks = random.choice([0, 0, blocks])
    runtime.staging_bytes = random.choice([0, 10**6, 2**40])
    runtime.host_up = random.choice([True, True, True, False, None])
    runtime.host_backlog_us = random.choice([0.0, 0.0, 1e4, 1e7])
    runtime.compute_backlog_us = random.choice([0.0, 1e4])
    runtime.load_percent = random.choice([0, 90])
    request.budget_us = random.choice([1.0, 1e5, 1e9])
    request.waited_us = random.choice([0.0, 1e6])
    request.answer_blocks = random.choice([0, 3])
    return state


def by_enumeration(engine: PolicyEngine, state: Resolved, logical: int) -> tuple[str, int, float]:
    """Verdict class, length and price of the best admitted plan: every candidate, every rule, by interpretation."""
    policy, rules = engine.policy, engine.bound.rulebook.policy
    judge, recompute = engine.engine.judge, engine.engine.prefill(state, 0)
    found: list[tuple[float, int]] = []
    fates: dict[int, list[str]] = {}
    prices: dict[int, float] = {}
    computes = engine.engine.can_recompute(state)
    lengths = [one for one in resumable_lengths(judge.groups, state, proposed_lengths(state)) if one <= logical]
    for length in (*lengths, 0):
        outcome = judge.outcome(state, judge.nothing(), length) if length else None
        if outcome is not None and not outcome.clean:
            continue
        facts: dict[str, Any] = {
            **state.environment(),
            **plan_facts(state, length, outcome, engine.engine.prefill(state, length), recompute),
        }
        fates[length] = [
            rules.admission[name].otherwise
            for name in policy.admission
            if interpret(rules.admission[name].require, facts) is not True
        ]
        if policy.minimise is not None:
            price = interpret(policy.minimise, facts)
        else:
            parts = (facts["plan.recovery_us"], facts["plan.prefill_us"])
            price = None if None in parts else sum(parts)
        prices[length] = float("inf") if price is None else price
        if not fates[length] and (length or computes):
            found.append((prices[length], -length))
    if not found:
        stands = fates[0]
        if not computes:
            # Nothing can be computed, so the fate of the longest plan decides.
            stands = fates[min((one for one in prices if one), key=lambda one: (prices[one], -one), default=0)]
            stands = stands if any(prices) else []
        return ("defer" if set(stands) == {"defer"} else "refuse"), 0, 0.0
    price, length = min(found)
    return "admitted", -length, price


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", (*SHIPPED, *SMALL))
def test_a_policy_takes_the_cheapest_admitted_plan(name: str, policy: str) -> None:
    """Random states in idle and busy systems: one pass with its short cuts finds what enumeration finds."""
    engine = policy_of(name, policy)
    for seed in range(25):
        random = Random(f"{name} {policy} {seed}")
        state = loaded(random_state(engine.engine, random), random)
        decision = engine.decide(state)
        quick = engine.decide(state, explain=False)
        assert [getattr(decision, name) for name in QUICK] == [getattr(quick, name) for name in QUICK]
        if any(getattr(state.request, name) is None for name in engine.bound.rulebook.door):
            continue
        kind, length, _ = by_enumeration(engine, state, engine.engine.decide(state).logical)
        assert (seed, kind, length) == (seed, _kind(decision), decision.usable)


def test_the_comparison_is_not_vacuous() -> None:
    """The sample meets waiting, turning away, clamping, both executions and every admission rule broken."""
    seen: Counter[str] = Counter()
    for seed in range(600):
        random = Random(seed)
        engine = policy_of(random.choice((*SHIPPED, *SMALL)), "state_aware")
        decision = engine.decide(loaded(random_state(engine.engine, random), random))
        seen[decision.verdict] += 1
        seen[decision.execution] += bool(decision.plan)
        seen["clamped by a rule"] += bool(decision.admission and decision.usable)
        seen.update(reason.rule for reason in decision.admission)
    wanted = {"defer", "refuse", "repair", "reuse", "synchronous", "asynchronous", "clamped by a rule"}
    wanted |= {
        f"admission/{name}" for name in load_rulebook("mixed_attention").policy.policies["state_aware"].admission
    }
    assert set() == {name for name in wanted if not seen[name]}


def _kind(decision: Decision) -> str:
    return decision.verdict if decision.verdict in ("defer", "refuse") else "admitted"
