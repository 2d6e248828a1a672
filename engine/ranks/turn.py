"""One turn of one rank, as messages to exchange and answers to wait for; it does no input or output itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hitproof.engine.canonical import digest_of
from hitproof.engine.choosing import Order
from hitproof.engine.offers import Offer
from hitproof.engine.ranks.agree import Offered, agree
from hitproof.engine.ranks.messages import PHASES, Message, Phase, Vote, decode, encode

__all__ = ["Ask", "Heard", "Held", "Joint", "Member", "Seat", "take_turn", "tell_end"]

P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)

Heard = Sequence[bytes | None]
"""What each rank said in an exchange, by rank, one's own part too; None where nothing came in time."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a rank holds once it has prepared: digests of the repairs that ran and of the epochs under its lease."""

    plan: str
    epochs: str


class Member(Protocol[P_contra]):
    """One rank's cache, as the turn needs it. A turn makes its calls in this order, and `abort` after any of them."""

    def offers(self, prompt: P_contra, at_most: int | None) -> Offered:
        """Look the prompt up and say at which lengths it could be resumed, none longer than `at_most`."""
        ...

    def prepare(self, prompt: P_contra, length: int, offer: Offer) -> Held | str:
        """Lease and repair privately what a use at `length` reads; a text where that fails, and then nothing is held.

        Args:
            length: One of the lengths that were offered, in tokens.
            offer: What was offered for it; where it no longer stands, preparing fails.
        """
        ...

    def commit(self) -> bool:
        """Publish what was repaired, and keep the lease; whether all that is leased still is what was checked."""
        ...

    def abort(self) -> None:
        """Give back what is held; what was published stays in the cache. Where nothing is held, nothing happens."""
        ...


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a rank sits in a turn.

    Args:
        turn: Number of the turn, the same on every rank and greater than every earlier one.
        rank, size: Who one is, of how many.
    """

    turn: int
    rank: int
    size: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One exchange: what to say, and whether to wait for the others' parts or only to tell one's own."""

    phase: Phase
    message: bytes
    wait: bool = True


@dataclass(frozen=True, slots=True)
class Joint:
    """What a turn ends with.

    Args:
        seat: Whose turn it was.
        go: Whether `length` may be used. Without it nothing is held, and nothing may be launched for this turn.
        length: Tokens that every rank reuses; 0 where everything is computed, and where there is no go.
        record: Equal on all ranks that go: length, repairs and epochs of every rank.
        why: A plain sentence where there is no go.
        ranks: Who caused that; empty where nobody did in particular.
    """

    seat: Seat
    go: bool
    length: int = 0
    record: str = ""
    why: str = ""
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Failure:
    why: str
    ranks: tuple[int, ...] = ()


def take_turn(
    member: Member[P], prompt: P, seat: Seat, order: Order, at_most: int | None = None
) -> Generator[Ask, Heard, Joint]:
    """Offer, agree, prepare, vote, commit, and ask for the go.

    Nobody coordinates: each rank hears all the others and comes to the same end by itself. Whoever misses one part, or
    hears one no, gives everything back and says no in the next exchange, so that others need not wait for it. An error
    of the member is raised once the others have heard of it.

    Where a rank is lost between the votes and the go, those that heard every vote have published what they repaired,
    and the others have not. Neither is wrong: what is published is an entry of one rank's own cache, judged anew by
    the next look-up, and nobody uses it in this turn, since the go of the lost rank is missing. So nothing blocks, and
    no time-out can make one rank publish what another may not.

    Where a rank is lost during the last exchange, some may hold its go and others not. No exchange that can be cut off
    helps against that. Those that have it may launch, and `tell_end` keeps what they compute from being given out.

    Args:
        member: The rank's own cache.
        prompt: What is asked for.
        seat: Where the rank sits.
        order: The rulebook's order of choosing, between lengths.
        at_most: No longer lengths than this one, in tokens; 0 to compute everything.
    """
    return (yield from _Turn(member, seat).run(prompt, order, at_most))


def tell_end(joint: Joint, *, used: bool) -> Generator[Ask, Heard, bool]:
    """Tell the others that this rank has used what was agreed on, and hear whether all of them have.

    Only then may what was computed be given out. A rank whose peers went another way hears no, or nothing.
    """
    heard = yield Ask("done", _encode(joint.seat, "done", Vote(used, joint.record)))
    return not isinstance(_votes(joint.seat, "done", heard, joint.record), _Failure)


class _Turn(Generic[P]):
    def __init__(self, member: Member[P], seat: Seat) -> None:
        self._member, self._seat = member, seat
        self._next: Phase = "offer"

    def run(self, prompt: P, order: Order, at_most: int | None) -> Generator[Ask, Heard, Joint]:
        member, rank = self._member, self._seat.rank
        offer = yield from self._call(lambda: member.offers(prompt, at_most))
        heard = yield self._ask(offer)
        offered = _offered(self._seat, heard)
        agreed = offered if isinstance(offered, _Failure) else agree(offered, order)
        if isinstance(agreed, str):
            agreed = _Failure(agreed)
        if isinstance(agreed, _Failure):
            return (yield from self._leave(agreed))

        length, mine, about = agreed.length, agreed.offers[rank], agreed.digest
        held = yield from self._call(lambda: member.prepare(prompt, length, mine))
        vote = Vote(False, about, why=held) if isinstance(held, str) else Vote(True, about, held.plan, held.epochs)
        heard = yield self._ask(vote)
        votes = _votes(self._seat, "vote", heard, about)
        if isinstance(votes, _Failure):
            return (yield from self._leave(votes))

        record = digest_of([about, [[one.plan, one.epochs] for one in votes]])
        committed = yield from self._call(member.commit)
        heard = yield self._ask(Vote(committed, record))
        goes = _votes(self._seat, "go", heard, record)
        if isinstance(goes, _Failure):
            return (yield from self._leave(goes))
        return Joint(self._seat, True, length, record)

    def _ask(self, body: Offered | Vote, *, wait: bool = True) -> Ask:
        phase = self._next
        self._next = PHASES[min(PHASES.index(phase) + 1, len(PHASES) - 1)]
        return Ask(phase, _encode(self._seat, phase, body), wait)

    def _call(self, call: Callable[[], R]) -> Generator[Ask, Heard, R]:
        """Call the member; where it raises, say so in the exchange that the others come to, before it goes on."""
        try:
            return call()
        except Exception:
            self._member.abort()
            yield self._ask(Vote(False, "", why="this rank failed"))
            raise

    def _leave(self, failure: _Failure) -> Generator[Ask, Heard, Joint]:
        self._member.abort()
        yield self._ask(Vote(False, "", why=failure.why), wait=False)
        return Joint(self._seat, False, why=failure.why, ranks=failure.ranks)


def _encode(seat: Seat, phase: Phase, body: Offered | Vote) -> bytes:
    return encode(Message(seat.turn, phase, seat.rank, body))


def _offered(seat: Seat, heard: Heard) -> list[Offered] | _Failure:
    bodies = _bodies(seat, "offer", heard)
    if isinstance(bodies, _Failure):
        return bodies
    offered = [body for body in bodies if isinstance(body, Offered)]
    no = tuple(rank for rank, body in enumerate(bodies) if isinstance(body, Vote))
    return _Failure("a rank offers nothing", no) if no else offered


def _votes(seat: Seat, phase: Phase, heard: Heard, about: str) -> list[Vote] | _Failure:
    """The votes of all ranks, every one of them a yes about this; else who failed."""
    bodies = _bodies(seat, phase, heard)
    if isinstance(bodies, _Failure):
        return bodies
    votes = [body for body in bodies if isinstance(body, Vote)]
    no = tuple(rank for rank, vote in enumerate(votes) if not vote.yes)
    if no:
        return _Failure(votes[no[0]].why or f"a rank says no in the exchange '{phase}'", no)
    apart = tuple(rank for rank, vote in enumerate(votes) if vote.about != about)
    return _Failure("a rank has heard something else", apart) if apart else votes


def _bodies(seat: Seat, phase: Phase, heard: Heard) -> list[Offered | Vote] | _Failure:
    silent = tuple(rank for rank, content in enumerate(heard) if content is None)
    if silent or len(heard) != seat.size:
        return _Failure(f"a rank said nothing in the exchange '{phase}'", silent)
    bodies: list[Offered | Vote] = []
    for rank, content in enumerate(heard):
        message = decode(content or b"")
        if isinstance(message, str):
            return _Failure(message, (rank,))
        if (message.turn, message.phase, message.rank) != (seat.turn, phase, rank):
            return _Failure("a rank is in another exchange", (rank,))
        bodies.append(message.body)
    return bodies
