"""The table of transitions: keys, bulk changes and the functions behind them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from hitproof.engine.event import EventContext, ImpossibleEventError
from hitproof.engine.table import TransitionTable
from tests.architecture.source_tree import LINKS
from tests.engine.event_cases import PROFILES, bound_to, types_of

PROFILE = "gemma-3-27b"
TYPES = types_of(PROFILE)
TABLE = TransitionTable(bound_to(PROFILE))


def segment(form: str = "full", group: str = "full", **facts: object) -> Any:
    """A segment with known facts of the engine's own."""
    usual = {
        "tier": "device",
        "bound_for": "device",
        "generation": 1,
        "published": True,
        "pins": 0,
        "epoch": 1,
        "form": form,
    }
    return TYPES.segment_of(group, usual | facts)


def context(**arguments: object) -> EventContext:
    """Run time, kernel and arguments, without co-owners."""
    return EventContext(TYPES.runtime(pool_epoch=1), TYPES.kernel(), arguments, None, True)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_transition_has_its_row(profile: str) -> None:
    """Keys are (group, form, event), one for each source form, in file order."""
    bound = bound_to(profile)
    expected: dict[tuple[str, str, str], list[Any]] = {}
    for group in bound.groups:
        for one in group.transitions:
            for source in dict.fromkeys(one.sources):
                expected.setdefault((group.id, source, one.id), []).append(one)
    rows = TransitionTable(bound).rows
    assert expected == {key: [row.transition for row in found] for key, found in rows.items()}


def test_bulk_change_answers_for_each_segment() -> None:
    """Those that may be evicted are, pinned ones stay, and the answers say which."""
    many = [segment(), segment(pins=1), segment("demoted"), segment("windowed", "window")]
    assert [True, False, True, True] == TABLE.fire_all(many, "evict", context())
    assert ["discarded", "full", "discarded", "discarded"] == [one.form for one in many]
    assert [2, 1, 2, 2] == [one.epoch for one in many]


def test_bulk_change_reads_each_segments_own_context() -> None:
    """A function gives each segment its context."""
    many = [segment("discarded"), segment("discarded")]
    addresses = iter([512, 1024])
    assert [True, True] == TABLE.fire_all(many, "allocate", lambda _: context(address=next(addresses)))
    assert [512, 1024] == [one.address for one in many]


def test_an_impossible_event_stops_a_bulk_change_before_it_begins() -> None:
    """None is changed where one cannot be."""
    many = [segment(), segment("pending")]
    with pytest.raises(ImpossibleEventError, match="'evict' cannot happen"):
        TABLE.fire_all(iter(many), "evict", context())
    assert ["full", "pending"] == [one.form for one in many]
    with pytest.raises(ImpossibleEventError):
        TABLE.fire(many[1], "evict", context())


def test_nothing_is_assigned_where_an_effect_fails() -> None:
    """A counter at its end refuses the event with all facts as they were."""
    one = segment(generation=2**40, measured="m")
    before = one.as_dict()
    assert not TABLE.fire(one, "defragment", context(address=512))
    assert before == one.as_dict()


def test_the_table_does_not_need_the_state_machine_library() -> None:
    """Bulk changes start without the library's import time."""
    code = "import sys; import hitproof.engine.table; sys.exit('transitions' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(LINKS.parent)}
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode
