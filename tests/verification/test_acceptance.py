"""The judge of logs: what a manager did is accepted, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

pytest.importorskip("z3", reason="the transition relation is that of the verifier, which needs z3")

from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.cache.log import StepLog
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.facts import Fact, admit
from hitproof.spec.steplog import EventTaken, FaultDone, LeaseTaken, Restored, Seen, StepTaken
from hitproof.verification.acceptance import Acceptor
from tests.engine.cache.cases import Machine, prompt_tokens

TOKENS = prompt_tokens(256)
OTHERS = prompt_tokens(256, seed=9)


@cache
def _told() -> tuple[BoundRulebook, list[StepTaken]]:
    """Written, reused, demoted, mended, moved, given up: the log of one manager."""
    machine = Machine("gemma-3-27b")
    taken: list[StepTaken] = []
    log = StepLog(machine.manager._core, taken.append)
    machine.fill(OTHERS)
    machine.fill(TOKENS, inputs=True)
    machine.ask([*TOKENS, 1])
    machine.demote_all(TOKENS)
    machine.ask([*TOKENS, 1])
    for slot in machine.manager.find(machine.prompt(OTHERS)):
        machine.manager.evict(slot)
    while machine.manager.defragment("full"):
        pass
    machine.manager.housekeep()
    judge = Acceptor(machine.engine.bound)
    assert [judge.refusal(step) for step in taken] == [""] * len(taken)
    assert not judge.unseen(log.now())
    assert judge.accepted == len(taken)
    return machine.engine.bound, taken


@cache
def _judge() -> Acceptor:
    return Acceptor(_told()[0])


def _story() -> list[StepTaken]:
    return _told()[1]


def _happened() -> list[tuple[int, EventTaken]]:
    """Events that changed a segment, with their places in the story."""
    return [(place, step) for place, step in enumerate(_story()) if isinstance(step, EventTaken) and step.happened]


def _calls(does: str = "") -> list[tuple[int, LeaseTaken]]:
    """Calls of leases that hold anything, with their places in the story."""
    calls = [(place, step) for place, step in enumerate(_story()) if isinstance(step, LeaseTaken) and step.segments]
    return [(place, step) for place, step in calls if does in ("", step.does)]


def _refusal(place: int, step: StepTaken) -> str:
    """Why a step is refused after what the story has before this place."""
    judge = _judge()
    judge.restart()
    for one in _story()[:place]:
        assert not judge.refusal(one)
    return judge.refusal(step)


def _other(declared: Fact, value: Any) -> Any:
    """Another value of a fact."""
    kind = declared.type
    made: Any
    if kind.kind == "bool":
        made = not value
    elif kind.kind == "enum":
        made = next(name for name in kind.members if name != value)
    elif kind.kind == "set":
        made = frozenset({*(value or ()), 10_007})
    elif kind.is_number:
        made = 1 if value is None or value + 1 > (declared.hi or 0) else value + 1
    else:
        made = f"{value} and more"
    return admit(declared, made)


def test_the_story_has_every_kind_of_step() -> None:
    """So that what follows is about all of them."""
    events = {step.event for _, step in _happened()}
    assert events >= {"allocate", "commit", "demote_begin", "demote_end", "evict", "defragment"}
    assert {step.does for _, step in _calls()} == {"take", "confirm", "release"}


@given(st.data())
def test_an_event_that_leaves_any_other_fact_is_refused(data: st.DataObject) -> None:
    """Whatever event, and whichever single fact differs afterwards."""
    place, step = data.draw(st.sampled_from(_happened()))
    facts = _told()[0].group(step.segment.group).facts
    name = data.draw(st.sampled_from(sorted(facts)))
    value = _other(facts[name], step.segment.after[name])
    if value == step.segment.after[name]:
        return
    seen = replace(step.segment, after={**step.segment.after, name: value})
    assert name in _refusal(place, replace(step, segment=seen))


@given(st.data())
def test_a_call_that_leaves_another_count_of_pins_is_refused(data: st.DataObject) -> None:
    """One more than the call makes, for the last segment that it holds."""
    place, step = data.draw(st.sampled_from(_calls()))
    *others, last = step.segments
    wrong = replace(last, after={**last.after, "pins": int(last.after["pins"]) + 1})  # type: ignore[arg-type]
    assert _refusal(place, replace(step, segments=(*others, wrong)))


def test_a_refusal_that_the_rules_do_not_know_is_refused() -> None:
    """An event that could happen, and is told as refused."""
    for place, step in _happened():
        seen = replace(step.segment, after=step.segment.before)
        refused = _refusal(place, replace(step, happened=False, segment=seen))
        assert refused == f"'{step.event}' was refused, and the rules allow it"


def test_a_step_without_the_lock_is_refused() -> None:
    """The proof takes every step to be one; whoever holds no lock has others in between."""
    for place, event in _happened():
        assert "no single step" in _refusal(place, replace(event, locked=False))
    for place, call in _calls():
        assert "no single step" in _refusal(place, replace(call, locked=False))


def test_a_confirmation_that_says_the_contrary_is_refused() -> None:
    """Yes for no and no for yes."""
    for place, step in _calls("confirm"):
        assert _refusal(place, replace(step, answer=not step.answer))


def test_a_release_that_does_not_wait_is_refused() -> None:
    """The device reads, and the pins are gone."""
    for place, step in _calls("release"):
        assert _refusal(place, replace(step, reading=True))


def test_only_the_faults_of_the_proof_count_as_faults() -> None:
    """A lost pin and a changed page table entry, and nothing beside them."""
    before = {**_happened()[0][1].segment.before, "pins": 2, "mapped_generation": 4, "epoch": 3}
    changes: tuple[tuple[dict[str, Any], bool], ...] = (
        ({"pins": 1}, True),
        ({"mapped_generation": 5}, True),
        ({"mapped_generation": None}, True),
        ({"pins": 3}, False),
        ({"pins": 0}, False),
        ({"epoch": 4}, False),
        ({"pins": 1, "epoch": 4}, False),
    )
    group = _happened()[0][1].segment.group
    for change, known in changes:
        judge = _judge()
        judge.restart()
        start = Seen(1, group, {**before, "pins": 0, "mapped_generation": None}, before)
        assert not judge.unseen([start])
        assert (judge.refusal(FaultDone(Seen(1, group, before, {**before, **change}))) == "") is known, change


def test_what_changes_between_two_steps_is_told() -> None:
    """A fact that no step has changed."""
    place, step = _happened()[-1]
    seen = replace(step.segment, before={**step.segment.before, "epoch": 10_000})
    assert "epoch" in _refusal(place, replace(step, segment=seen))
    assert not _refusal(place, step)
    now = replace(step.segment, before={**step.segment.after, "pins": 3})
    assert "pins" in _judge().unseen([now])


def test_a_restored_segment_lies_on_the_disk_and_its_epoch_has_grown() -> None:
    """Whatever else a file tells of it."""
    _, first = _happened()[0]
    nothing = first.segment.before
    kept = {**nothing, "form": "demoted", "tier": "disk", "epoch": 1}
    seen = Seen(1, first.segment.group, nothing, kept)
    assert not _refusal(0, Restored(seen, locked=True))
    for wrong in ({"epoch": 0}, {"form": "pending"}, {"tier": "host"}, {"pins": 1}):
        assert _refusal(0, Restored(replace(seen, after={**kept, **wrong}), locked=True))
