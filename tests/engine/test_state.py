"""Which segments a length asks, and for which tokens each one answers."""

from __future__ import annotations

from typing import Any

from hitproof.engine.state import FAR, select_pieces
from tests.engine.state_cases import bound_to, engine_of

KV = bound_to("homogeneous").group("kv")
STATE = bound_to("pooled").group("state")


def piece(start: int | None, end: int | None, group: str = "kv") -> Any:
    """A segment of which only the span counts."""
    return engine_of("homogeneous").types.segment_of(group, {"start": start, "end": end})


def shares(pieces: list[Any], length: int) -> list[tuple[int, int, int]]:
    """Index and share of each piece that answers for a full prefix of `length`."""
    return [(index, first, to) for index, _, first, to in select_pieces(KV, pieces, length, 0, length)]


def test_one_piece_answers_for_everything() -> None:
    """A lone segment is asked even where it lies outside of what is needed."""
    assert [(0, 0, FAR)] == shares([piece(64, 96)], 32)


def test_shares_of_a_chain_meet() -> None:
    """Each piece answers from where the one before it ended; the ends are open."""
    chain = [piece(0, 32), piece(32, 64), piece(64, 96)]
    assert [(0, 0, 32), (1, 32, 64), (2, 64, FAR)] == shares(chain, 96)
    assert [(0, 0, 32), (1, 32, FAR)] == shares(chain, 64)


def test_a_gap_belongs_to_the_piece_behind_it() -> None:
    """The share of the piece behind a gap starts before the piece does, so that its own check fails."""
    assert [(0, 0, 32), (1, 32, FAR)] == shares([piece(0, 32), piece(40, 96)], 96)


def test_a_piece_of_unknown_span_is_no_link() -> None:
    """Its neighbours answer for its tokens, and cannot."""
    assert [(0, 0, 32), (2, 32, FAR)] == shares([piece(0, 32), piece(32, None), piece(64, 96)], 96)


def test_nothing_fits_where_no_piece_touches_what_is_needed() -> None:
    """No index, no segment: the caller puts a record of nothing in its place."""
    assert [(-1, 0, FAR)] == shares([piece(64, 96), piece(96, 128)], 32)


def test_of_checkpoints_the_first_that_reaches_the_length_is_asked() -> None:
    """A state belongs to a length; where none reaches it, the last one says what is missing."""
    states = [piece(0, 16), piece(0, 32), piece(0, 64)]
    asked = {length: select_pieces(STATE, states, length, 0, length)[0][0] for length in (8, 16, 17, 32, 64, 65)}
    assert {8: 0, 16: 0, 17: 1, 32: 1, 64: 2, 65: 2} == asked
    assert [(-1, None, 0, FAR)] == select_pieces(STATE, [], 8, 0, 8)
