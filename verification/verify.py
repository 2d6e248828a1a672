"""The verifier: every claim for every profile, and every claim's mutants."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.proof import CLAIMS, ClaimResult, MutantResult, VerifyReport, joint_verdict
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Replayer
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.mutants import MUTANTS, Mutant
from hitproof.verification.run import Run
from hitproof.verification.solve import Asker

__all__ = ["run_mutant", "verify"]

Progress = Callable[[str], None]


def verify(
    source: RuleSource,
    profiles: Sequence[Profile],
    *,
    claims: Sequence[str] | None = None,
    replayer: Replayer | None,
    timeout_ms: int = 20_000,
    mutants: bool = False,
    progress: Progress | None = None,
    jobs: int | None = None,
) -> VerifyReport:
    """Prove or refute claims about a rulebook.

    Args:
        source: The rule files.
        profiles: Models for which to prove.
        claims: Ids of claims, all of them without.
        replayer: Runs counterexamples on the real engine; without one nothing can be refuted, only left unknown.
        timeout_ms: Bound on one question to the solver.
        mutants: Also break the rulebook on purpose and ask whether the claim notices.
        progress: Called with what is being worked on.
        jobs: Processes to use; as many as there are cores without. With 1 everything runs in this process.

    Raises:
        UsageError: No profile, or an unknown claim.
        HitproofError: The rulebook cannot be resolved or bound.
    """
    chosen = _chosen(claims)
    if not profiles:
        raise UsageError("no profile is selected", expected="at least one")
    rulebook = resolve(source)
    for profile in profiles:
        bind_rulebook(rulebook, profile)
    tasks = [_Task(claim, profile) for claim in chosen for profile in profiles]
    by_name = {profile.profile: profile for profile in profiles}
    broken = [m for m in MUTANTS if mutants and m.claim in chosen and m.profile in by_name and m.fits(source)]
    tasks += [_Task(mutant.claim, by_name[mutant.profile], mutant) for mutant in broken]
    done = list(_work(tasks, source, replayer, timeout_ms, progress or _quiet, jobs))
    results = [
        result
        for claim in chosen
        for result in _with_dead_rules([one for one in done if one.task.mutant is None and one.task.claim == claim])
    ]
    return VerifyReport(
        rulebook=rulebook.name,
        digest=rulebook.digest,
        verdict=joint_verdict([result.verdict for result in results]),
        claims=results,
        mutants=[one.mutant_result() for one in done if one.task.mutant is not None],
    )


def run_mutant(
    mutant: Mutant, source: RuleSource, profile: Profile, replayer: Replayer | None, timeout_ms: int = 20_000
) -> MutantResult:
    """Break the rulebook in one place and ask the mutant's claim.

    Raises:
        ReferenceNameError: The rulebook has no such place.
    """
    return _do(_Task(mutant.claim, profile, mutant), source, replayer, timeout_ms).mutant_result()


@dataclass(frozen=True)
class _Task:
    claim: str
    profile: Profile
    mutant: Mutant | None = None

    def __str__(self) -> str:
        return f"mutant {self.mutant.id}" if self.mutant else f"{self.claim}: {self.profile.profile}"


@dataclass(frozen=True)
class _Done:
    task: _Task
    result: ClaimResult
    place: str
    rules: dict[str, str]
    decisive: frozenset[str]

    def mutant_result(self) -> MutantResult:
        mutant = self.task.mutant
        if mutant is None:
            raise UsageError("this is no mutant")
        return MutantResult(
            id=mutant.id,
            claim=mutant.claim,
            place=self.place,
            change=mutant.change,
            killed=self.result.verdict == "refuted",
            profile=self.task.profile.profile,
            result=self.result,
        )


def _work(
    tasks: list[_Task],
    source: RuleSource,
    replayer: Replayer | None,
    timeout_ms: int,
    progress: Progress,
    jobs: int | None,
) -> Iterator[_Done]:
    """Results in the order of the tasks."""
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for task in tasks:
            progress(str(task))
            yield _do(task, source, replayer, timeout_ms)
        return
    # Forking a process that has used the solver is not safe.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures: list[Future[_Done]] = [pool.submit(_do, task, source, replayer, timeout_ms) for task in tasks]
        for task, future in zip(tasks, futures, strict=True):
            progress(str(task))
            yield future.result()


def _do(task: _Task, source: RuleSource, replayer: Replayer | None, timeout_ms: int) -> _Done:
    place = ""
    if task.mutant is None:
        rulebook = _resolved(source)
    else:
        broken, where = task.mutant.of(source)
        rulebook, place = resolve(broken, lenient=True), str(where)
    claim = ALL_CLAIMS[task.claim]
    run = Run(bind_rulebook(rulebook, task.profile), Asker(timeout_ms), replayer)
    begin = perf_counter()
    claim.prove(run)
    result = run.result(claim, perf_counter() - begin)
    return _Done(task, result, place, run.rules, frozenset(run.decisive))


_last: list[tuple[str, Rulebook]] = []


def _resolved(source: RuleSource) -> Rulebook:
    """The resolved rulebook; one process asks for the same one many times."""
    digest = source.digest
    if not _last or _last[0][0] != digest:
        _last[:] = [(digest, resolve(source))]
    return _last[0][1]


def _with_dead_rules(done: list[_Done]) -> list[ClaimResult]:
    """Results of one claim for all profiles; a rule that decides in none of them leaves the claim unknown."""
    results = [one.result for one in done]
    rules = {place: rule for one in done for place, rule in one.rules.items()}
    decisive = {place for one in done for place in one.decisive}
    dead = sorted({rules[place] for place in set(rules) - decisive})
    if dead and all(result.verdict == "proved" for result in results):
        # Deadness has no story that an engine could replay, so it is told as undecided.
        text = f"never decisive in any of these profiles: {', '.join(dead)}"
        results = [result.model_copy(update={"verdict": "unknown", "detail": text}) for result in results]
    return results


def _chosen(claims: Sequence[str] | None) -> list[str]:
    if claims is None:
        return list(CLAIMS)
    unknown = [name for name in claims if name not in ALL_CLAIMS]
    if unknown:
        raise UsageError(f"there is no claim '{unknown[0]}'", got=unknown[0], expected=", ".join(CLAIMS))
    if not claims:
        raise UsageError("no claim is selected", expected=", ".join(CLAIMS))
    return [name for name in CLAIMS if name in claims]


def _quiet(_: str) -> None:
    return None
