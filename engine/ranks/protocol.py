"""Runs turns over a transport: every rank calls the same methods for the same prompts."""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic, Protocol, TypeVar

from hitproof.engine.choosing import Order
from hitproof.engine.ranks.messages import PHASES
from hitproof.engine.ranks.turn import Ask, Heard, Joint, Member, Seat, take_turn, tell_end
from hitproof.spec.errors import InternalError

__all__ = ["Place", "Ranks", "Transport"]

P = TypeVar("P")
R = TypeVar("R")

Place = tuple[int, int]
"""Number of the turn, and of the exchange within it; grows from exchange to exchange."""


class Transport(Protocol):
    """Carries messages between the ranks of one group. Messages may be lost, never changed."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def exchange(self, place: Place, message: bytes, timeout_s: float) -> Heard:
        """Tell everybody one's part, and hear theirs.

        Args:
            place: Which exchange. What others said at an earlier place is dropped; a rank that is at a later one has
                nothing to say any more at this one.
            message: One's own part.
            timeout_s: How long to wait, in seconds; 0 to tell only, as far as that can be done without waiting.

        Returns:
            The parts by rank; None for a rank that is lost, is elsewhere, or said nothing in time.
        """
        ...


class Ranks(Generic[P]):
    """One rank's side of the group.

    After a failed turn nothing may be launched before the next go, not even a computation from the first token on:
    another rank may still be on its way to launch what failed here. A new turn with `at_most=0` agrees on that.

    Args:
        member: The rank's own cache.
        transport: To the other ranks.
        order: The rulebook's order of choosing.
        message_s: How long a rank may be late for an exchange, in seconds; later counts as failed.
        prepare_s: The same for the votes, which wait for the repairs of the slowest rank.
    """

    def __init__(
        self,
        member: Member[P],
        transport: Transport,
        order: Order,
        message_s: float = 5.0,
        prepare_s: float = 60.0,
    ) -> None:
        self._member, self._transport, self._order = member, transport, order
        self._wait = {"offer": message_s, "vote": prepare_s, "go": message_s, "done": prepare_s}
        self._turn = -1

    def agree(self, prompt: P, turn: int, at_most: int | None = None) -> Joint:
        """Agree on a length, prepare and commit, or give everything back.

        Args:
            prompt: What is asked for, the same on every rank.
            turn: The same number on every rank, greater than every earlier one: of the request, say.
            at_most: No longer lengths than this one, in tokens.

        Raises:
            InternalError: The number does not grow.
        """
        if turn <= self._turn:
            raise InternalError(f"turn {turn} does not come after turn {self._turn}")
        self._turn = turn
        seat = Seat(turn, self._transport.rank, self._transport.size)
        try:
            return self._drive(turn, take_turn(self._member, prompt, seat, self._order, at_most))
        except BaseException:
            self._member.abort()
            raise

    def finish(self, joint: Joint, *, used: bool) -> bool:
        """Whether every rank has used what was agreed on; what was computed may be given out only then.

        The member still holds what it held, since a device may still be reading; the caller ends that.

        Args:
            joint: What `agree` ended with, with a go.
            used: Whether this rank's own launch went well.
        """
        return joint.go and self._drive(joint.seat.turn, tell_end(joint, used=used))

    def _drive(self, turn: int, steps: Generator[Ask, Heard, R]) -> R:
        try:
            ask = next(steps)
            while True:
                place = (turn, PHASES.index(ask.phase))
                timeout = self._wait[ask.phase] if ask.wait else 0.0
                ask = steps.send(self._transport.exchange(place, ask.message, timeout))
        except StopIteration as end:
            ended: R = end.value
            return ended
