"""A soak in several processes: each has its share of the threads, soaks every model in turn, and tells one report."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from hitproof.engine.soak.report import SoakReport, merged, report
from hitproof.engine.soak.run import LEAST_THREADS, soak
from hitproof.engine.soak.stage import Settings, Stage
from hitproof.spec.errors import InternalError

__all__ = ["processes_for", "soak_in_processes"]

_GOOD_SHARE = 8
"""Threads of a process: half of them ask."""
_SEEDS_APART = 1000


def processes_for(threads: int) -> int:
    """How many processes so many threads are shared out to: one a core, and eight threads or more each."""
    return max(1, min(_cores(), threads // _GOOD_SHARE))


def soak_in_processes(
    settings: Sequence[Settings],
    seconds: float,
    threads: int = 16,
    processes: int = 1,
    *,
    told: Callable[[str], None] = lambda _: None,
) -> SoakReport:
    """Soak several models, each for the same time in every process.

    The n-th process begins with the n-th model, and its seeds are 1000 n larger.

    Args:
        settings: The models, with everything else that is alike.
        seconds: How long in all.
        threads: Actors of all processes together; the first processes get those that are left over.
        processes: How many; with one, everything happens in this process.
        told: Gets a line now and then.

    Raises:
        InternalError: What the end of a run finds, where nothing failed before; or a process ended and told nothing.
    """
    shares = [
        _Share(tuple(settings), seconds, threads // processes + (number < threads % processes), number)
        for number in range(processes)
    ]
    with tempfile.TemporaryDirectory(prefix="hitproof-soak-") as folder:
        if processes == 1:
            return shares[0].run(Path(folder), told)
        with _at_work(shares, folder) as workers:
            return merged(_reports(workers, told))


class _Share:
    """What one process does."""

    def __init__(self, settings: tuple[Settings, ...], seconds: float, threads: int, number: int) -> None:
        self.threads, self.number = max(threads, LEAST_THREADS), number
        self.each = seconds / len(settings)
        first = number % len(settings)
        self.settings = [
            replace(one, seed=one.seed + _SEEDS_APART * number) for one in (*settings[first:], *settings[:first])
        ]

    def run(self, folder: Path, told: Callable[[str], None], stage: Callable[..., Stage] = Stage) -> SoakReport:
        """Soak all models in turn."""
        ended = []
        for one in self.settings:
            told(one.profile)
            place = folder / f"{self.number}-{one.profile}"
            place.mkdir()
            ended.append(soak(one, self.each, self.threads, folder=place, stage=stage, told=told))
        return report(ended)


@contextmanager
def _at_work(shares: Sequence[_Share], folder: str) -> Iterator[dict[Connection, BaseProcess]]:
    """A process for each share, by the pipe on which it tells; none of them is left at the end, whatever ends it."""
    # A process with threads is not forked; and each begins with nothing of another one's.
    spawning = get_context("spawn")
    workers: dict[Connection, BaseProcess] = {}
    try:
        for share in shares:
            mine, theirs = spawning.Pipe(duplex=False)
            workers[mine] = spawning.Process(target=_work, args=(share, folder, theirs), daemon=True)
            with _interrupts_wait():
                workers[mine].start()
            theirs.close()
        yield workers
    finally:
        for worker in workers.values():
            if worker.pid is not None:
                worker.terminate()
        for pipe, worker in workers.items():
            if worker.pid is not None:
                worker.join()
            pipe.close()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Block Ctrl-C for a moment; a process that begins meanwhile never hears it, and its parent ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(share: _Share, folder: str, pipe: Connection) -> None:
    """Tell a text now and then, and a report or what was raised in the end."""
    try:
        answer: SoakReport | InternalError = share.run(Path(folder), pipe.send, _settled)
    except InternalError as error:
        answer = InternalError(f"{type(error).__name__}: {error}")
    pipe.send(answer)


def _settled(settings: Settings, folder: Path) -> Stage:
    """A stage in a process of its own: what was loaded and bound for it stays, so the collector passes it over."""
    made = Stage(settings, folder)
    gc.collect()
    gc.freeze()
    return made


def _reports(workers: Mapping[Connection, BaseProcess], told: Callable[[str], None]) -> list[SoakReport]:
    """The reports of all processes.

    Raises:
        InternalError: A process raised it; or it ended without a report.
    """
    lines: dict[Connection, str] = {}
    reports: dict[Connection, SoakReport] = {}
    while len(reports) < len(workers):
        ready = wait([pipe for pipe in workers if pipe not in reports])
        for pipe in [one for one in workers if one in ready]:
            answer = _heard(pipe, workers[pipe])
            if isinstance(answer, str):
                lines[pipe] = answer
                told(", ".join(lines.values()))
            elif isinstance(answer, InternalError):
                raise answer
            else:
                reports[pipe] = answer
    return [reports[pipe] for pipe in workers]


def _heard(pipe: Connection, worker: BaseProcess) -> SoakReport | InternalError | str:
    try:
        answer: SoakReport | InternalError | str = pipe.recv()
    except EOFError:
        worker.join()
        raise InternalError(f"a process of the soak ended with {worker.exitcode} and told no report") from None
    return answer


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1
