"""Messages: read back as they were written, and refused where a byte is odd."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.canonical import canonical
from hitproof.engine.offers import MOST, Offer
from hitproof.engine.ranks import Offered
from hitproof.engine.ranks.messages import MAX_BYTES, PHASES, Message, Vote, decode, encode
from hitproof.spec.price import UNKNOWN_PRICE

TEXTS = st.text(max_size=40)
COUNTS = st.integers(0, 2**40)
OFFERS = st.builds(
    Offer, st.integers(0, UNKNOWN_PRICE), st.integers(-1, 3), st.integers(0, 10), plan=TEXTS, epochs=TEXTS
)
OFFERED = st.builds(Offered, TEXTS, TEXTS, st.dictionaries(COUNTS, OFFERS, max_size=6))
VOTES = st.builds(Vote, st.booleans(), TEXTS, TEXTS, TEXTS, TEXTS)
MESSAGES = st.one_of(
    st.builds(Message, COUNTS, st.just("offer"), COUNTS, OFFERED),
    st.builds(Message, COUNTS, st.sampled_from(PHASES), COUNTS, VOTES),
)
VOTE = Message(3, "vote", 1, Vote(True, "about", "plan", "epochs"))
OFFER = Message(3, "offer", 1, Offered("prompt", "rules", {64: Offer(7, -1, 0, "plan", "epochs")}))


@given(MESSAGES)
def test_what_is_written_is_read_back(message: Message) -> None:
    """Every message, an unknown price too, is equal after the way over the wire."""
    assert message == decode(encode(message))


@given(st.one_of(st.binary(max_size=200), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(canonical)))
def test_no_bytes_make_it_raise(content: bytes) -> None:
    """Whatever comes is a message or a sentence."""
    assert isinstance(decode(content), str | Message)


@given(st.data())
def test_no_two_texts_are_one_message(data: st.DataObject) -> None:
    """A byte that is changed, added or left out makes another message or none."""
    content = encode(data.draw(st.sampled_from([VOTE, OFFER])))
    place = data.draw(st.integers(0, len(content) - 1))
    odd = data.draw(st.binary(max_size=2))
    changed = content[:place] + odd + content[place + 1 :]
    read = decode(changed)
    assert changed == content or isinstance(read, str) or (read not in (VOTE, OFFER) and encode(read) == changed)


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"v": True},
        {"turn": -1},
        {"turn": 1.0},
        {"turn": 2**41},
        {"rank": "1"},
        {"phase": "offered"},
        {"phase": ["vote"]},
        {"body": [1, "", "", "", ""]},
        {"body": [True, "", "", ""]},
        {"body": [True, "", "", "", None]},
        {"body": [True, "a" * 201, "", "", ""]},
        {"more": 1},
    ],
)
def test_a_vote_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    """Other versions, fields, types and sizes are no messages."""
    assert isinstance(decode(canonical({**json.loads(encode(VOTE)), **change})), str)


@pytest.mark.parametrize(
    "entry",
    [
        [64, -1, -1, 0, "", ""],
        [64, 1.5, -1, 0, "", ""],
        [64, UNKNOWN_PRICE, -1, 0, "", ""],
        [True, 1, -1, 0, "", ""],
        [64, 1, -2, 0, "", ""],
        [64, 1, -1, 0, ""],
        [64, 1, -1, 0, "", 3],
        "",
    ],
)
def test_an_offer_of_another_shape_is_refused(entry: Any) -> None:
    """Prices, lengths and levels outside their domains are no offers; a length stands once, the longest first."""
    read = json.loads(encode(OFFER))
    assert isinstance(decode(canonical({**read, "body": ["", "", [entry]]})), str)
    assert isinstance(decode(canonical({**read, "phase": "vote"})), str)
    whole = [64, 1, -1, 0, "", ""]
    for entries in ([whole, whole], [[32, *whole[1:]], whole]):
        assert isinstance(decode(canonical({**read, "body": ["", "", entries]})), str)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"1" * 10_000, b" " * (MAX_BYTES + 1), b"\xff", b"NaN", b""])
def test_hostile_bytes_are_refused(content: bytes) -> None:
    """Deep, long, huge and broken content is a sentence."""
    assert isinstance(decode(content), str)


def test_of_many_offers_the_longest_and_length_0_are_told() -> None:
    """A message never passes its cap, and what is told of too many offers is still what was offered."""
    lengths = {length: Offer(UNKNOWN_PRICE - 1, -1, 0, "p" * 32, "e" * 32) for length in range(2 * MOST)}
    content = encode(Message(1, "offer", 0, Offered("s" * 32, "r" * 64, lengths)))
    assert len(content) <= MAX_BYTES
    read = decode(content)
    assert isinstance(read, Message) and isinstance(read.body, Offered)
    assert {0, *range(MOST, 2 * MOST)} == set(read.body.lengths)


def test_a_message_that_is_too_long_is_refused_for_it() -> None:
    """However well it is written otherwise."""
    entry = [1, -1, 0, "p" * 200, "e" * 200]
    lengths = [[length, *entry] for length in range(MOST, 0, -1)]
    content = canonical({**json.loads(encode(OFFER)), "body": ["", "", lengths]})
    assert len(content) > MAX_BYTES
    assert "more than" in str(decode(content))
    assert isinstance(decode(canonical({**json.loads(encode(OFFER)), "body": ["", "", lengths[:1000]]})), Message)
