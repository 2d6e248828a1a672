"""All edits of a rulebook judged, in as many processes as wanted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from hitproof.rules.source import RuleSource
from hitproof.spec.errors import UsageError
from hitproof.spec.mutation import EditFate, MutationReport
from hitproof.spec.profile import Profile
from hitproof.spec.scenario import Replayer
from hitproof.verification.mutation.judging import Judge
from hitproof.verification.mutation.operators import Edit, all_edits

__all__ = ["choose_edits", "mutate"]

Progress = Callable[[EditFate], None]

_own: list[Judge] = []


def choose_edits(
    source: RuleSource, *, objects: Sequence[str] | None = None, rules: Sequence[str] | None = None
) -> list[Edit]:
    """The edits of the rules of these objects and of these ids; all of them without.

    Raises:
        UsageError: There is none.
    """
    found = [
        edit
        for edit in all_edits(source)
        if (not objects or edit.object in objects) and (not rules or edit.rule in rules)
    ]
    if not found:
        raise UsageError(
            "no rule that could be edited is selected",
            got=", ".join([*(objects or ()), *(rules or ())]),
            expected="ids of objects or rules of this rulebook",
        )
    return found


def mutate(
    source: RuleSource,
    profiles: Sequence[Profile],
    *,
    edits: Sequence[Edit],
    replayer: Replayer | None,
    timeout_ms: int = 20_000,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> MutationReport:
    """Judge edits of a rulebook: each is refused, redundant, killed, dead or survived.

    Args:
        source: The rule files; every claim should be proved of them, else an edit may be killed by what was broken
            before.
        profiles: Models; an edit is redundant only if it is for all of them.
        edits: What to judge.
        replayer: Runs counterexamples on the real engine; without one nothing is killed.
        timeout_ms: Bound on one question to the solver.
        jobs: Processes to use; as many as there are cores without. With 1 everything runs in this process.
        progress: Called with each fate, in the order of the edits.

    Raises:
        UsageError: No profile.
        HitproofError: The rulebook cannot be resolved or bound.
    """
    if not profiles:
        raise UsageError("no profile is selected", expected="at least one")
    by_name = {profile.profile: profile for profile in profiles}
    judge = Judge(source, by_name, replayer, timeout_ms)
    rulebook = judge.prover.rulebook
    for name in by_name:
        judge.prover.cutter(name)
    fates = []
    for fate in _judged(judge, edits, min(jobs or os.cpu_count() or 1, len(edits))):
        fates.append(fate)
        if progress is not None:
            progress(fate)
    return MutationReport(rulebook=rulebook.name, digest=rulebook.digest, edits=fates)


def _judged(judge: Judge, edits: Sequence[Edit], processes: int) -> Iterator[EditFate]:
    if processes <= 1:
        yield from map(judge.judge, edits)
        return
    prover = judge.prover
    # Forking a process that has used the solver is not safe.
    with ProcessPoolExecutor(
        processes,
        mp_context=get_context("spawn"),
        initializer=_begin,
        initargs=(judge.source, judge.profiles, prover.replayer, prover.asker.timeout_ms),
    ) as pool:
        yield from pool.map(_judge, edits)


def _begin(source: RuleSource, profiles: Mapping[str, Profile], replayer: Replayer | None, timeout_ms: int) -> None:
    _own[:] = [Judge(source, profiles, replayer, timeout_ms)]


def _judge(edit: Edit) -> EditFate:
    return _own[0].judge(edit)
