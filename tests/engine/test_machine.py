"""The form machine: what each event does, refuses and cannot do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.event import EventContext
from hitproof.engine.machine import FormMachine, ImpossibleEventError
from hitproof.spec.errors import HitproofError
from tests.engine.event_cases import PROFILES, bound_to, types_of

PROFILE = "gemma-3-27b"
TYPES = types_of(PROFILE)
MACHINE = FormMachine(bound_to(PROFILE), TYPES)
USUAL: dict[str, object] = {
    "tier": "device",
    "bound_for": "device",
    "generation": 1,
    "published": True,
    "pins": 0,
    "epoch": 5,
    "start": 0,
    "end": 64,
    "sealed": True,
    "address": 4096,
}


def segment(group: str = "full", form: str = "full", **facts: object) -> Any:
    """A segment with usual facts, but for those that are given."""
    return TYPES.segment_of(group, {**USUAL, "form": form, **facts})


def context(*, donor: Any = None, sole: bool = False, **arguments: object) -> EventContext:
    """What an event reads: pool epoch 3, a kernel of layout `rows`, and the arguments that are given."""
    return EventContext(TYPES.runtime(pool_epoch=3), TYPES.kernel(layout="rows"), arguments, donor, sole)


def test_one_life_from_allocation_to_the_end() -> None:
    """A segment is allocated, filled, committed, demoted, brought back and evicted, event by event."""
    one = segment(form="discarded", tier="nowhere", end=64)
    story: list[tuple[str, dict[str, object], str]] = [
        ("allocate", {"address": 512, "start": 0}, "pending"),
        ("append", {"end": 32}, "pending"),
        ("commit", {"end": 40, "recorded": "r", "marks": [40]}, "full"),
        ("demote_begin", {"bound_for": "host"}, "moving"),
        ("demote_end", {}, "demoted"),
        ("spill", {}, "demoted"),
        ("promote_begin", {}, "moving"),
        ("promote_end", {"address": 1024, "offset": 0, "stride": 512, "measured": "r"}, "full"),
        ("evict", {}, "discarded"),
    ]
    for trigger, arguments, form in story:
        assert MACHINE.fire(one, trigger, context(sole=True, **arguments)), trigger
        assert form == one.form
    assert "nowhere" == one.tier
    assert 5 == one.generation
    assert 512 == one.origin_address
    # Nine events, of which append and commit keep the prefix.
    assert 5 + 7 == one.epoch


def test_effects_read_the_state_before() -> None:
    """Three counters that are set from one another's old values all get the old one plus one."""
    one = segment(form="discarded", generation=8, written_generation=2)
    assert MACHINE.fire(one, "allocate", context())
    assert (9, 9, 9) == (one.generation, one.written_generation, one.mapped_generation)
    assert ("rows", 3) == (one.layout, one.pool_epoch)


def test_what_is_taken_but_not_given_or_does_not_fit_is_unknown() -> None:
    """Arguments pass the fact's domain and type; lists become sets of tokens."""
    one = segment(form="pending", bytes=7, marks=frozenset({1}))
    assert MACHINE.fire(one, "commit", context(sole=True, end=-1, recorded="r", marks=[3, 4], unheard_of=1))
    assert (None, None, "r", "r", frozenset({3, 4})) == (
        one.end,
        one.bytes,
        one.recorded,
        one.measured,
        one.marks,
    )


@pytest.mark.parametrize("marks", [[1, "2"], [[1]], "12", 5, [True], [2.0]])
def test_marks_that_are_no_tokens_are_unknown(marks: object) -> None:
    """Nothing but whole numbers makes a set of tokens."""
    one = segment(form="pending")
    assert MACHINE.fire(one, "commit", context(sole=True, end=1, marks=marks))
    assert one.marks is None


@pytest.mark.parametrize(
    ("form", "trigger"),
    [("full", "commit"), ("moving", "evict"), ("discarded", "discard"), ("full", "no_such")],
)
def test_impossible_events_are_errors(form: str, trigger: str) -> None:
    """The wrong form, or an event that does not exist, raises and changes nothing."""
    one = segment(form=form)
    before = one.as_dict()
    with pytest.raises(ImpossibleEventError) as caught:
        MACHINE.fire(one, trigger, context())
    assert before == one.as_dict()
    assert isinstance(caught.value, HitproofError)
    assert ("event", trigger, f"full.{form}") == (caught.value.code, caught.value.rule, caught.value.got)


def test_an_event_of_another_object_is_impossible() -> None:
    """Only a tail has a ring that can be unsealed."""
    tail = segment("window", "windowed")
    assert MACHINE.fire(tail, "unseal", context(sole=True))
    with pytest.raises(ImpossibleEventError):
        MACHINE.fire(segment(), "unseal", context(sole=True))


@pytest.mark.parametrize(("form", "group"), [(None, "full"), ("full", "elsewhere"), ("nonsense", "full")])
def test_a_segment_outside_the_machine_is_impossible(form: Any, group: str) -> None:
    """An unknown form, or a group of another model, has no events."""
    one = segment()
    one.form, one.group = form, group
    with pytest.raises(ImpossibleEventError):
        MACHINE.fire(one, "evict", context())


def test_a_false_guard_answers_false_and_changes_nothing() -> None:
    """Pins, a co-owner, a false condition and an unknown one are refusals, not errors."""
    refusals = [
        (segment(pins=1), "evict", context()),
        (segment(), "defragment", context(sole=False, address=512)),
        (segment(form="demoted", tier="disk"), "spill", context()),
        (segment(end=None), "rollback", context(sole=True, end=3)),
        (segment(), "rollback", context(sole=True)),
        (segment(), "rollback", context(sole=True, end=65)),
        (segment(), "demote_begin", context(bound_for="device")),
    ]
    for one, trigger, event in refusals:
        before = one.as_dict()
        assert MACHINE.fire(one, trigger, event) is False, trigger
        assert before == one.as_dict()


def test_exclusive_wants_exactly_one_pin() -> None:
    """`exclusive` is neither an idle segment nor one that somebody else reads too."""
    bound = bound_to(PROFILE)
    groups = tuple(
        replace(
            group,
            transitions=tuple(
                replace(one, pins="exclusive") if one.id == "evict" else one for one in group.transitions
            ),
        )
        for group in bound.groups
    )
    machine = FormMachine(replace(bound, groups=groups), TYPES)
    assert [False, True, False] == [machine.fire(segment(pins=n), "evict", context()) for n in range(3)]


def test_a_shared_segment_is_its_donor_but_for_pins_and_epoch() -> None:
    """Sharing copies every fact of a sealed donor; the copy starts unpinned, and its own epoch grows."""
    donor = segment(pins=2, epoch=90, weights="w", salt="s", marks=frozenset({64}), address=512)
    one = segment(form="discarded", salt="other", epoch=7)
    assert MACHINE.fire(one, "share", context(donor=donor))
    assert {**donor.as_dict(), "pins": 0, "epoch": 8} == one.as_dict()
    assert 2 == donor.pins


def test_no_donor_that_does_not_fit() -> None:
    """No donor, one of another group, an open one, one not at home, the segment itself: nothing happens."""
    one = segment(form="discarded")
    unfit = [
        None,
        segment("window", "windowed"),
        segment(sealed=False),
        segment(sealed=None),
        segment(form="moving"),
        one,
    ]
    assert not any(MACHINE.fire(one, "share", context(donor=donor)) for donor in unfit)


@pytest.mark.parametrize("facts", [{"epoch": 2**40}, {"generation": 2**40}])
def test_no_counter_of_the_engine_ever_wraps_or_gets_lost(facts: dict[str, object]) -> None:
    """At the end of a counter's domain the event is refused rather than the counter made unknown."""
    one = segment("full", "full", **facts)
    before = one.as_dict()
    assert not MACHINE.fire(one, "defragment", context(sole=True, address=512))
    assert before == one.as_dict()


def test_the_request_is_unknown_to_every_event() -> None:
    """A guard that reads the request never holds: events happen to segments, not to requests."""
    bound = bound_to(PROFILE)
    group = bound.group("full")
    check = next(one for one in group.checks if one.id == "same_weights")
    evict = next(one for one in group.transitions if one.id == "evict")
    asked = replace(group, transitions=(replace(evict, when=check.require),))
    machine = FormMachine(replace(bound, groups=(asked,)), TYPES)
    assert not machine.fire(segment(weights="w"), "evict", context())


@pytest.mark.parametrize("profile", PROFILES)
def test_round_trip_through_the_library(profile: str) -> None:
    """The machine, read back as data, has exactly the rulebook's transitions, in order for each event."""
    bound = bound_to(profile)
    data = FormMachine(bound, types_of(profile)).as_data()
    expected = {
        (one.id, f"{group.id}.{source}", f"{group.id}.{one.target}")
        for group in bound.groups
        for one in group.transitions
        for source in one.sources
    }
    got = [(one["trigger"], one["source"], one["dest"]) for one in data["transitions"]]
    assert expected == set(got)
    assert len(got) == len(set(got))
    forms = bound.rulebook.enums["form"]
    assert [f"{group.id}.{form}" for group in bound.groups for form in forms] == data["states"]


def test_possible_events_of_a_state() -> None:
    """A state's events can be asked for."""
    assert ("demote_end", "promote_end", "promote_failed", "demote_failed", "transfer_failed") == MACHINE.triggers(
        "full.moving"
    )
    assert () == MACHINE.triggers("full.windowed")


def test_the_machine_holds_no_segment() -> None:
    """However many events happen, the library's list of models stays empty."""
    for _ in range(3):
        MACHINE.fire(segment(), "evict", context())
    assert [] == MACHINE._machine.models
