"""Observation tells everything once, in order, and never changes an answer."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import pytest

from hitproof.engine.event import ImpossibleEventError
from hitproof.engine.machine import FormMachine
from hitproof.engine.observe import NOBODY, ObservedEngine, ObservedMachine, ObservedTable, Observers, Silent
from hitproof.engine.policy import PolicyEngine
from hitproof.engine.recovery import Recovery
from hitproof.engine.table import TransitionTable
from tests.engine.event_cases import cases
from tests.engine.observe.observed_life import Writer, live
from tests.engine.state_cases import bound_to, build_of, engine_of, random_build


class Failing(Silent):
    """Fails at whatever it is told of decisions."""

    def decided(self, decision: Any, seconds: float) -> None:
        raise RuntimeError("the exporter is away")


@pytest.mark.parametrize("explain", [False, True])
def test_an_observed_decision_is_the_decision(explain: bool) -> None:
    """The same answer comes back, and it is the one that is told."""
    engine, random = engine_of("windowed"), Random(7)
    for _ in range(40):
        writer, state = Writer(), random_build(engine, random).state()
        answer = ObservedEngine(engine, writer).decide(state, explain=explain)
        assert engine.decide(state, explain=explain) == answer
        assert [answer] == writer.diary.decisions
        assert [(answer, answer.verdict, answer.usable)] == [
            (one.decision, one.verdict, one.usable) for one in writer.diary.served
        ]


def test_a_policy_is_observed_as_an_engine_is() -> None:
    """A decision under a policy tells the admission rules that stood in its way, once."""
    policy, writer = PolicyEngine(bound_to("windowed"), "state_aware"), Writer()
    build = build_of("windowed", 65, 8).all()
    build.runtime.used_blocks = build.runtime.capacity_blocks
    answer = ObservedEngine(policy, writer).decide(build.state())
    assert answer.admission
    assert [answer] == writer.diary.decisions


def test_a_recovery_tells_decisions_steps_and_its_end() -> None:
    """What was told is what the recovery answers with, and the request is served once, last."""
    writer = Writer()
    live("pooled", writer, seed=3, count=40)
    diary = writer.diary
    assert [step for end in diary.ends for step in end.steps] == diary.steps
    assert 40 == len(diary.ends)
    again = {id(one.decision) for one in diary.served}
    for end in diary.ends:
        assert id(end.decision) in again
        served = next(one for one in diary.served if one.decision is end.decision)
        assert (end.verdict, end.usable) == (served.verdict, served.usable)
    assert all(step.seconds >= 0 for step in diary.steps)
    assert any(step.seconds > 0 for step in diary.steps)


def test_an_observer_that_fails_changes_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The others are still told; the error is logged once and counted after that."""
    engine, writer = engine_of("pooled"), Writer()
    observers = Observers(Failing(), writer)
    with caplog.at_level(logging.ERROR, logger="hitproof.observe"):
        for _ in range(3):
            state = build_of("pooled", 65, 8).all().state()
            assert engine.decide(state) == ObservedEngine(engine, observers).decide(state)
    assert {"Failing": 3} == observers.failures
    assert 1 == len(caplog.records)
    assert 3 == len(writer.diary.decisions)


def test_an_observer_that_fails_in_a_recovery_takes_no_pin_with_it() -> None:
    """Where it is not one of several, its error ends the recovery, and every pin is given back."""
    build = build_of("pooled", 65, 8).all()
    recovery = Recovery(build.engine, observer=Failing())
    with pytest.raises(RuntimeError, match="away"):
        recovery.run(build.state(), lambda request: pytest.fail("nothing runs"))
    assert {0} == {piece.pins for pieces in build.pieces.values() for piece in pieces}


@pytest.mark.parametrize("kind", ["machine", "table"])
def test_events_are_told_with_their_result(kind: str) -> None:
    """Fired, refused by a guard, and impossible are told apart, and the segment changes as it would unobserved."""
    bound, types = bound_to("pooled"), engine_of("pooled").types
    plain: Any = FormMachine(bound, types) if kind == "machine" else TransitionTable(bound)
    seen = set()
    for group in bound.groups:
        for case in cases(bound, types, group, group.home, seed=1, count=4):
            for trigger in {event.id for event in group.transitions}:
                writer = Writer()
                observed = ObservedMachine(plain, writer)
                mine, theirs = case.fresh(), case.fresh()
                try:
                    result = "fired" if plain.fire(theirs, trigger, case.context) else "refused"
                except ImpossibleEventError:
                    result = "impossible"
                    with pytest.raises(ImpossibleEventError):
                        observed.fire(mine, trigger, case.context)
                else:
                    assert (result == "fired") == observed.fire(mine, trigger, case.context)
                assert theirs.as_dict() == mine.as_dict()
                assert [(group.id, trigger, result)] == writer.diary.events
                seen.add(result)
    assert {"fired", "refused", "impossible"} == seen


def test_many_events_are_told_one_by_one() -> None:
    """A bulk change tells each segment; an impossible one tells once, since nothing has changed."""
    bound, types = bound_to("pooled"), engine_of("pooled").types
    group, writer = bound.group("entries"), Writer()
    table = ObservedTable(TransitionTable(bound), writer)
    made = list(cases(bound, types, group, group.home, seed=2, count=6))
    answers = table.fire_all((one.fresh() for one in made), "quarantine", made[0].context)
    assert [("entries", "quarantine", "fired" if one else "refused") for one in answers] == writer.diary.events
    with pytest.raises(ImpossibleEventError):
        table.fire_all([made[0].fresh(), made[1].fresh()], "no_such_event", made[0].context)
    assert ("entries", "no_such_event", "impossible") == writer.diary.events[-1]
    assert 7 == len(writer.diary.events)


def test_nobody_is_told_by_default() -> None:
    """A recovery without an observer has the one that does nothing."""
    assert NOBODY is Recovery(engine_of("pooled")).observer
