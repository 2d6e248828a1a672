"""Scenarios on the real engine: how they are set up, played and compared."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.scenario import EngineReplayer, ScenarioRun, reversed_options, run_scenario
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.errors import ReferenceNameError
from hitproof.spec.scenario import Scenario
from tests.engine.state_cases import bound_to, build_of, small_profile

KV = {"id": "kv", "group": "kv"}


def scenario(**given: Any) -> Scenario:
    """A healthy prefix of 64 tokens, but for what is given."""
    usual = {
        "scenario": "story",
        "title": "a story",
        "profile": small_profile("homogeneous"),
        "request": {"length": 65, "granularity": 64},
        "segments": [KV],
    }
    return Scenario.model_validate({**usual, **given})


def run(**given: Any) -> ScenarioRun:
    """The scenario set up and played."""
    return ScenarioRun(bound_to("homogeneous"), scenario(**given))


def differences(**expect: Any) -> list[str]:
    """What differs from the stated expectation, in the healthy story."""
    return run_scenario(bound_to("homogeneous"), scenario(expect=expect)).differences


def test_what_is_not_stated_is_healthy() -> None:
    """A story that breaks nothing is reused."""
    result = EngineReplayer().replay(load_rulebook("mixed_attention"), scenario(expect={"verdict": "reuse"}))
    assert result.passed
    assert result.decision is not None and 64 == result.decision.usable


def test_a_blank_segment_knows_only_what_is_stated() -> None:
    """States found by the verifier are taken as they are, holes included."""
    blank = {**KV, "blank": True, "facts": {"form": "full", "tier": "device", "end": 64}}
    (segment,) = run(segments=[blank]).state().pieces["kv"]
    assert ("full", 64, None, None) == (segment.form, segment.end, segment.start, segment.address)


def test_segments_have_an_address_of_their_own_unless_stated() -> None:
    """Two healthy segments never share a block by accident."""
    result = run(segments=[KV, {**KV, "id": "other"}, {**KV, "id": "third", "facts": {"address": 7}}])
    one, other, third = result.state().pieces["kv"]
    assert one.address != other.address
    assert 7 == third.address


@pytest.mark.parametrize(
    ("given", "got"),
    [
        ({"segments": [{"id": "x", "group": "nobody"}]}, "nobody"),
        ({"segments": [{**KV, "facts": {"window_size": 3}}]}, "window_size"),
        ({"segments": [{**KV, "blank": True, "facts": {"colour": 3}}]}, "colour"),
        ({"request": {"length": 65, "colour": 3}}, "colour"),
        ({"runtime": {"colour": 3}}, "colour"),
        ({"kernel": {"colour": 3}}, "colour"),
        ({"events": [{"segment": "nobody", "trigger": "evict"}]}, "nobody"),
    ],
)
def test_a_name_that_does_not_exist_is_an_error(given: dict[str, Any], got: str) -> None:
    """A misspelt story must not pass by telling nothing."""
    with pytest.raises(ReferenceNameError) as caught:
        run(**given)
    assert got == caught.value.got


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ({"verdict": "miss"}, "verdict: expected miss, got reuse"),
        ({"length": 32}, "length: expected 32, got 64"),
        ({"logical": 32}, "logical: expected 32, got 64"),
        ({"failed": ["kv/resident"]}, "failed: expected ['kv/resident'], got []"),
        ({"plan": ["kv/bounce"]}, "plan: expected ['kv/bounce'], got []"),
        ({"flags": ["eager"]}, "flags: expected ['eager'], got []"),
        ({"dispositions": {"kv": "keep"}}, "dispositions: expected {'kv': 'keep'}, got {}"),
        ({"violates": ["blocks_have_one_owner"]}, "violates: expected ['blocks_have_one_owner'], got []"),
        ({"refused_event": 0}, "refused event: expected 0, got None"),
        ({"accepted": False, "at": 64}, "accepted: expected False, got True"),
        ({"facts": {"kv.end": 3}}, "kv.end: expected 3, got 64"),
        ({"competing": ["promote"]}, "competing: expected ['promote'], got []"),
        (
            {"cheaper": ["kv/bounce"], "at": 64},
            "cheaper: kv/bounce: it has no price: kv/bounce may not run",
        ),
        ({"cheaper": [], "at": 0}, "cheaper: no reuse: it costs 2600.0 and the decision 40.0 us"),
        (
            {"option": "kv/bounce", "at": 64, "fails_after": []},
            "fails after: expected [], got the option does not apply",
        ),
        ({"option": "kv/bounce", "at": 64, "leaves": {"offset": 0}}, "leaves: the option does not apply"),
    ],
)
def test_each_difference_is_told(expect: dict[str, Any], told: str) -> None:
    """Every key of an expectation is compared."""
    assert [told] == differences(**expect)


def test_what_is_not_expected_is_not_compared() -> None:
    """An empty expectation passes."""
    assert [] == differences()


def test_a_refused_event_is_remembered_and_changes_nothing() -> None:
    """A pinned segment is not evicted; an expectation that is silent about the refusal fails."""
    given = {"segments": [{**KV, "facts": {"pins": 1}}], "events": [{"segment": "kv", "trigger": "evict"}]}
    assert 0 == run(**given).refused
    assert ["refused event: expected None, got 0"] == run_scenario(
        bound_to("homogeneous"), scenario(**given)
    ).differences
    told = scenario(**given, expect={"refused_event": 0, "facts": {"kv.form": "full"}})
    assert run_scenario(bound_to("homogeneous"), told).passed


def test_accepted_means_without_repair() -> None:
    """A length that a copy would make usable is not accepted as it stands."""
    assert run().accepted_at(64)
    mendable = run(segments=[{**KV, "facts": {"address": 4097}}])
    assert "repair" == mendable.decide().verdict
    assert not mendable.accepted_at(64)


def test_an_option_can_be_run_alone() -> None:
    """Its group's checks are judged after it, whether it is the cheapest or not."""
    damaged = {**KV, "facts": {"address": 4097, "encoding": "other"}}
    result = run(segments=[damaged])
    tried = result.after_option("kv/bounce", 64)
    assert not isinstance(tried, str)
    left, failing = tried
    assert ["encoding_matches"] == failing
    assert 0 == left.offset
    assert "the option does not apply" == result.after_option("kv/verify", 64)
    told = {"option": "kv/bounce", "at": 64, "leaves": {"offset": 0, "published": True, "encoding": None}}
    assert [
        "published after it: expected True, got False",
        "encoding after it: expected unknown, got other",
    ] == run_scenario(bound_to("homogeneous"), scenario(segments=[damaged], expect=told)).differences
    assert "no such option" == result.after_option("kv/nothing", 64)
    full = run(segments=[{**KV, "facts": {"address": 4097, "generation": 2**40}}])
    assert "the option would take a fact out of its domain" == full.after_option("kv/bounce", 64)


def test_a_request_finds_a_segment_by_its_key() -> None:
    """In every tier where the keys are equal; identity and readiness are asked of single segments and groups."""
    found = {"found_in": {"kv": ["device", "host", "disk"]}, "at": 64, "identity": True, "ready": ["kv"]}
    assert [] == differences(**found)
    other = scenario(expect=found, segments=[{**KV, "facts": {"salt": "another"}}])
    assert [
        "ready: expected ['kv'], got []",
        "identity: expected True, got False",
        "kv found in: expected ['device', 'disk', 'host'], got []",
    ] == run_scenario(bound_to("homogeneous"), other).differences


def test_a_request_does_not_find_what_it_agrees_with_in_part() -> None:
    """Tokens that agree up to 63 are no key of 64; a segment that is not published is found by nobody."""
    assert ["device", "host", "disk"] == run().found_in("kv")
    assert [] == run(segments=[{**KV, "facts": {"matched": 63}}]).found_in("kv")
    assert [] == run(segments=[{**KV, "facts": {"published": False}}]).found_in("kv")


def test_the_order_of_options_is_not_noticed() -> None:
    """Reversed options give the same decision, down to the plan."""
    build = build_of("homogeneous", 65, 64).all()
    build.pieces["kv"][0].address, build.pieces["kv"][0].layout = 4097, "old"
    assert build.engine.decide(build.state()) == reversed_options(build.engine).decide(build.state())
    assert build.engine.decide(build.state()).plan
