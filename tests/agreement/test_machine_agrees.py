"""The form machine and its table: two readings of the same transitions, compared on every shipped profile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.event import EventContext, ImpossibleEventError
from hitproof.engine.machine import FormMachine
from hitproof.engine.table import TransitionTable
from hitproof.spec.bound import BoundRulebook
from tests.engine.event_cases import PROFILES, Case, bound_to, cases, types_of

DRAWN = 300


def outcome(machine: FormMachine | TransitionTable, case: Case, trigger: str) -> object:
    """`impossible`, or whether the event happened and every fact of the segment after it."""
    segment = case.fresh()
    donor = case.context.donor
    # A segment that is its own donor stays so: copies would hide it.
    context = replace(case.context, donor=segment if donor is case.segment else donor)
    try:
        happened = machine.fire(segment, trigger, context)
    except ImpossibleEventError:
        assert segment.as_dict() == case.segment.as_dict()
        return "impossible"
    return happened, segment.group, segment.as_dict()


def all_triggers(bound: BoundRulebook) -> list[str]:
    """Every event of the rulebook, in the order of the file."""
    return list(dict.fromkeys(one.id for group in bound.groups for one in group.transitions))


@pytest.mark.parametrize("profile", PROFILES)
def test_machine_and_table_agree_on_every_form_and_event(profile: str) -> None:
    """Destination, facts, epoch, refusals, impossible events are equal; all events fire and are refused."""
    bound, types = bound_to(profile), types_of(profile)
    machine, table = FormMachine(bound, types), TransitionTable(bound)
    seen: Counter[tuple[str, str, str, bool]] = Counter()
    for group in bound.groups:
        for form in bound.rulebook.enums["form"]:
            drawn = list(cases(bound, types, group, form, seed=1, count=DRAWN))
            for trigger in all_triggers(bound):
                possible = any(one.id == trigger and form in one.sources for one in group.transitions)
                for case in drawn if possible else drawn[:2]:
                    by_machine, by_table = outcome(machine, case, trigger), outcome(table, case, trigger)
                    assert by_machine == by_table, f"{group.id}.{form} {trigger}"
                    assert (by_machine == "impossible") is not possible
                    if isinstance(by_machine, tuple):
                        seen[group.id, form, trigger, by_machine[0]] += 1
    for group in bound.groups:
        for one in group.transitions:
            for form in one.sources:
                assert seen[group.id, form, one.id, True], f"{group.id}.{form} {one.id} never fired"
                refusable = one.pins != "any" or one.owner == "sole" or one.donor or one.when is not None
                assert bool(seen[group.id, form, one.id, False]) or not refusable


@pytest.mark.parametrize("profile", PROFILES)
def test_first_match_in_file_order_wins_in_both(profile: str) -> None:
    """Where several transitions answer one event, both take the first whose guard holds, and it alone."""
    bound, types = bound_to(profile), types_of(profile)
    group = bound.groups[0]
    evict = next(one for one in group.transitions if one.id == "evict")
    spill = next(one for one in group.transitions if one.id == "spill")
    first = replace(spill, id="evict", sources=("demoted",), keeps_prefix=True)
    bound = replace(bound, groups=(replace(group, transitions=(first, evict, first)),))
    machine, table = FormMachine(bound, types), TransitionTable(bound)
    forms = Counter[str]()
    for case in cases(bound, types, group, "demoted", seed=2, count=DRAWN):
        limits = (case.segment.epoch, case.segment.generation)
        if case.segment.pins or max(limits) > 4:
            continue
        by_machine = outcome(machine, case, "evict")
        assert by_machine == outcome(table, case, "evict")
        assert isinstance(by_machine, tuple)
        expected = "demoted" if case.segment.tier == "host" else "discarded"
        assert by_machine[2]["form"] == expected
        forms[expected] += 1
    assert min(forms["demoted"], forms["discarded"]) > 0


@pytest.mark.parametrize("profile", PROFILES)
def test_bulk_changes_equal_single_ones(profile: str) -> None:
    """`fire_all` does to each segment what the machine does to it alone."""
    bound, types = bound_to(profile), types_of(profile)
    machine, table = FormMachine(bound, types), TransitionTable(bound)
    for group in bound.groups:
        for one in group.transitions:
            drawn = list(cases(bound, types, group, one.sources[0], seed=3, count=10))
            contexts = [replace(case.context, donor=None) for case in drawn]
            singles, many = [case.fresh() for case in drawn], [case.fresh() for case in drawn]
            answers = [
                machine.fire(segment, one.id, context) for segment, context in zip(singles, contexts, strict=True)
            ]
            by_id = {id(segment): context for segment, context in zip(many, contexts, strict=True)}

            def context_of(segment: object, by_id: dict[int, EventContext] = by_id) -> EventContext:
                return by_id[id(segment)]

            assert answers == table.fire_all(many, one.id, context_of)
            assert [segment.as_dict() for segment in singles] == [segment.as_dict() for segment in many]


@pytest.mark.parametrize(
    "change",
    [
        {"pins": "exclusive"},
        {"pins": "any", "when": None, "owner": "sole"},
        {"pins": "any", "when": None, "donor": True},
        {"pins": "any", "when": None, "keeps_prefix": True},
        {"when": None, "forgets": ("tier",)},
        {"when": None, "donor": True, "takes": ("epoch", "pins", "form", "address")},
    ],
    ids=str,
)
def test_they_agree_on_transitions_that_no_shipped_rulebook_has(change: dict[str, Any]) -> None:
    """Other pins, owners, donors and effects mean the same to both, whatever the rulebook says one day."""
    bound, types = bound_to("gemma-3-27b"), types_of("gemma-3-27b")
    groups = [
        replace(group, transitions=tuple(replace(one, **change) for one in group.transitions)) for group in bound.groups
    ]
    bound = replace(bound, groups=tuple(groups))
    machine, table = FormMachine(bound, types), TransitionTable(bound)
    fired = 0
    for group in bound.groups:
        for one in group.transitions:
            for case in cases(bound, types, group, one.sources[0], seed=4, count=40):
                by_machine = outcome(machine, case, one.id)
                assert by_machine == outcome(table, case, one.id), f"{group.id} {one.id}"
                fired += isinstance(by_machine, tuple) and by_machine[0]
    # A fact that the engine owns is never forgotten: then nothing fires.
    assert bool(fired) is ("forgets" not in change)
