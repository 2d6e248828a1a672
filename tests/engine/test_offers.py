"""Offers of all lengths hold the decision, and a decision at a length is what was offered."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from hitproof.engine.decide import Engine
from hitproof.engine.offers import MOST, NOTHING, decide_at, offer_at, offers
from hitproof.engine.ranks import Offered, agree
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.price import microseconds
from tests.engine.state_cases import SHIPPED, SMALL, build_of, engine_of, random_build, small_profile

LAST = ("fewer_steps", "option_id")
ORDERS = {
    "longest": ["longer_length", "price", "lower_level", *LAST],
    "mildest": ["lower_level", "longer_length", "price", *LAST],
    "fewest": ["fewer_steps", "price", "longer_length", "lower_level", "option_id"],
}


@cache
def engine_with(order: str, name: str) -> Engine:
    """The shipped rulebook with another order of choosing."""
    source, _ = read_source("mixed_attention").edited(("choosing", "order"), ORDERS[order])
    return Engine(bind_rulebook(resolve(source), small_profile(name) or load_profile(name)))


def chosen(engine: Engine, seed: str) -> tuple[object, object]:
    """What one rank alone agrees on, and what the engine decides: length and price."""
    state = random_build(engine, Random(seed)).state()
    made = agree([Offered("prompt", "rules", offers(engine, state))], engine.judge.order)
    decision = engine.decide(state, explain=False)
    if isinstance(made, str):
        return "refuse", "refuse" if not engine.can_recompute(state) else decision.verdict
    if all(getattr(state.request, name) is not None for name in engine.bound.rulebook.door):
        return (made.length, microseconds(made.price)), (decision.usable, decision.total_us)
    return made.length, decision.usable


@pytest.mark.parametrize("name", [*SMALL, *SHIPPED])
def test_one_rank_alone_agrees_on_what_the_engine_decides(name: str) -> None:
    """The best of all offers is the decision, at its price, for healthy and faulty states."""
    for seed in range(80):
        got, wanted = chosen(engine_of(name), f"{name} {seed}")
        assert (seed, wanted) == (seed, got)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["pooled", "windowed", "stored"])
def test_another_order_of_choosing_is_kept_to(order: str, name: str) -> None:
    """Where a rulebook puts length, level or the number of repairs first, so does the agreement of one rank."""
    for seed in range(80):
        got, wanted = chosen(engine_with(order, name), f"{name} {seed}")
        assert (seed, wanted) == (seed, got)


@pytest.mark.parametrize("name", [*SMALL, *SHIPPED])
def test_a_decision_at_a_length_is_what_was_offered(name: str) -> None:
    """Every offered length is decided on as usable at the offered price; one that is not offered reuses nothing."""
    engine, met = engine_of(name), 0
    for seed in range(40):
        state = random_build(engine, Random(f"{name} {seed}")).state()
        found = offers(engine, state)
        for length, offer in found.items():
            at = decide_at(engine, state, length)
            if length:
                met += 1
                assert (length, microseconds(offer.price), offer.steps) == (at.usable, at.total_us, len(at.plan))
        for length in {1, 7, state.request.length} - set(found):
            if offer_at(engine, state, length) is None:
                assert (0, ()) == (decide_at(engine, state, length).usable, decide_at(engine, state, length).plan)
    assert met


def test_a_decision_at_the_decided_length_is_the_decision() -> None:
    """Verdict, lengths, plan and prices are those of the engine's own decision without an explanation."""
    engine, verdicts = engine_of("pooled"), set()
    for seed in range(200):
        state = random_build(engine, Random(seed)).state()
        decision = engine.decide(state, explain=False)
        verdicts.add(decision.verdict)
        assert (seed, decision) == (seed, decide_at(engine, state, decision.usable)) or decision.verdict == "miss"
    assert {"reuse", "repair", "rebuild", "recompute"} <= verdicts


def test_offers_end_at_the_length_that_is_stated() -> None:
    """With a limit, longer lengths are left out and the others are as before; with 0 everything is computed."""
    build = build_of("homogeneous", 97, 16).all()
    free = offers(build.engine, build.state())
    assert [96, 80, 64, 48, 32, 16, 0] == list(free)
    assert {length: offer for length, offer in free.items() if length <= 40} == offers(
        build.engine, build.state(), at_most=40
    )
    assert [0] == list(offers(build.engine, build.state(), at_most=0))


def test_of_many_lengths_the_longest_are_offered() -> None:
    """No more lengths are looked at than the cap says, and nothing reused comes on top."""
    build = build_of("homogeneous", MOST + 100).all()
    found = offers(build.engine, build.state())
    assert (MOST + 1, MOST + 99, 100, 0) == (len(found), next(iter(found)), sorted(found)[1], min(found))


def test_nothing_is_no_offer_where_the_prompt_cannot_be_computed() -> None:
    """Without its tokens, a prompt that is held can be resumed and not be computed."""
    build = build_of("homogeneous", 33, 16).all()
    build.request.has_tokens = False
    assert [32, 16] == list(offers(build.engine, build.state()))
    build.pieces["kv"].clear()
    assert {} == offers(build.engine, build.state())


def test_the_digests_follow_plans_and_epochs() -> None:
    """Another epoch changes the digest of epochs alone; a fault that is repaired changes that of the plan alone."""
    build = build_of("pooled", 65, 8).all()
    healthy = offer_at(build.engine, build.state(), 64)
    assert healthy is not None and NOTHING == healthy.plan and NOTHING != healthy.epochs
    build.pieces["index"][0].epoch += 1
    moved = offer_at(build.engine, build.state(), 64)
    assert moved is not None and (healthy.plan, True) == (moved.plan, healthy.epochs != moved.epochs)
    build.pieces["index"][0].kv_generation = 7
    broken = offer_at(build.engine, build.state(), 64)
    assert broken is not None and (True, moved.epochs) == (broken.plan != moved.plan, broken.epochs)
    assert (1, True) == (broken.steps, broken.price > moved.price)


def test_an_offer_stands_while_repairs_and_epochs_do() -> None:
    """Another price of the same repairs changes nothing; another epoch does."""
    build = build_of("pooled", 65, 8).all()
    build.pieces["index"][0].kv_generation = 7
    offer = offer_at(build.engine, build.state(), 64)
    assert offer is not None and 1 == offer.steps
    build.runtime.launch_us += 1.0
    assert offer != offer_at(build.engine, build.state(), 64) and offer.stands(build.engine, build.state(), 64)
    build.pieces["index"][0].epoch += 1
    assert not offer.stands(build.engine, build.state(), 64)
    assert not offer.stands(build.engine, build.state(), 56)
