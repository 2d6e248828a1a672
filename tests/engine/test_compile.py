"""Generated code: effects, order of options, prices, and what it may touch."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.compile import CompiledGroup, CompiledOption, compile_price
from hitproof.engine.decide import Engine
from hitproof.engine.state import FAR
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.errors import BindError
from hitproof.spec.price import UNKNOWN_PRICE, ticks
from tests.engine.state_cases import Build, bound_to, build_of, engine_of, small_profile


def group_of(build: Build, name: str) -> CompiledGroup:
    """A compiled group."""
    return next(group for group in build.engine.judge.groups if group.id == name)


def option_of(build: Build, name: str, option: str) -> CompiledOption:
    """A compiled option of a group."""
    return next(one for one in group_of(build, name).options if one.bound.id == option)


def context(build: Build, name: str, length: int, **peers: Any) -> tuple[Any, ...]:
    """The arguments that stand behind the segment; peers that are not given are unknown and not ready."""
    nobody = build.engine.types.segment()
    flat: list[Any] = []
    for role in group_of(build, name).roles:
        flat += [peers[role], True] if role in peers else [nobody, False]
    return (build.request, build.runtime, build.kernels[name], length, 0, FAR, *flat)


def test_effects_read_the_state_before() -> None:
    """All three generations follow the old one, in whatever order they stand."""
    build = build_of("homogeneous", 65)
    segment = build.segment("kv", generation=5, written_generation=1, address=7, stride=1)
    after = option_of(build, "kv", "bounce").apply(segment, *context(build, "kv", 64))
    assert (6, 6, 6) == (after.generation, after.written_generation, after.mapped_generation)
    assert (4096, 0) == (after.stride, after.address % 64)
    assert (5, 7) == (segment.generation, segment.address)


def test_what_a_repair_neither_sets_nor_keeps_is_unknown() -> None:
    """New bytes have no history: the repair keeps identity and life, the option states the rest, nothing else stays."""
    build = build_of("windowed", 65)
    build.segment("edge")
    tail = build.segment("tail", marks=frozenset({3}), sealed=False)
    after = option_of(build, "tail", "warm_up").apply(
        tail, *context(build, "tail", 64, boundary=build.pieces["edge"][0])
    )
    assert after.marks is None
    assert (True, "weights", 49, 64) == (after.sealed, after.weights, after.start, after.end)
    assert after.recorded == after.measured != tail.recorded


def test_a_set_is_reset_to_one_element() -> None:
    """A rebuilt state belongs to the length for which it was made, and to no other."""
    build = build_of("pooled", 65)
    state = build.segment("state")
    after = option_of(build, "state", "rebuild_state").apply(state, *context(build, "state", 50))
    assert (frozenset({64}), frozenset({50})) == (state.marks, after.marks)


def test_what_leaves_its_domain_is_unknown() -> None:
    """A counter at its end does not silently grow beyond what conditions admit."""
    build = build_of("windowed", 65)
    tail = build.segment("tail", write_sequence=2**40)
    build.segment("edge", version="new")
    after = option_of(build, "tail", "roll").apply(tail, *context(build, "tail", 64, boundary=build.pieces["edge"][0]))
    assert (None, "new") == (after.write_sequence, after.boundary_version)


def test_a_repair_that_the_engines_own_facts_do_not_admit_is_impossible() -> None:
    """A generation at the end of its domain cannot grow, so no repair that must bump it runs."""
    build = build_of("homogeneous", 65)
    segment = build.segment("kv", generation=2**40, address=7)
    assert option_of(build, "kv", "bounce").apply(segment, *context(build, "kv", 64)) is None
    decision = build.engine.decide(build.state())
    assert ("recompute", 0, ("kv/base_aligned",)) == (decision.verdict, decision.usable, decision.failed)


def test_masks_name_the_checks_that_do_not_surely_hold() -> None:
    """Unknown and false set the same bit; a group that is not needed fails nothing."""
    build = build_of("pooled", 65)
    group = group_of(build, "entries")
    ids = [check.id for check in group.bound.checks]
    entries = build.segment("entries", weights="other", layout=None)
    mask = group.judge(entries, *context(build, "entries", 64))
    assert {"same_weights", "layout_matches"} == {ids[bit] for bit in range(len(ids)) if mask >> bit & 1}
    assert mask & group.identity_mask == group.identity(entries, *context(build, "entries", 64))
    assert group.fails(entries, *context(build, "entries", 64))
    assert 0 == group.judge(entries, *context(build, "entries", 7))


def offered(rates: dict[str, float | None]) -> list[tuple[str, int]]:
    """The options that are offered for two faults, with their prices in ticks."""
    build = build_of("homogeneous", 65)
    segment = build.segment("kv", layout="old", address=7)
    for name, rate in rates.items():
        setattr(build.runtime, name, rate)
    group = group_of(build, "kv")
    mask = group.judge(segment, *context(build, "kv", 64))
    return [(option.bound.id, price) for option, price in group.offers(mask, segment, *context(build, "kv", 64))]


def test_offers_stand_by_level_and_name() -> None:
    """Two in-place options of one price: the lesser id first, whatever the order of the file."""
    price = ticks(10 + 2 * 64 * 64 * 5e-7)
    assert [("bounce", price), ("relayout", price)] == offered({})


def test_an_unknown_price_is_above_all_others() -> None:
    """It can still be the only choice."""
    unknown = offered({"device_us_per_byte": None})
    assert [("bounce", UNKNOWN_PRICE), ("relayout", UNKNOWN_PRICE)] == unknown


def test_an_unknown_prefill_price_is_above_all_others() -> None:
    """Nothing is cheaper than what nobody knows."""
    price = compile_price(bound_to("homogeneous").rulebook.prefill.cost)
    build = build_of("homogeneous", 65)
    assert ticks(40.0 * 33) == price(build.request, build.runtime, 32)
    build.runtime.prefill_us_per_token = None
    assert UNKNOWN_PRICE == price(build.request, build.runtime, 32)


def test_a_promise_that_cannot_be_kept_is_refused_at_binding() -> None:
    """An allocator that must find an impossible address would never return."""
    path = ("every_object", "recovery", "bounce", "chooses")
    source, _ = read_source("mixed_attention").edited(path, {"address": "self.address < 0"})
    profile = small_profile("homogeneous")
    assert profile is not None
    with pytest.raises(BindError, match="promise on address"):
        Engine(bind_rulebook(resolve(source), profile))


@pytest.mark.parametrize("name", ["homogeneous", "windowed", "pooled"])
def test_generated_code_reaches_nothing_but_arithmetic(name: str) -> None:
    """Its builtins are a handful of pure functions: no import, no open, no eval."""
    for group in engine_of(name).judge.groups:
        functions = [group.judge, group.identity, group.fails, group.offers, group.span, group.empty, group.state]
        for function in (*functions, *(option.apply for option in group.options)):
            builtins = function.__globals__["__builtins__"]
            assert {"abs", "bool", "frozenset", "int", "max", "min", "type"} >= set(builtins)
