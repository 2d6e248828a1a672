"""Jobs over processes: each process has a prover of its own and takes the next job as soon as it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.scenario import Replayer
from hitproof.verification.prover import Done, Job, Prover
from hitproof.verification.questions import Checking

__all__ = ["Work", "at_work"]

Work = Callable[[Sequence[Job]], Iterator[Done]]
"""Does jobs, and answers in their order."""

_own: list[Prover] = []


@contextmanager
def at_work(prover: Prover, processes: int) -> Iterator[Work]:
    """As many provers at work as there are processes: with one, the given one, else others like it."""
    if processes <= 1:
        yield lambda jobs: map(prover.do, jobs)
        return
    # Forking a process that has used the solver is not safe.
    with ProcessPoolExecutor(
        processes,
        mp_context=get_context("spawn"),
        initializer=_begin,
        initargs=(
            prover.source,
            prover.profiles,
            prover.replayer,
            prover.asker.timeout_ms,
            prover.asker.questions.checking,
            prover.wanted,
        ),
    ) as pool:
        # They start while the first process still makes its list of jobs.
        pool.submit(_ready)
        yield lambda jobs: pool.map(_do, jobs)


def _begin(
    source: RuleSource,
    profiles: Mapping[str, Profile],
    replayer: Replayer | None,
    timeout_ms: int,
    checking: Checking,
    wanted: int,
) -> None:
    _own[:] = [Prover(source, profiles, replayer, timeout_ms, checking, wanted)]


def _ready() -> str:
    return _own[0].rulebook.digest


def _do(job: Job) -> Done:
    return _own[0].do(job)
