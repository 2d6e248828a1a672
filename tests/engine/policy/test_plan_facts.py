"""The facts of a plan count each byte and each block once, however many pieces and repairs there are."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from hitproof.engine.candidates import proposed_lengths
from hitproof.engine.outcome import Outcome, Step
from hitproof.engine.policy.plan_facts import plan_facts
from hitproof.engine.state import Resolved
from tests.engine.state_cases import SHIPPED, SMALL, Build, build_of, engine_of, random_build

UNIT = 16
ROW = 64


def facts_of(build: Build, length: int) -> dict[str, Any]:
    """What the rules read of the best plan at a length; it ends clean."""
    state, judge = build.state(), build.engine.judge
    outcome = judge.outcome(state, judge.nothing(), length)
    assert outcome.clean
    return plan_facts(state, length, outcome, 0.0, 0.0)


def blocks(facts: dict[str, Any]) -> tuple[int, int, int]:
    """Of the whole prompt, held where they are reused, and made or brought back."""
    return facts["plan.blocks"], facts["plan.held_blocks"], facts["plan.loaded_blocks"]


def demoted(build: Build, *spans: tuple[int, int], **facts: object) -> Build:
    """The keys and values of a windowed model, in pieces that lie in host memory, and all else at hand."""
    build.segment("manifest")
    for start, end in spans:
        build.segment(
            "kv", start=start, end=end, matched=128, form="demoted", tier="host", bytes=(end - start) * ROW, **facts
        )
    for group in ("tail", "edge"):
        build.segment(group)
    return build


def test_pieces_of_one_group_add_up() -> None:
    """Two halves come back; no block of them lies on the device already."""
    facts = facts_of(demoted(build_of("windowed", 129, UNIT), (0, 64), (64, 128)), 128)
    assert (9, 0, 8) == blocks(facts)
    assert 128 * ROW == facts["plan.host_bytes"]


def test_what_lies_between_two_loads_is_held() -> None:
    """The middle one of three pieces stays where it is."""
    build = demoted(build_of("windowed", 129, UNIT), (0, 32), (32, 96), (96, 128))
    build.pieces["kv"][1].form, build.pieces["kv"][1].tier = "full", "device"
    build.pieces["kv"][1].measured = build.pieces["kv"][1].recorded
    facts = facts_of(build, 128)
    assert (9, 4, 4) == blocks(facts)
    assert 64 * ROW == facts["plan.host_bytes"]


def test_bytes_that_are_copied_again_come_back_once() -> None:
    """A piece is promoted, then brought into another layout on the device."""
    build = demoted(build_of("windowed", 129, UNIT), (0, 128), layout="old")
    state, judge = build.state(), build.engine.judge
    steps = [option.bound.id for _, _, option, _ in judge.outcome(state, judge.nothing(), 128).steps]
    assert ["promote_from_host", "relayout"] == steps
    assert 128 * ROW == facts_of(build, 128)["plan.host_bytes"]


def test_groups_share_their_blocks() -> None:
    """A window that is copied lies in blocks of the keys and values that are copied too."""
    build = demoted(build_of("windowed", 129, UNIT), (0, 128))
    build.pieces["tail"][0].address += 1
    assert (9, 0, 8) == blocks(facts_of(build, 128))


def test_a_plan_without_repairs_loads_nothing() -> None:
    """All whole blocks are reused where they lie."""
    facts = facts_of(build_of("homogeneous", 129, UNIT).all(), 128)
    assert (9, 8, 0) == blocks(facts)
    assert (0, 0) == (facts["plan.host_bytes"], facts["plan.level"])


@pytest.mark.parametrize("name", (*SMALL, *SHIPPED))
def test_no_byte_and_no_block_is_counted_twice(name: str) -> None:
    """Random states: blocks in which some copied or new row lies, one by one, and the bytes of each piece once."""
    engine = engine_of(name)
    seen = 0
    for seed in range(400 if name in SMALL else 150):
        state = random_build(engine, Random(f"{name} {seed}")).state()
        judge, unit = engine.judge, state.request.granularity
        if any(getattr(state.request, name) is None for name in engine.bound.rulebook.door):
            continue
        for length in proposed_lengths(state)[:5]:
            outcome = judge.outcome(state, judge.nothing(), length)
            if not outcome.clean or not outcome.steps:
                continue
            seen += 1
            facts: dict[str, Any] = plan_facts(state, length, outcome, 0.0, 0.0)
            assert (seed, length // unit) == (seed, facts["plan.held_blocks"] + facts["plan.loaded_blocks"])
            assert (seed, len(touched(state, outcome))) == (seed, facts["plan.loaded_blocks"])
            sizes = fetched(state, outcome)
            assert (seed, None if None in sizes else sum(sizes)) == (seed, facts["plan.host_bytes"])  # type: ignore[arg-type]
    assert seen


def placing(outcome: Outcome) -> Iterator[Step]:
    """The steps that give a piece another place."""
    for step in outcome.steps:
        _, index, option, _ = step
        if index < 0 or not option.bound.own_bytes or "address" in option.bound.effect.chooses:
            yield step


def touched(state: Resolved, outcome: Outcome) -> set[int]:
    """Whole blocks in which a row lies that was copied or made anew; a state lies in the last one."""
    found: set[int] = set()
    unit, length = state.request.granularity, outcome.length
    for group, index, option, _ in placing(outcome):
        after, a, b = next((one, a, b) for place, one, a, b, _ in outcome.used[group.index] if place == index)
        first, to = group.span(length)
        rows = range(max(first, a), min(to, b))
        if group.bound.rules.pieces == "point":
            rows = range(length - 1, length)
        elif index >= 0 and option.bound.own_bytes:
            rows = range(after.start, min(after.end, length))
        found.update(row // unit for row in rows if row // unit < length // unit)
    return found


def fetched(state: Resolved, outcome: Outcome) -> list[int | None]:
    """Bytes of the pieces whose first new place is a copy out of the host."""
    first: dict[tuple[str, int], Step] = {}
    for step in placing(outcome):
        first.setdefault((step[0].id, step[1]), step)
    pieces = [
        state.pieces[name][index] for (name, index), step in first.items() if index >= 0 and step[2].bound.own_bytes
    ]
    slower = [piece for piece in pieces if piece.tier in ("host", "disk")]
    return [None if piece.bytes is None else piece.bytes * (piece.tier == "host") for piece in slower]
