"""A soak with threads: actors take turns as fast as they can, die and begin anew together; a standstill is told."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hitproof.engine.soak.actors import Actor, cast
from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.stage import Settings, Stage

__all__ = ["Ended", "LEAST_THREADS", "soak"]

STANDSTILL_S = 60.0
"""So long nobody may end a turn, however busy the machine is."""
_TOLD_S = 15.0
_REST_S = 0.01
_LAST_TURN_S = 10.0
"""So long an interrupted run waits for turns to end."""
_HELPERS = 4
"""Threads that do not ask: two movers, a housekeeper and a spoiler."""
LEAST_THREADS = _HELPERS + 1
"""With fewer nobody asks."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a soak of one profile ended.

    Args:
        stage: The machine, with its ledger, judge and counts.
        seconds: How long it ran.
        turns: Operations.
        failure: What ended it early; empty where nothing did.
    """

    stage: Stage
    seconds: float
    turns: int
    failure: str = ""


def soak(
    settings: Settings,
    seconds: float,
    threads: int = 16,
    *,
    folder: Path | None = None,
    stage: Callable[..., Stage] = Stage,
    told: Callable[[str], None] | None = None,
) -> Ended:
    """Run a soak.

    Args:
        settings: What the machine is made of.
        seconds: How long.
        threads: Actors, five or more.
        folder: Where the disk tier lies; None is a temporary folder.
        stage: What makes the machine.
        told: Gets a line now and then.

    Raises:
        InternalError: What the stage's end finds, where nothing failed before.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="hitproof-soak-") as made:
            return soak(settings, seconds, threads, folder=Path(made), stage=stage, told=told)
    run = _Run(stage(settings, folder), max(threads, LEAST_THREADS))
    return run.until(time.monotonic() + seconds, told)


class _Run:
    def __init__(self, stage: Stage, threads: int) -> None:
        self.stage = stage
        self.actors = cast(stage, requesters=threads - _HELPERS)
        self.turns = {actor.name: 0 for actor in self.actors}
        self.failures: list[str] = []
        self.lives = _Lives(len(self.actors), stage.restart)

    def until(self, deadline: float, told: Callable[[str], None] | None) -> Ended:
        began = time.monotonic()
        workers = [
            threading.Thread(target=self._act, args=(actor, deadline), name=actor.name, daemon=True)
            for actor in self.actors
        ]
        for worker in workers:
            worker.start()
        try:
            self._watch(workers, deadline, told)
        except BaseException:
            # Whoever interrupts a run takes its folder away; nobody may be writing there any more.
            self.failures.append("interrupted")
            self._wait_for(workers)
            raise
        seconds = time.monotonic() - began
        if not self.failures:
            if self.stage.dying:
                for actor in self.actors:
                    actor.reset()
                self.stage.restart()
            for actor in self.actors:
                actor.stop()
            self.stage.finish()
        return Ended(self.stage, seconds, sum(self.turns.values()), self.failures[0] if self.failures else "")

    @staticmethod
    def _wait_for(workers: Sequence[threading.Thread]) -> None:
        until = time.monotonic() + _LAST_TURN_S
        for worker in workers:
            worker.join(max(0.0, until - time.monotonic()))

    def _act(self, actor: Actor, deadline: float) -> None:
        """Take turns until the time is up; whoever is killed waits for all others, and begins anew with them."""
        try:
            while not self.failures and time.monotonic() < deadline:
                try:
                    while time.monotonic() < deadline and not self.failures and not self.stage.dying:
                        actor.turn()
                        self.turns[actor.name] += 1
                        self._rest(actor, deadline)
                except Killed:
                    pass
                if self.stage.dying:
                    actor.reset()
                    self.lives.wait()
        except BaseException:
            self.failures.append(f"{actor.name}: {traceback.format_exc()}")
        finally:
            try:
                self.lives.leave()
            except BaseException:
                self.failures.append(f"the next start: {traceback.format_exc()}")

    def _rest(self, actor: Actor, deadline: float) -> None:
        """Let requests go first, so that faults and moves are as frequent on a busy machine as on a quiet one."""
        until = self.stage.counts["answers"] + actor.every
        while self.stage.counts["answers"] < until and time.monotonic() < deadline:
            if self.failures or self.stage.dying:
                return
            time.sleep(_REST_S)

    def _watch(self, workers: Sequence[threading.Thread], deadline: float, told: Callable[[str], None] | None) -> None:
        """Wait for the end; where nobody has ended a turn for long, tell where everybody stands."""
        seen, since, next_told = -1, time.monotonic(), time.monotonic() + _TOLD_S
        while any(worker.is_alive() for worker in workers):
            for worker in workers:
                worker.join(0.25 / len(workers))
            now, turns = time.monotonic(), sum(self.turns.values())
            if turns != seen:
                seen, since = turns, now
            elif now - since > STANDSTILL_S:
                self.failures.append(f"nobody has ended a turn for {STANDSTILL_S:.0f} s\n{_stacks(workers)}")
                return
            if told is not None and now > next_told:
                next_told = now + _TOLD_S
                told(f"{self.stage.settings.profile}: {self.stage.counts['leases confirmed']} leases confirmed")


class _Lives:
    """Where actors of a dead process wait until all have unwound; the last of them begins the next."""

    def __init__(self, actors: int, begin: Callable[[], None]) -> None:
        self._changed = threading.Condition()
        self._active, self._waiting, self._life = actors, 0, 0
        self._begin = begin

    def wait(self) -> None:
        """Wait for the next process."""
        with self._changed:
            life = self._life
            self._waiting += 1
            self._begin_if_all()
            while self._life == life:
                self._changed.wait()

    def leave(self) -> None:
        """Take no part any more."""
        with self._changed:
            self._active -= 1
            self._begin_if_all()

    def _begin_if_all(self) -> None:
        if self._waiting and self._waiting == self._active:
            try:
                self._begin()
            finally:
                self._life, self._waiting = self._life + 1, 0
                self._changed.notify_all()


def _stacks(workers: Sequence[threading.Thread]) -> str:
    frames = sys._current_frames()
    return "\n".join(
        f"{worker.name}:\n" + "".join(traceback.format_stack(frames[worker.ident])[-4:])
        for worker in workers
        if worker.ident in frames
    )
