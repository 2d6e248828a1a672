"""Early demotion chooses what the rules choose: idle, unpinned, above the high-water mark, cheapest return first."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.policy import EarlyDemotion
from hitproof.engine.replay.serving import Serving
from tests.engine.state_cases import engine_of

V4 = "deepseek-v4-flash"


def at_rest(**facts: Any) -> tuple[Any, Any]:
    """A healthy segment of V4's entries that rested for two minutes on a device that is full, and its run time."""
    engine = engine_of(V4)
    serving = Serving(engine.bound, engine.types)
    serving.runtime.capacity_blocks, serving.runtime.filled_blocks = 100, 95
    segment = serving.moulds[0]["csa_entries"].cut(0, 512, 0)
    segment.idle_us = 120e6
    for name, value in facts.items():
        setattr(segment, name, value)
    return segment, serving.runtime


def chosen(segments: list[Any], runtime: Any) -> list[tuple[Any, str]]:
    """What the state-aware policy lets go."""
    return EarlyDemotion(engine_of(V4).bound, "state_aware").chosen(segments, runtime)


def test_what_rests_goes_to_the_host() -> None:
    """Above the mark, and idle for longer than the limit."""
    segment, runtime = at_rest()
    assert [(segment, "host")] == chosen([segment], runtime)


@pytest.mark.parametrize("facts", [{"idle_us": 1.0}, {"idle_us": None}, {"pins": 1}, {"form": "pending"}])
def test_what_is_in_use_stays(facts: dict[str, Any]) -> None:
    """Used a moment ago or at an unknown time, pinned, or not committed."""
    segment, runtime = at_rest(**facts)
    assert [] == chosen([segment], runtime)


def test_nothing_goes_below_the_mark() -> None:
    """There is room."""
    segment, runtime = at_rest()
    runtime.filled_blocks = 94
    assert [] == chosen([segment], runtime)


def test_the_least_rank_goes_first() -> None:
    """Longer idle before shorter, and what has no price last."""
    segments = [at_rest(idle_us=idle)[0] for idle in (70e6, 300e6)] + [at_rest(bytes=None)[0]]
    runtime = at_rest()[1]
    assert [segments[1], segments[0], segments[2]] == [one for one, _ in chosen(segments, runtime)]


def test_baselines_demote_nothing_early() -> None:
    """They have no such rule."""
    assert not EarlyDemotion(engine_of(V4).bound, "always_load").asks
