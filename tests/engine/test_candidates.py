"""The lengths that are proposed."""

from __future__ import annotations

from hitproof.engine.candidates import MAX_REGULAR, proposed_lengths, resumable_lengths
from tests.engine.state_cases import Build, build_of


def proposed(build: Build, matched: int | None = None) -> list[int]:
    """Lengths proposed for the state."""
    return proposed_lengths(build.state(matched))


def test_hash_units_come_in_falling_order() -> None:
    """Multiples of the unit, the longest first, within the prompt less one token."""
    assert [96, 64, 32] == proposed(build_of("homogeneous", 128, 32))


def test_ends_and_stored_boundaries_are_added() -> None:
    """What a segment ends at, and what it has stored, is worth a look between two units."""
    build = build_of("homogeneous", 128, 64)
    build.segment("kv", end=77, marks=frozenset({50, 64, 127, 128}), matched=127)
    assert [127, 77, 64, 50] == proposed(build)


def test_what_did_not_match_is_not_proposed() -> None:
    """The deepest matching node bounds every length."""
    build = build_of("homogeneous", 128, 32)
    build.segment("kv", end=77)
    assert [64, 32] == proposed(build, 70)
    assert [] == proposed(build, 0)
    assert [] == proposed(build_of("homogeneous", 1), 0)


def test_stored_groups_leave_their_common_boundaries() -> None:
    """Intersection of sets: the shorter group's largest boundary is not enough."""
    build = build_of("stored", 97, 16)
    build.segment("kv")
    build.segment("rec", marks=frozenset({32, 48}), end=48)
    build.segment("other", marks=frozenset({32, 64, 96}))
    state = build.state()
    assert [32] == resumable_lengths(build.bound, state, proposed_lengths(state))


def test_checkpoints_of_one_group_are_united() -> None:
    """A group's boundaries are those of all its segments."""
    build = build_of("stored", 97, 16)
    for end in (32, 64):
        build.segment("rec", end=end)
        build.segment("other", end=end)
    state = build.state()
    assert [64, 32] == resumable_lengths(build.bound, state, proposed_lengths(state))


def test_a_huge_prompt_proposes_a_bounded_list() -> None:
    """Of 2**30 tokens with a unit of one only the longest lengths are proposed, and every stored boundary."""
    build = build_of("homogeneous", 2**30)
    build.segment("kv", marks=frozenset({5, 2**29}))
    lengths = proposed(build)
    assert MAX_REGULAR + 2 == len(lengths)
    assert [2**30 - 1, 2**30 - 2] == lengths[:2]
    assert [2**29, 5] == lengths[-2:]
