"""A whole run under the scheduler: one seed gives one sequence of steps, from the first life to the end."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from hitproof.engine.soak.clock import FakeClock
from hitproof.engine.soak.disk import SimulatedDisk
from hitproof.engine.soak.disk_faults import DISK_RATES
from hitproof.engine.soak.journal import Journal
from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.scheduler import Failure, Scheduler, Turns, failure_of
from hitproof.spec.errors import StoreError

__all__ = ["AUDITED", "Machine", "Player", "SetUp", "Simulated", "Surroundings", "simulate"]

AUDITED = 1000
"""Steps from one audit to the next."""
_LIFE = (6, 14)
"""Least and greatest power of two of the steps of a life, so that there are short ones and long ones."""
_DISK_LIFE = (0, 9)
"""The same of the disk's steps in a life that is ended within one of them."""
_STEP_SECONDS = 20e-6
_LEAPS = ((0.002, 0.1), (0.00005, 90.0))
"""How likely time leaps at a step, and how far at most, in seconds."""


class Player(Turns, Protocol):
    """An actor that can begin anew."""

    def reset(self) -> None:
        """The process is another one: forget what the old one gave out."""


class Machine(Protocol):
    """What the actors act on."""

    @property
    def players(self) -> Sequence[Player]:
        """The actors, always in the same order."""

    def restart(self, folder: Path) -> None:
        """Begin anew over what the disk has kept in a folder; may itself be killed."""

    def audit(self) -> None:
        """Raise what does not add up between two steps; changes nothing."""

    def finish(self) -> None:
        """After every actor has ended its turn: raise what is wrong at the end of a run."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What is to be told of a run, in numbers."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a machine is built on.

    Args:
        seed: What all draws come from.
        folder: Where its store may lie.
        disk: The disk; `disk.faults.listen` tells of its faults.
        clock: Its time, in seconds.
        at: To be called at each point.
        note: Adds to the log what came of a step.
        kill: Ends the process where it is.
    """

    seed: int
    folder: Path
    disk: SimulatedDisk
    clock: FakeClock
    at: Callable[[str], None]
    note: Callable[[str], None]
    kill: Callable[[], None]


SetUp = Callable[[Surroundings], Machine]


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a run came to.

    Args:
        seed: Its seed.
        steps: Steps that it made.
        digest: Of the whole log.
        failure: What went wrong; None where nothing did.
        audited: The last step after which an audit found nothing.
        deaths: How often the process was killed or the power failed.
        faults: Faults of the disk, by kind.
        last: The last lines of the log.
        counts: What the machine tells.
    """

    seed: int
    steps: int
    digest: str
    failure: Failure | None
    audited: int
    deaths: int
    faults: Mapping[str, int] = field(default_factory=dict)
    last: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def simulate(
    set_up: SetUp,
    seed: int,
    steps: int,
    *,
    rates: Mapping[str, float] = DISK_RATES,
    sink: Callable[[str], object] | None = None,
    every: int = AUDITED,
    closely: int | None = None,
) -> Simulated:
    """Plays one run; it is the same each time.

    Args:
        set_up: Builds the machine.
        seed: Which run.
        steps: After how many steps it ends, if nothing fails earlier.
        rates: How likely each fault of the disk is.
        sink: Gets every line of the log.
        every: Steps from one audit to the next; there is one after the last step too.
        closely: From this step on, there is an audit after each.
    """
    with _scratch() as work:
        return _Run(set_up, seed, steps, rates, Journal(sink), work, every, closely).play()


class _Run:
    """One run from its first step to its last."""

    def __init__(
        self,
        set_up: SetUp,
        seed: int,
        steps: int,
        rates: Mapping[str, float],
        journal: Journal,
        work: Path,
        every: int,
        closely: int | None,
    ) -> None:
        self._seed, self._steps, self._every, self._closely = seed, steps, every, closely
        self._journal, self._clock = journal, FakeClock()
        self._time, self._lives = Random(f"{seed}/time"), Random(f"{seed}/lives")
        self._scheduler = Scheduler(Random(f"{seed}/turns"), journal, steps, self._tick, self._killed)
        self._disk = SimulatedDisk(work, Random(f"{seed}/disk"), rates, self._told, self._scheduler.killed)
        self._disk.calm = True
        self._ends_at = 0
        self._audited = self._deaths = 0
        at, note = self._scheduler.at, journal.note
        self._machine = set_up(Surroundings(seed, self._disk.base, self._disk, self._clock, at, note, self._kill))
        self._disk.calm = False

    def play(self) -> Simulated:
        """Life after life, until the steps are used up or something fails."""
        failure: Failure | None = None
        try:
            while failure is None and self._journal.steps < self._steps:
                self._plan_life()
                ending = self._scheduler.run(self._machine.players)
                failure = ending.failure
                if ending.how == "killed":
                    self._restart()
        except Exception as error:
            failure = failure_of("restart", error, self._journal.steps)
        if failure is None:
            failure = self._finish()
        faults: Counter[str] = self._disk.faults.count
        return Simulated(
            self._seed,
            self._journal.steps,
            self._journal.digest,
            failure,
            self._audited,
            self._deaths,
            dict(sorted(faults.items())),
            self._journal.last,
            self._machine.counts,
        )

    def _plan_life(self) -> None:
        """Draws where this life ends: between two steps, or within one of the disk's."""
        within = self._lives.random() < 0.5
        self._disk.fail_after(self._length(_DISK_LIFE) if within else None)
        self._ends_at = self._journal.steps + self._length(_LIFE)

    def _length(self, powers: tuple[int, int]) -> int:
        least = 1 << self._lives.randint(*powers)
        return self._lives.randint(least, 2 * least)

    def _told(self, kind: str, digest: str) -> None:
        self._journal.note(f"{kind} {digest[:8]}" if digest else kind)

    def _killed(self) -> bool:
        if self._journal.steps < self._ends_at:
            return False
        self._disk.die()
        return True

    def _kill(self) -> None:
        self._disk.die()
        self._scheduler.killed()

    def _tick(self) -> None:
        """Lets time pass, and looks whether all adds up."""
        seconds = _STEP_SECONDS
        for odds, most in _LEAPS:
            if self._time.random() < odds:
                seconds += self._time.random() * most
        self._clock.advance(seconds)
        steps = self._journal.steps
        closely = self._closely is not None and steps >= self._closely
        if closely or steps % self._every == 0 or steps == self._steps:
            self._machine.audit()
            self._audited = steps

    def _restart(self) -> None:
        """The next process begins on what is left, and may itself be killed while it does."""
        self._deaths += 1
        tries = 0
        while True:
            folder = self._disk.survive()
            tries += 1
            again = tries < 3 and self._lives.random() < 0.3
            self._disk.fail_after(self._lives.randint(1, 40) if again else None)
            self._disk.calm = tries >= 3
            try:
                self._machine.restart(folder)
            except Killed:
                self._journal.note("killed while it began")
            except StoreError:
                if self._disk.calm:
                    raise
                self._journal.note("the disk let nothing begin")
            else:
                break
        self._disk.calm = False
        for player in self._machine.players:
            player.reset()
        self._journal.step("machine", "restart")

    def _finish(self) -> Failure | None:
        self._disk.fail_after(None)
        self._disk.calm = True
        try:
            self._machine.finish()
        except Exception as error:
            return failure_of("finish", error, self._steps)
        return None


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for what must be real, in memory where there is such a place."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(prefix="hitproof-", dir=memory if usable else None) as folder:
        yield Path(folder)
