"""Actors that take turns by a seed: each has its own thread, one runs at a time, and a switch is only at a named point.

Whoever reaches a point hands a baton on to whom the seed names, perhaps itself. So a run is one sequence of steps,
however many threads there are, and the same seed gives the same sequence.
"""

from __future__ import annotations

import sys
import time
import traceback
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from threading import Lock, Thread
from typing import Literal, Protocol

from hitproof.engine.soak.journal import Journal
from hitproof.engine.soak.killed import Killed, Over

__all__ = ["Ending", "Failure", "Scheduler", "Turns", "failure_of"]

_STRETCH = (20, 2000)
"""Least and most steps for which the odds of the actors stay as they are."""
_ODDS = (0.0, 1.0, 1.0, 1.0, 10.0, 200.0)
"""What an actor's odds are drawn from: some starve for a stretch, some run on alone."""
_PATIENCE = 60.0
"""Seconds of real time without a step after which an actor counts as stuck."""


class Turns(Protocol):
    """An actor, as the scheduler sees it."""

    @property
    def name(self) -> str:
        """What it is called in the log."""

    def turn(self) -> str:
        """Does one thing, and answers in a word what came of it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and after how many steps.

    Args:
        step: A run of so many steps ends in this failure.
        whose: The actor that was under way; `audit`, where an audit found it; `finish`, where only the end shows it.
        error: Kind and message.
        trace: Where in the code.
    """

    step: int
    whose: str
    error: str
    trace: str = field(default="", compare=False)


def failure_of(whose: str, error: Exception, step: int) -> Failure:
    """An error as the failure that a run of so many steps ends in."""
    return Failure(step, whose, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a life ended: it was `killed`, it reached the limit of steps (`over`), or something `failed`."""

    how: Literal["killed", "over", "failed"]
    failure: Failure | None = None


@dataclass(eq=False, slots=True)
class _Seat:
    """An actor's place: its thread waits on the baton while another runs."""

    actor: Turns
    baton: Lock = field(default_factory=Lock)
    thread: Thread | None = None
    left: bool = False


class Scheduler:
    """Runs actors until they are killed, the steps are used up, or one fails.

    Args:
        draw: Decides who is next.
        journal: Counts and remembers the steps.
        limit: Steps of the journal after which the run is over.
        tick: Called at each step, before the next actor goes on; may let time pass, and raises what an audit finds.
        kill: Called at each step; answers whether the process is killed there.
    """

    def __init__(
        self, draw: Random, journal: Journal, limit: int, tick: Callable[[], object], kill: Callable[[], bool]
    ) -> None:
        self._draw, self._journal, self._limit, self._tick, self._kill = draw, journal, limit, tick, kill
        self._seats: Sequence[_Seat] = ()
        self._running: _Seat | None = None
        self._ending: Ending | None = None
        self._done = Lock()
        self._stretch = 0
        self._odds: list[float] = []

    def run(self, actors: Sequence[Turns]) -> Ending:
        """Lets the actors take turns; when it returns, all of them have ended theirs or were unwound."""
        self._ending, self._stretch, self._done = None, 0, Lock()
        self._seats = [_Seat(actor) for actor in actors]
        self._done.acquire()
        for seat in self._seats:
            seat.baton.acquire()
            seat.thread = Thread(target=self._sit, args=(seat,), name=seat.actor.name, daemon=True)
            seat.thread.start()
        self._hand_to(self._next())
        try:
            self._wait()
        except KeyboardInterrupt:
            self._ending = Ending("over")
            raise
        finally:
            self._running = None
        return self._ending or Ending("over")

    def killed(self) -> None:
        """The process is dead from now on, says somebody else than an actor; every point raises `Killed`."""
        self._ending = self._ending or Ending("killed")

    def at(self, point: str) -> None:
        """Ends a step here, and lets whoever is next go on; elsewhere than in an actor it does nothing.

        Once the steps are used up, each actor ends its turn without others coming in between.

        Raises:
            Killed: The process is dead.
            Over: Something has failed, and the run ends.
        """
        seat = self._running
        if seat is None:
            return
        if self._ending is None:
            self._between(seat, point)
        if self._ending is None:
            following = self._next()
            if following is seat:
                return
            self._hand_to(following)
            seat.baton.acquire()
        if self._ending is not None and self._ending.how != "over":
            raise Killed if self._ending.how == "killed" else Over

    def _between(self, seat: _Seat, point: str) -> None:
        """Writes the step down, looks whether all is well, and whether the run goes on; no point counts meanwhile."""
        self._running = None
        try:
            self._journal.step(seat.actor.name, point)
            self._tick()
            if self._kill():
                self._ending = Ending("killed")
            elif self._journal.steps >= self._limit:
                self._ending = Ending("over")
        except Exception as error:
            self._fail("audit", error, self._journal.steps)
        finally:
            self._running = seat

    def _sit(self, seat: _Seat) -> None:
        seat.baton.acquire()
        try:
            while self._ending is None:
                self._journal.note(seat.actor.turn())
                self.at("turn")
        except Killed:
            self._ending = self._ending or Ending("killed")
        except Over:
            pass
        except Exception as error:
            # What a dead process still says while it unwinds counts for nothing.
            if self._ending is None:
                self._fail(seat.actor.name, error, self._journal.steps + 1)
            elif self._ending.how == "over":
                self._fail("finish", error, self._journal.steps)
        finally:
            seat.left = True
            following = next((one for one in self._seats if not one.left), None)
            if following is None:
                self._done.release()
            else:
                self._hand_to(following)

    def _fail(self, whose: str, error: Exception, step: int) -> None:
        self._ending = Ending("failed", failure_of(whose, error, step))

    def _hand_to(self, seat: _Seat) -> None:
        self._running = seat
        seat.baton.release()

    def _next(self) -> _Seat:
        if self._stretch == 0:
            self._stretch = self._draw.randint(*_STRETCH)
            self._odds = list(accumulate(self._draw.choice(_ODDS) for _ in self._seats))
            if not self._odds[-1]:
                self._odds = list(accumulate(1.0 for _ in self._seats))
        self._stretch -= 1
        return self._seats[bisect(self._odds, self._draw.random() * self._odds[-1])]

    def _wait(self) -> None:
        """Waits until all have unwound, or nobody moves any more."""
        steps, since = self._journal.steps, time.monotonic()
        while not self._done.acquire(timeout=1.0):
            if self._journal.steps != steps:
                steps, since = self._journal.steps, time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                self._ending = Ending("failed", self._stuck())
                return

    def _stuck(self) -> Failure:
        """Who holds the baton and waits for something that only another actor could do."""
        seat = self._running
        thread = seat.thread if seat is not None else None
        frame = sys._current_frames().get(thread.ident or 0) if thread is not None else None
        where = "".join(traceback.format_stack(frame)) if frame is not None else ""
        whose = seat.actor.name if seat is not None else "audit"
        return Failure(self._journal.steps + 1, whose, "stuck: it waits for what only another actor could do", where)
