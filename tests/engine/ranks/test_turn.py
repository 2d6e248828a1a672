"""One rank's turn among peers that say what they like: it goes only with those that heard what it heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.ranks import Joint, Offered, Ranks
from hitproof.engine.ranks.messages import PHASES, Message, Phase, Vote, decode, encode
from hitproof.engine.ranks.protocol import Place
from hitproof.engine.ranks.turn import Heard, Seat, take_turn
from tests.engine.ranks.simulated import ORDER, ToyMember

Change = Callable[[Message], Message]


def echoed(change: Change, phase: Phase) -> Joint:
    """A turn with a peer that says the same as this rank, changed in one exchange."""
    steps = take_turn(ToyMember({0: 9, 64: 1}), "prompt", Seat(7, 0, 2), ORDER)
    ask = next(steps)
    try:
        while True:
            mine = decode(ask.message)
            assert isinstance(mine, Message)
            peer = replace(mine, rank=1)
            said = encode(change(peer) if ask.phase == phase else peer)
            ask = steps.send([ask.message, said] if ask.wait else [None, None])
    except StopIteration as end:
        joint: Joint = end.value
        return joint


def voted(**changed: Any) -> Change:
    """The same vote with other digests."""

    def change(message: Message) -> Message:
        assert isinstance(message.body, Vote)
        return replace(message, body=replace(message.body, **changed))

    return change


def asked(**changed: Any) -> Change:
    """The same offers, about something else."""

    def change(message: Message) -> Message:
        assert isinstance(message.body, Offered)
        return replace(message, body=replace(message.body, **changed))

    return change


def test_a_peer_that_says_the_same_makes_it_go() -> None:
    """Without a change there is a go, so that the changes below are what prevents it."""
    assert all(echoed(lambda message: message, phase).go for phase in PHASES[:3])


@pytest.mark.parametrize(
    ("change", "phase"),
    [
        (asked(subject="another prompt"), "offer"),
        (asked(rulebook="other rules"), "offer"),
        (voted(about="another agreement"), "vote"),
        (voted(about="another record"), "go"),
        *((lambda message: replace(message, turn=6), phase) for phase in PHASES[:3]),
        *((lambda message: replace(message, rank=0), phase) for phase in PHASES[:3]),
        *((lambda message: replace(message, phase="done", body=Vote(True, "")), phase) for phase in PHASES[:3]),
    ],
)
def test_a_peer_that_is_elsewhere_or_heard_otherwise_prevents_it(change: Change, phase: Phase) -> None:
    """Another prompt, rulebook, agreement, record, turn, exchange or rank is no part of this one."""
    joint = echoed(change, phase)
    assert (False, 0, "") == (joint.go, joint.length, joint.record)
    assert joint.why


def test_the_record_tells_what_every_rank_holds() -> None:
    """Another repair, or another epoch, in one vote makes another record, which the others' go would not match."""
    records = {echoed(change, "vote").record for change in (voted(), voted(plan="p"), voted(epochs="e"))}
    # The peer echoes this rank's record, so each of them goes.
    assert 3 == len(records) and "" not in records


class Interrupted:
    """A transport in which the process is told to stop, in the second exchange."""

    rank, size = 0, 1

    def exchange(self, place: Place, message: bytes, timeout_s: float) -> Heard:
        if place[1] == 1:
            raise KeyboardInterrupt
        return [message]


def test_an_interrupt_gives_everything_back() -> None:
    """Whatever breaks off a turn, the member is told."""
    member = ToyMember({0: 9, 64: 1})
    with pytest.raises(KeyboardInterrupt):
        Ranks(member, Interrupted(), ORDER).agree("prompt", 1)
    assert (None, 1) == (member.held, member.aborted)
