"""What a story shows: parts of conditions with their values, and the state after each step."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.scenario import ScenarioRun
from hitproof.engine.seeing import rules_seen
from hitproof.engine.watching import steps_seen
from hitproof.spec.condition import conjuncts, text
from hitproof.spec.scenario import Scenario
from hitproof.spec.seen import RuleSeen
from tests.engine.state_cases import bound_to
from tests.engine.test_lease_story import CHECK, CONFIRM, EVICT, LOST, RELEASE, TAKE, USE
from tests.engine.test_scenario import scenario

BOUND = bound_to("homogeneous")


def seen(rule: str, **given: Any) -> list[RuleSeen]:
    """What a story about the one group shows."""
    return rules_seen(lambda story: ScenarioRun(BOUND, story), scenario(**given), rule)


def piece(**facts: Any) -> list[dict[str, Any]]:
    """The group's segment, healthy but for these facts."""
    return [{"id": "kv", "group": "kv", "facts": facts}]


def test_a_check_is_shown_part_by_part() -> None:
    """Every part of the condition stands there as it is written, with its truth and the values that it read."""
    check = next(one for one in BOUND.group("kv").checks if one.id == "resident")
    (shown,) = seen("full_kv/resident", segments=piece(tier="host"), expect={"at": 64})
    assert [text(part) for part in conjuncts(check.require)] == [part.text for part in shown.conjuncts]
    assert [True, False] == [part.holds for part in shown.conjuncts]
    assert {"self.tier": "host"} == shown.conjuncts[1].values
    assert ("kv/resident", str(check.where)) == (shown.rule, shown.place)


def test_an_unknown_part_is_neither_true_nor_false() -> None:
    """A fact without a value leaves the part undecided."""
    (shown,) = seen("full_kv/fingerprint_matches", segments=piece(measured=None), expect={"at": 64})
    assert None in [part.holds for part in shown.conjuncts]
    assert any(part.values.get("self.measured", 0) is None for part in shown.conjuncts)


def test_groups_that_are_not_ready_show_the_checks_that_fail() -> None:
    """Those that hold are not told."""
    shown = seen("admission/none", segments=piece(tier="host"), expect={"at": 64, "unready": ["kv"]})
    assert "kv/resident" in [one.rule for one in shown]
    assert all(any(part.holds is not True for part in one.conjuncts) for one in shown)


def test_an_event_is_shown_as_it_was_before_and_what_it_changed() -> None:
    """The last event of that name: how many pins it allows comes first, then its condition."""
    (shown,) = seen("full_kv/evict", events=[EVICT])
    assert ("pins: unpinned", True, {"self.pins": 0}) == (
        shown.conjuncts[0].text,
        shown.conjuncts[0].holds,
        shown.conjuncts[0].values,
    )
    assert ("full", "discarded") == shown.changes["self.form"]


def test_an_event_that_pins_keep_off_changes_nothing() -> None:
    """Its first part fails."""
    (shown,) = seen("full_kv/evict", events=[TAKE, EVICT])
    assert (False, {"self.pins": 1}) == (shown.conjuncts[0].holds, shown.conjuncts[0].values)
    assert not shown.changes


def test_what_a_lease_noted_stands_beside_what_is_there() -> None:
    """Facts that the story says have changed, as noted and now."""
    expect = {"leases": {"l": {"changed": {"kv": ["form"]}}}}
    (shown,) = seen("leasing/confirm", events=[TAKE, LOST, EVICT], expect=expect)
    assert [{"noted": "full", "now": "discarded"}] == [part.values for part in shown.conjuncts]


def test_a_violated_invariant_is_shown_with_the_lease_that_it_is_violated_for() -> None:
    """A confirmed lease whose segment has changed."""
    expect = {"leases": {"l": {"violates": ["use_what_was_checked"]}}}
    (shown,) = seen("full_kv/none", events=[TAKE, CHECK, CONFIRM, LOST, EVICT], expect=expect)
    assert "use_what_was_checked" == shown.rule
    assert {"kv.epoch": 2, "kv.epoch as noted": 1} == shown.conjuncts[0].values


@pytest.fixture(scope="module")
def told() -> Scenario:
    """Somebody reads, and a lost pin lets the block be evicted; a second eviction is impossible."""
    return scenario(events=[TAKE, CHECK, CONFIRM, USE, EVICT, LOST, EVICT, RELEASE])


def test_every_beginning_of_a_story_is_a_state(told: Scenario) -> None:
    """The states are those that the engine has after so many events, and the first is the one before any."""
    steps = steps_seen(BOUND, told)
    assert len(told.events) + 1 == len(steps)
    for end, step in enumerate(steps):
        run = ScenarioRun(BOUND, told.model_copy(update={"events": told.events[:end]}))
        assert run.segments["kv"].form == step.segments["kv"]["form"]
        assert run.segments["kv"].pins == step.segments["kv"]["pins"]
    assert [0, 1, 1, 1, 1, 1, 0, 0, 0] == [step.segments["kv"]["pins"] for step in steps]


def test_who_does_what_and_whether_it_happened(told: Scenario) -> None:
    """The eviction that a pin keeps off did not happen, the other one did."""
    steps = steps_seen(BOUND, told)[1:]
    assert ["l", "l", "l", "l", "", "fault", "", "l"] == [step.who for step in steps]
    assert ["take", "check", "confirm", "use", "evict"] == [step.does for step in steps[:5]]
    assert [True, True, True, True, False, True, True, True] == [step.happened for step in steps]
    assert steps[3].leases["l"]["reading"] is True
    assert {"kv"} == {name for step in steps for name in step.to}


def test_a_recovery_tells_its_steps() -> None:
    """They come last, by the names that the rules give them."""
    story = scenario(expect={"recovered": {}})
    assert ["recovery"] == list({step.who for step in steps_seen(BOUND, story)[1:]})
