"""The plan that is chosen, against every other plan that there is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from hitproof.engine.decide import Engine
from hitproof.engine.plain import declared_price, plain_decide
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.decision import Decision
from hitproof.spec.price import UNKNOWN_PRICE, microseconds
from hitproof.spec.rulebook import LEVELS, ORDER
from tests.agreement.all_plans import Plan, TooManyPlans, all_plans, longest_match, walk
from tests.agreement.judged_states import poisoned
from tests.engine.state_cases import SMALL, Build, build_of, engine_of, random_build, small_profile

STATES = int(os.environ.get("HITPROOF_JUDGED_STATES", "800"))
"""How many states are judged; more where the environment asks for more."""

MOST_PLANS = 2000
"""A state with more plans is left out, and counted."""


def steps(decision: Decision) -> list[str]:
    """`group/option` of each step."""
    return [f"{step.group}/{step.option}" for step in decision.plan]


def best_of(build: Build, most: int = MOST_PLANS) -> list[Plan]:
    """The plans that no other one is cheaper than."""
    plans = all_plans(build.bound, build.state(), most)
    least = min(plan.price for plan in plans)
    return [plan for plan in plans if plan.price == least]


def test_no_plan_of_all_is_cheaper_or_unsound(record_property: Callable[[str, object], None]) -> None:
    """Over poisoned states of every model: the chosen plan ends well step by step, and costs what the best one costs.

    The best plan is found by trying every sequence of options on every piece at every length. Every recovery level is
    the best somewhere, and no other one as good.
    """
    counts: Counter[str] = Counter()
    dearer: list[tuple[int, str, float, float]] = []
    for seed, build in poisoned(0, STATES):
        state, decision = build.state(), build.engine.decide(build.state())
        assert longest_match(build.bound, state) == decision.logical, seed
        assert [] == (walk(build.bound, state, decision) if decision.usable else []), seed
        try:
            best = best_of(build)
        except TooManyPlans:
            counts["with too many plans"] += 1
            continue
        counts["states"] += 1
        counts["of several steps"] += len(decision.plan) > 1
        if microseconds(best[0].price) != decision.total_us:
            dearer.append((seed, build.bound.profile.profile, decision.total_us, microseconds(best[0].price)))
        # Where nothing matched there is nothing to recover from.
        levels = {plan.level for plan in best} if decision.logical and best[0].price < UNKNOWN_PRICE else set()
        if len(levels) == 1:
            counts[f"{levels.pop() or 'reuse'} is best"] += 1
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    record_property("plans judged", f"{told}; cheapest {counts['states'] - len(dearer)} of {counts['states']}")
    assert [] == dearer
    assert set() == {level for level in LEVELS if not counts[f"{level} is best"]}
    assert counts["of several steps"] > counts["states"] // 50
    assert counts["with too many plans"] < STATES // 100


def test_what_is_cheapest_for_one_group_may_be_dear_for_its_reader() -> None:
    """Entries made anew have another fingerprint, so their index is made anew too; brought back, it is only remapped.

    Making them anew is cheaper by itself. Which way is chosen for a peer thus changes what its reader must pay, and
    the two are chosen together.
    """
    build = build_of("pooled", 65, 64).all()
    (entries,) = build.pieces["entries"]
    entries.form, entries.tier = "demoted", "host"
    build.runtime.layer_us_per_token = 0.2
    make_anew = 64 * 4 * build.runtime.layer_us_per_token
    bring_back = 1.1 * make_anew
    build.runtime.host_us_per_byte = bring_back / entries.bytes
    decision = build.engine.decide(build.state())
    assert ["entries/promote_from_host", "index/remap"] == steps(decision)
    for_each_by_itself = [("entries", None, "rebuild_entries"), ("index", None, "rebuild_keys")]
    price = declared_price(build.bound, build.state(), 64, for_each_by_itself)
    assert isinstance(price, float)
    assert decision.total_us < price


def test_who_may_join_a_repair_that_is_paid_anyway_does() -> None:
    """The window needs the warm-up; the compressor state, cheap to bring back by itself, then costs nothing more."""
    build = build_of("deepseek-v4-flash", 16385, 16384)
    build.all(but=["layer_inputs", "window"])
    (rows,) = build.pieces["csa_state"]
    rows.form, rows.tier = "demoted", "host"
    rows_alone = rows.bytes * build.runtime.host_us_per_byte + build.runtime.launch_us
    window, longer = 5461 * 40.0, 5469 * 40.0
    assert rows_alone < longer - window
    assert ["window/warm_up", "csa_state/promote_from_host"] == sorted(steps(build.engine.decide(build.state())))[::-1]
    build.runtime.host_us_per_byte = 1.0
    decision = build.engine.decide(build.state())
    assert {"window/warm_up", "csa_state/warm_up"} == set(steps(decision))
    assert longer == decision.cost_us


def test_two_cheap_repairs_yield_to_one_that_does_both() -> None:
    """A copy from the host is cheap and mends something; the rebuild that mends everything makes it superfluous."""
    build = build_of("pooled", 65, 64).all()
    (entries,) = build.pieces["entries"]
    entries.form, entries.tier, entries.compressor_version = "demoted", "host", "old"
    decision = build.engine.decide(build.state())
    assert ["rebuild_entries"] == [step.option for step in decision.plan if step.group == "entries"]
    assert microseconds(best_of(build)[0].price) == decision.total_us


@pytest.mark.parametrize(
    "order",
    [ORDER[::-1], ("longer_length", "price", "lower_level", "fewer_steps", "option_id"), (*ORDER[2:], *ORDER[:2])],
)
def test_any_order_is_followed(order: tuple[str, ...]) -> None:
    """Under orders that do not put the price first, the engine and its plain twin still choose alike."""
    source, _ = read_source("mixed_attention").edited(("choosing", "order"), list(order))
    rulebook = resolve(source)
    seen: Counter[str] = Counter()
    for name in SMALL:
        profile = small_profile(name)
        assert profile is not None
        engine = Engine(bind_rulebook(rulebook, profile))
        for seed in range(12):
            build = random_build(engine, Random(f"{name} {seed}"))
            decision, plain = engine.decide(build.state()), plain_decide(engine.bound, build.state())
            assert (plain.verdict, plain.usable, plain.plan) == (decision.verdict, decision.usable, decision.plan), seed
            seen[decision.verdict] += 1
    assert len(seen) > 2


def test_an_order_of_other_parts_first_may_cost_more() -> None:
    """The longest length first: a repair is made that costs more than all prefill together."""
    order = ["longer_length", "price", "lower_level", "fewer_steps", "option_id"]
    source, _ = read_source("mixed_attention").edited(("choosing", "order"), order)
    profile = small_profile("homogeneous")
    assert profile is not None
    build = Build(Engine(bind_rulebook(resolve(source), profile)), 65, 64).all()
    build.pieces["kv"][0].address, build.runtime.prefill_us_per_token = 4097, 0.1
    decision = build.engine.decide(build.state())
    assert ("repair", 64) == (decision.verdict, decision.usable)
    usual = build_of("homogeneous", 65, 64).all()
    usual.pieces["kv"][0].address, usual.runtime.prefill_us_per_token = 4097, 0.1
    assert usual.engine.decide(usual.state()).total_us < decision.total_us


def test_a_free_repair_is_still_no_better_than_none() -> None:
    """At equal price fewer steps are taken."""
    engine = engine_of("pooled")
    build = Build(engine, 65, 64).all()
    (state,) = build.pieces["state"]
    state.layout, state.marks = "old", frozenset()
    for rate in ("device_us_per_byte", "layer_us_per_token", "launch_us"):
        setattr(build.runtime, rate, 0.0)
    decision = engine.decide(build.state())
    assert ["state/rebuild_state"] == steps(decision)
