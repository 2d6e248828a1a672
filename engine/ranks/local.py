"""Ranks as threads of one process: a mailbox for each pair of them."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition

from hitproof.engine.ranks.protocol import Place
from hitproof.engine.ranks.turn import Heard

__all__ = ["LocalTransport", "Room"]


class Room:
    """Where the ranks of one process meet; holds what was said and not yet heard.

    Args:
        size: How many ranks there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._changed = Condition()
        self._gone: set[int] = set()
        self._said: list[list[deque[tuple[Place, bytes]]]] = [[deque() for _ in range(size)] for _ in range(size)]

    def seat(self, rank: int) -> LocalTransport:
        """The transport of one rank."""
        return LocalTransport(self, rank)

    def leave(self, rank: int) -> None:
        """Nobody waits for this rank any more; what it said before can still be heard."""
        with self._changed:
            self._gone.add(rank)
            self._changed.notify_all()

    def exchange(self, rank: int, place: Place, message: bytes, timeout_s: float) -> Heard:
        """As `Transport.exchange`, for one rank."""
        with self._changed:
            for box in self._said:
                box[rank].append((place, message))
            self._changed.notify_all()
            if timeout_s <= 0:
                return [None] * self.size
            until = time.monotonic() + timeout_s
            while not all(self._ready(rank, sender, place) for sender in range(self.size)):
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return [self._take(rank, sender, place) for sender in range(self.size)]

    def _ready(self, rank: int, sender: int, place: Place) -> bool:
        """Whether the sender has said something here, is past this place, or is gone. Drops what came before."""
        box = self._said[rank][sender]
        while box and box[0][0] < place:
            box.popleft()
        return bool(box) or sender in self._gone

    def _take(self, rank: int, sender: int, place: Place) -> bytes | None:
        box = self._said[rank][sender]
        while box and box[0][0] < place:
            box.popleft()
        return box.popleft()[1] if box and box[0][0] == place else None


class LocalTransport:
    """One rank's seat in a room.

    Args:
        room: Where the others are.
        rank: Who one is.
    """

    def __init__(self, room: Room, rank: int) -> None:
        self._room, self._rank = room, rank

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._room.size

    def exchange(self, place: Place, message: bytes, timeout_s: float) -> Heard:
        return self._room.exchange(self._rank, place, message, timeout_s)

    def close(self) -> None:
        """Leave the room: the others hear at once that nothing comes any more."""
        self._room.leave(self._rank)
