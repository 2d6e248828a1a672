"""The room of ranks that are threads: what is heard at which place."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from hitproof.engine.ranks import Room

NOW = 0.0
SOON = 0.05
LONG = 60.0


def test_what_was_said_at_another_place_is_not_heard() -> None:
    """Earlier words are dropped; later ones end the wait and are heard at their own place."""
    room = Room(2)
    one, other = room.seat(0), room.seat(1)
    for place in ((1, 0), (1, 1), (2, 0)):
        other.exchange(place, f"other {place}".encode(), NOW)
    assert [b"one", b"other (1, 1)"] == list(one.exchange((1, 1), b"one", LONG))
    assert [b"one", None] == list(one.exchange((1, 3), b"one", LONG))
    assert [b"one", b"other (2, 0)"] == list(one.exchange((2, 0), b"one", LONG))


def test_what_was_said_before_does_not_end_the_wait() -> None:
    """An old message that nobody heard is not taken for an answer that is still to come."""
    room = Room(2)
    room.seat(1).exchange((1, 0), b"old", NOW)
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(room.seat(0).exchange, (1, 1), b"one", LONG)
        time.sleep(SOON)
        room.seat(1).exchange((1, 1), b"other", NOW)
        assert [b"one", b"other"] == list(heard.result(LONG))


def test_who_says_nothing_in_time_is_not_heard() -> None:
    """The others are; a rank that has left is not waited for, and its last words still come."""
    room = Room(3)
    seats = [room.seat(rank) for rank in range(3)]
    seats[1].exchange((1, 0), b"1", NOW)
    assert [b"0", b"1", None] == list(seats[0].exchange((1, 0), b"0", SOON))
    seats[1].exchange((1, 1), b"last", NOW)
    seats[1].close()
    seats[2].close()
    assert [b"0", b"last", None] == list(seats[0].exchange((1, 1), b"0", LONG))
    assert [b"0", None, None] == list(seats[0].exchange((1, 2), b"0", LONG))


def test_many_threads_hear_each_other() -> None:
    """Eight ranks exchange two hundred times, and each hears everybody at every place."""
    size, turns = 8, 200
    room = Room(size)

    def talk(rank: int) -> list[list[bytes | None]]:
        seat = room.seat(rank)
        return [list(seat.exchange((turn, 0), f"{rank} {turn}".encode(), LONG)) for turn in range(turns)]

    with ThreadPoolExecutor(size) as pool:
        heard = list(pool.map(talk, range(size)))
    wanted = [[f"{rank} {turn}".encode() for rank in range(size)] for turn in range(turns)]
    assert [wanted] * size == heard
