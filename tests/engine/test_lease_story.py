"""Leases that a scenario tells of: played with the engine's own lease, between events of the form machine."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.scenario import run_scenario
from hitproof.rules.scenarios import dump_scenario, load_scenario
from hitproof.spec.errors import ReferenceNameError, SchemaError
from hitproof.spec.scenario import Scenario
from tests.engine.state_cases import bound_to
from tests.engine.test_scenario import scenario

TAKE: dict[str, Any] = {"lease": "l", "does": "take", "segments": ["kv"]}
CHECK: dict[str, Any] = {"lease": "l", "does": "check", "at": 64}
CONFIRM: dict[str, Any] = {"lease": "l", "does": "confirm"}
USE: dict[str, Any] = {"lease": "l", "does": "use"}
COMPLETE: dict[str, Any] = {"lease": "l", "does": "complete"}
RELEASE: dict[str, Any] = {"lease": "l", "does": "release"}
LOST: dict[str, Any] = {"segment": "kv", "leaves": {"pins": 0}}
EVICT: dict[str, Any] = {"segment": "kv", "trigger": "evict"}


def told(events: list[dict[str, Any]], **expect: Any) -> list[str]:
    """What differs from what is expected of the lease after these events."""
    facts, refused = expect.pop("facts", None), expect.pop("refused_event", None)
    wanted = {"leases": {"l": expect}, "facts": facts, "refused_event": refused}
    return run_scenario(bound_to("homogeneous"), scenario(events=events, expect=wanted)).differences


def test_a_lease_goes_from_take_to_release() -> None:
    """Checked, confirmed, read to the end, and the pin is given back."""
    events = [TAKE, CHECK, CONFIRM, USE, COMPLETE, RELEASE]
    wanted = {"checked": True, "confirmed": True, "reading": False, "released": True, "changed": {}, "violates": []}
    assert not told(events, **wanted, facts={"kv.pins": 0})


def test_a_release_waits_for_the_device() -> None:
    """While the device reads, the pin stays; the next call goes on from there."""
    assert not told([TAKE, CHECK, CONFIRM, USE, RELEASE], released=False, reading=True, facts={"kv.pins": 1})
    assert not told([TAKE, CHECK, CONFIRM, USE, RELEASE, COMPLETE, RELEASE], released=True, facts={"kv.pins": 0})


def test_a_pin_keeps_events_off() -> None:
    """An eviction of a leased segment is refused."""
    assert not told([TAKE, EVICT], refused_event=1, epochs_kept=True, changed={})


def test_a_lost_pin_lets_an_event_through_and_the_confirmation_tells() -> None:
    """Facts that something outside of the rules changes are not asked of any pin."""
    events = [TAKE, CHECK, LOST, EVICT, CONFIRM]
    assert not told(events, checked=True, confirmed=False, epochs_kept=False, changed={"kv": ["form", "tier"]})


def test_nothing_is_read_that_was_not_confirmed() -> None:
    """A launch without a check, or after a confirmation that failed, reads nothing."""
    assert not told([TAKE, CONFIRM, USE], confirmed=True, reading=False)
    assert not told([TAKE, CHECK, LOST, EVICT, CONFIRM, USE], reading=False)


def test_a_check_asks_the_rules() -> None:
    """At a length that the segment does not reach, the check fails."""
    assert not told([TAKE, {**CHECK, "at": 128}], checked=False)


def test_an_invariant_over_leases_is_told() -> None:
    """After the confirmation the epoch moves: the rulebook's own invariant is violated, by the lease and in sum."""
    events = [TAKE, CHECK, CONFIRM, LOST, EVICT]
    assert not told(events, violates=["use_what_was_checked"])
    result = run_scenario(bound_to("homogeneous"), scenario(events=events))
    assert "use_what_was_checked" in result.violated


def test_differences_are_told() -> None:
    """What came out otherwise than expected is named with the lease."""
    assert told([TAKE], confirmed=True, changed={"kv": ["form"]}) == [
        "lease l, confirmed: expected True, got None",
        "lease l, changed: expected {'kv': ['form']}, got {}",
    ]


@pytest.mark.parametrize("events", [[CONFIRM], [TAKE, TAKE]])
def test_a_lease_is_taken_once_and_before_it_is_used(events: list[dict[str, Any]]) -> None:
    """A story about no lease, or about two of one name, is refused."""
    with pytest.raises(SchemaError, match="lease"):
        told(events)


@pytest.mark.parametrize("event", [{**TAKE, "segments": ["nobody"]}, {"segment": "kv", "leaves": {"colour": 1}}])
def test_what_is_not_there_is_named(event: dict[str, Any]) -> None:
    """Unknown segments and facts are refused by name."""
    with pytest.raises(ReferenceNameError):
        told([event])


def test_a_story_survives_a_file(tmp_path: Any) -> None:
    """Events of leases and faults are written and read as they are."""
    story = scenario(profile="gemma-3-27b", segments=[{"id": "kv", "group": "full"}], events=[TAKE, LOST, EVICT, CHECK])
    path = tmp_path / "story.yaml"
    path.write_text(dump_scenario(story), encoding="utf-8")
    again = load_scenario(path)
    assert isinstance(again, Scenario)
    assert again == story
