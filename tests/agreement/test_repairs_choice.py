"""The plan that is chosen, against every other plan that ends clean."""

from __future__ import annotations

from collections import Counter
from random import Random

from hitproof.engine.plain import Attempt, attempt, plain_lengths, surroundings
from hitproof.engine.state import Resolved
from hitproof.spec.decision import Decision
from tests.agreement.all_plans import all_plans, mending
from tests.engine.state_cases import SHIPPED, SMALL, Build, build_of, engine_of, random_build

NAMES = (*SHIPPED, *SMALL)
CLOSE = 1e-6
"""Microseconds by which sums taken in another order may differ."""


def sample(count: int) -> list[Build]:
    """Seeded states whose door facts are known."""
    builds = [random_build(engine_of(Random(seed).choice(NAMES)), Random(seed)) for seed in range(count)]
    return [one for one in builds if all(getattr(one.request, name) is not None for name in one.bound.rulebook.door)]


def cheapest(build: Build, state: Resolved, decision: Decision) -> tuple[float, int]:
    """Price of the cheapest plan of all, computing everything included, and how many there are."""
    plans = [
        plan
        for length in plain_lengths(state)
        if length <= decision.logical
        for plan in all_plans(build.bound, state, length)
    ]
    nothing = build.engine.prefill(state, 0)
    return min([nothing, *(plan.total for plan in plans)]), len(plans)


def is_simple(tried: Attempt) -> bool:
    """No piece takes several steps or is given up, and no step is shared between groups."""
    return all(not one.left and len(one.steps) <= 1 for one in tried.mandatory) and not any(
        step.joint for step in tried.steps
    )


def test_a_piece_that_one_step_mends_is_mended_at_the_least_price() -> None:
    """No sequence of up to three options mends a piece for less than the single step that was chosen for it."""
    counts: Counter[str] = Counter()
    for build in sample(600):
        state = build.state()
        for length in plain_lengths(state)[:4]:
            tried = attempt(build.bound, state, length)
            for one in tried.mandatory:
                if one.left or len(one.steps) != 1:
                    continue
                around = surroundings(one.group, state, length, tried.looked, one.share)
                others = [steps for _, steps in mending(build.bound, one.group, around, one.before)]
                assert any([step.option for step in steps] == [one.steps[0].option] for steps in others)
                counts["pieces"] += 1
                counts["with a choice"] += len(others) > 1
                if one.steps[0].cost_us is not None:
                    known = [[step.cost_us for step in steps] for steps in others]
                    prices = [sum(p for p in steps if p is not None) for steps in known if None not in steps]
                    assert one.steps[0].cost_us <= min(prices) + CLOSE
    assert counts["pieces"] > 500
    assert counts["with a choice"] > 50


def test_no_plan_is_cheaper_than_one_of_single_unshared_steps() -> None:
    """Where every piece is clean after one step of its own, the decision costs no more than any plan."""
    counts: Counter[str] = Counter()
    for build in sample(2500):
        state = build.state()
        decision = build.engine.decide(state)
        lengths = [length for length in plain_lengths(state) if length <= decision.logical]
        if not lengths or not all(is_simple(attempt(build.bound, state, length)) for length in lengths):
            continue
        best, plans = cheapest(build, state, decision)
        assert decision.total_us <= best + CLOSE or decision.total_us == best
        counts["states"] += 1
        counts["plans"] += plans
        counts["repaired"] += bool(decision.plan)
    assert counts["states"] > 100
    assert counts["plans"] > counts["states"]
    assert counts["repaired"] > 10


def test_nothing_that_is_chosen_is_cheaper_than_possible() -> None:
    """The cheapest of all plans bounds every decision of at most three steps a piece from below."""
    seen = 0
    for build in sample(500):
        state = build.state()
        decision = build.engine.decide(state)
        each = Counter((step.group, step.segment) for step in decision.plan)
        if max(each.values(), default=0) <= 3:
            best, _ = cheapest(build, state, decision)
            assert best <= decision.total_us + CLOSE or best == decision.total_us
            seen += 1
    assert seen > 400


def promoted_in_vain() -> Build:
    """Entries of an old compressor in host memory, with their layer inputs kept on the device."""
    build = build_of("pooled", 65, 64).all()
    (entries,) = build.pieces["entries"]
    entries.form, entries.tier, entries.compressor_version = "demoted", "host", "old"
    return build


def test_a_step_that_the_last_one_overwrites_is_not_paid() -> None:
    """A copy from the host is cheap and mends something; the rebuild that mends everything makes it superfluous."""
    build = promoted_in_vain()
    decision = build.engine.decide(build.state())
    assert ["rebuild_entries"] == [s.option for s in decision.plan if s.group == "entries"]


def test_no_step_is_in_vain() -> None:
    """No plan of all costs less than the one that is chosen."""
    build = promoted_in_vain()
    state = build.state()
    decision = build.engine.decide(state)
    best, _ = cheapest(build, state, decision)
    assert decision.total_us <= best + CLOSE
