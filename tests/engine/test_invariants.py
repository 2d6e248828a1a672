"""Invariants of the machine, asked of a state."""

from __future__ import annotations

import pytest

from hitproof.engine.invariants import owns_block, violated_invariants
from tests.engine.state_cases import Build, build_of

OWNER = "blocks_have_one_owner"


def two(**facts: object) -> Build:
    """Two segments of one group at one address; the second has the stated facts."""
    build = build_of("homogeneous", 65)
    build.segment("kv", address=4096)
    build.segment("kv", **{"address": 4096, **facts})
    return build


def violated(build: Build) -> list[str]:
    """Ids of what the state violates."""
    return violated_invariants(build.engine, build.state())


def test_segments_at_addresses_of_their_own_violate_nothing() -> None:
    """Each has its block."""
    assert [] == violated(two(address=8192))


def test_sealed_segments_of_one_identity_may_share_a_block() -> None:
    """Neither will ever be written again, and both say the same."""
    assert [] == violated(two())


@pytest.mark.parametrize(
    ("fact", "value"),
    [("sealed", False), ("sealed", None), ("weights", "other"), ("salt", "other"), ("adapter", None)],
)
def test_a_shared_block_that_may_be_written_or_read_as_another_is_reported(fact: str, value: object) -> None:
    """A co-owner that is not sealed, or of another or unknown identity, violates the single ownership."""
    assert [OWNER] == violated(two(**{fact: value}))


def test_another_object_never_shares() -> None:
    """Rows of attention and a recurrent state cannot be the same bytes."""
    build = build_of("stored", 65)
    build.segment("kv", address=4096)
    build.segment("rec", address=4096)
    assert [OWNER] == violated(build)


def test_an_unknown_address_might_be_anybodys() -> None:
    """What is not known is not surely apart."""
    assert [OWNER] == violated(two(address=None, sealed=False))


@pytest.mark.parametrize("form", ["discarded", "demoted", "quarantined"])
def test_a_segment_without_a_device_block_owns_none(form: str) -> None:
    """Its remembered address is no claim."""
    build = two(form=form, sealed=False)
    assert not owns_block(build.pieces["kv"][1])
    assert [] == violated(build)


def test_a_moving_segment_owns_the_block_it_leaves() -> None:
    """On its way down it still has the device block; on its way up it has none yet."""
    down, up = two(form="moving"), two(form="moving", tier="host")
    assert owns_block(down.pieces["kv"][1])
    assert not owns_block(up.pieces["kv"][1])
