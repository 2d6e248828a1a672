"""The lengths that are proposed."""

from __future__ import annotations

import pytest

from hitproof.engine.candidates import MAX_REGULAR, proposed_lengths, resumable_lengths
from hitproof.engine.decide import Engine
from hitproof.engine.plain import plain_decide
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from tests.engine.state_cases import Build, build_of, small_profile


def proposed(build: Build, matched: int | None = None) -> list[int]:
    """Lengths proposed for the state."""
    return proposed_lengths(build.state(matched))


def resumable(build: Build) -> list[int]:
    """Those at which every group may resume."""
    state = build.state()
    return resumable_lengths(build.engine.judge.groups, state, proposed_lengths(state))


def restarting(resumable: object) -> Build:
    """A prompt of 97 tokens, hash unit 16, whose states begin anew at every 32nd token."""
    source = read_source("mixed_attention")
    for key, value in (("needed", "0 < length % 32"), ("resumable", resumable)):
        source, _ = source.edited(("objects", "recurrent_state", key), value)
    model = small_profile("stored")
    assert model is not None
    return Build(Engine(bind_rulebook(resolve(source), model)), 97, 16)


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
    assert [32] == resumable(build)


def test_checkpoints_of_one_group_are_united() -> None:
    """A group's boundaries are those of all its segments."""
    build = build_of("stored", 97, 16)
    for end in (32, 64):
        build.segment("rec", end=end)
        build.segment("other", end=end)
    assert [64, 32] == resumable(build)


def test_a_huge_prompt_proposes_a_bounded_list() -> None:
    """Of 2**30 tokens with a unit of one only the longest lengths are proposed, and every stored boundary."""
    build = build_of("homogeneous", 2**30)
    build.segment("kv", marks=frozenset({5, 2**29}))
    lengths = proposed(build)
    assert MAX_REGULAR + 2 == len(lengths)
    assert [2**30 - 1, 2**30 - 2] == lengths[:2]
    assert [2**29, 5] == lengths[-2:]


@pytest.mark.parametrize("resumes", [{"stored": "self.marks"}, {"every": "48"}])
def test_where_nothing_is_read_a_group_may_resume_anyhow(resumes: object) -> None:
    """At a length at which a state begins anew, no stored one is asked for, and the choice is the plain one."""
    build = restarting(resumes)
    build.segment("kv", marks=frozenset(range(16, 97, 16)))
    for name in ("rec", "other"):
        build.segment(name, end=48)
    assert [96, 64, 48, 32] == resumable(build)
    decision = build.engine.decide(build.state())
    assert ("reuse", 96) == (decision.verdict, decision.usable)
    assert (decision.verdict, decision.usable) == _plain(build)
    build.pieces["kv"][0].end = 63
    assert ("reuse", 48) == _plain(build)
    decision = build.engine.decide(build.state())
    assert ("reuse", 48) == (decision.verdict, decision.usable)


def test_where_every_group_is_read_only_common_boundaries_are_left() -> None:
    """The state of a group that is read at every length asks for its stored boundaries as before."""
    build = restarting({"stored": "self.marks"})
    build.segment("kv", marks=frozenset(range(16, 97, 16)))
    build.segment("rec", end=48)
    build.segment("other", end=80)
    assert [96, 64, 32] == resumable(build)


def _plain(build: Build) -> tuple[str, int]:
    """Verdict and usable length of the decision that tries every length."""
    decision = plain_decide(build.bound, build.state())
    return decision.verdict, decision.usable
