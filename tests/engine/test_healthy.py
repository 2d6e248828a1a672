"""Faultless segments, and the faults that are stated in them."""

from __future__ import annotations

import pytest

from tests.engine.state_cases import SHIPPED, SMALL, build_of


@pytest.mark.parametrize("name", [*SHIPPED, *SMALL])
def test_healthy_segments_are_reused_whole(name: str) -> None:
    """One healthy segment in each group gives the longest length there is, without any repair."""
    decision = build_of(name, 1025, 1024).all().engine.decide(build_of(name, 1025, 1024).all().state())
    assert ("reuse", 1024, 1024, ()) == (decision.verdict, decision.usable, decision.logical, decision.failed)


def test_healthy_values_follow_what_is_stated() -> None:
    """A stated end moves the boundary, the match and the bytes with it."""
    segment = build_of("homogeneous", 65).segment("kv", end=48)
    assert (48, frozenset({48}), 48, 48 * 64) == (segment.end, segment.marks, segment.matched, segment.bytes)


def test_a_stated_none_is_unknown_and_spreads() -> None:
    """What is computed from an unknown value is unknown, unless it is stated itself."""
    segment = build_of("homogeneous", 65).segment("kv", end=None, matched=64)
    assert (None, None, None, 64) == (segment.end, segment.marks, segment.bytes, segment.matched)


def test_values_outside_the_domain_are_unknown() -> None:
    """A stated value is admitted like any other."""
    segment = build_of("homogeneous", 65).segment("kv", generation=-1, weights=1.5)
    assert (None, None) == (segment.generation, segment.weights)


def test_a_peer_gives_its_values() -> None:
    """An index is made for the entries that it stands beside; without them their fingerprint is unknown."""
    build = build_of("pooled", 65)
    assert build.segment("index").kv_content is None
    build.segment("entries", recorded="c7", generation=4)
    index = build.segment("index")
    assert ("c7", 4) == (index.kv_content, index.kv_generation)


def test_a_strange_name_is_refused() -> None:
    """A fact that the object does not have is a mistake of the caller."""
    with pytest.raises(AttributeError, match="window_size"):
        build_of("homogeneous", 65).segment("kv", window_size=3)
