"""The verifier: every claim for every profile, equal parts proved once, and every claim's mutants."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from hitproof.rules.source import RuleSource
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile
from hitproof.spec.proof import CLAIMS, ClaimResult, MutantResult, VerifyReport, joint_verdict
from hitproof.spec.scenario import Replayer
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.judge import Answered, judge
from hitproof.verification.memory import Memory, solver_name
from hitproof.verification.mutants import MUTANTS, Mutant
from hitproof.verification.pool import Work, at_work
from hitproof.verification.prover import Job, PartJob, Prover
from hitproof.verification.questions import Checking, write_index
from hitproof.verification.run import Outcome

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
    checking: Checking | None = None,
    memory: Memory | None = None,
    counterexamples: int = 1,
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
        checking: What becomes of each question beside its answer: asked again in a second solver, written down.
        memory: What was proved before; it is told what is proved now.
        counterexamples: Most that are told of one claim and model.

    Raises:
        UsageError: No profile, or an unknown claim.
        HitproofError: The rulebook cannot be resolved or bound.
        InternalError: Two solvers disagree.
    """
    chosen = _chosen(claims)
    if not profiles:
        raise UsageError("no profile is selected", expected="at least one")
    by_name = {profile.profile: profile for profile in profiles}
    broken = [m for m in MUTANTS if mutants and m.claim in chosen and m.profile in by_name and m.fits(source)]
    prover = Prover(source, by_name, replayer, timeout_ms, checking, counterexamples)
    processes = min(jobs or os.cpu_count() or 1, len(chosen) * len(profiles) + len(broken))
    with at_work(prover, processes) as work:
        plan = _Plan(prover, chosen, progress or _quiet, memory)
        plan.do(work, [*broken, *plan.proved_once()])
        plan.do(work, plan.failed_elsewhere())
    if checking is not None and checking.folder is not None:
        about = {"rulebook": prover.rulebook.name, "digest": prover.rulebook.digest, "solver": solver_name()}
        write_index(checking.folder, about, plan.asked())
    results = [result for claim in chosen for result in plan.results(claim)]
    return VerifyReport(
        rulebook=prover.rulebook.name,
        digest=prover.rulebook.digest,
        verdict=joint_verdict([result.verdict for result in results]),
        claims=results,
        mutants=[plan.mutants[mutant.id] for mutant in broken],
    )


def run_mutant(
    mutant: Mutant, source: RuleSource, profile: Profile, replayer: Replayer | None, timeout_ms: int = 20_000
) -> MutantResult:
    """Break the rulebook in one place and ask the mutant's claim.

    Raises:
        ReferenceNameError: The rulebook has no such place.
    """
    return Prover(source, {mutant.profile: profile}, replayer, timeout_ms).ask(mutant)


class _Plan:
    """Which part is proved for whom, and what came out."""

    def __init__(self, prover: Prover, claims: Sequence[str], progress: Progress, memory: Memory | None) -> None:
        self.prover, self.progress, self.memory = prover, progress, memory
        self.mutants: dict[str, MutantResult] = {}
        self._parts: dict[tuple[str, str], list[PartJob]] = {}
        self._keys: dict[PartJob, str] = {}
        self._proved_by: dict[PartJob, PartJob] = {}
        self._outcomes: dict[PartJob, Outcome] = {}
        first: dict[tuple[str, str], PartJob] = {}
        for claim, profile in product(claims, prover.profiles):
            mine = self._parts[claim, profile] = []
            for index, part in enumerate(prover.parts(claim, profile)):
                job = PartJob(claim, profile, index)
                mine.append(job)
                self._keys[job] = prover.cutter(profile).key(part)
                self._proved_by[job] = first.setdefault((claim, self._keys[job]), job)

    def proved_once(self) -> list[PartJob]:
        """The first of all parts with equal keys, the widest before the others, so that no process is left alone."""
        jobs = dict.fromkeys(self._proved_by.values())
        if self.memory is not None:
            for job in tuple(jobs):
                known = self.memory.known(job.claim, self._lasting_key(job))
                if known is not None:
                    self._outcomes[job] = known
                    del jobs[job]
        return sorted(jobs, key=lambda job: -len(self.prover.parts(job.claim, job.profile)[job.index].groups))

    def failed_elsewhere(self) -> list[PartJob]:
        """Parts whose equal failed for another model, or was proved for the values of its own constants alone.

        Each model gets a counterexample of its own, and each group a proof for its own constants.
        """
        first: dict[tuple[str, str, str], PartJob] = {}
        for job, by in self._proved_by.items():
            if self._outcomes[by].counterexample is not None or self._outcomes[by].alone:
                self._proved_by[job] = first.setdefault((job.claim, job.profile, self._bound_key(job)), job)
        return [job for job in first.values() if job not in self._outcomes]

    def _lasting_key(self, job: PartJob) -> str:
        part = self.prover.parts(job.claim, job.profile)[job.index]
        return self.prover.cutter(job.profile).lasting_key(part)

    def _bound_key(self, job: PartJob) -> str:
        """The key of a part in which no constant is left open."""
        part = self.prover.parts(job.claim, job.profile)[job.index]
        return self.prover.cutter(job.profile).key(replace(part, free=frozenset())) if part.free else self._keys[job]

    def do(self, work: Work, jobs: Sequence[Job]) -> None:
        """Have jobs done."""
        for job, done in zip(jobs, work(jobs), strict=True):
            self.progress(f"mutant {job.id}" if isinstance(job, Mutant) else f"{job.claim}: {job.profile}")
            if isinstance(job, PartJob) and isinstance(done, Outcome):
                self._outcomes[job] = done
                if self.memory is not None:
                    self.memory.keep(job.claim, self._lasting_key(job), done)
            elif isinstance(done, MutantResult):
                self.mutants[done.id] = done

    def results(self, claim: str) -> list[ClaimResult]:
        """One claim for all profiles; a rule that decides in none of them leaves the claim unknown."""
        results = [
            judge(ALL_CLAIMS[claim], profile, self._answers(claim, profile), self.prover.wanted)
            for profile in self.prover.profiles
        ]
        outcomes = [self._outcomes[by] for by in self._proved_by.values() if by.claim == claim]
        rules = {place: rule for outcome in outcomes for place, rule in outcome.rules.items()}
        decisive = {place for outcome in outcomes for place in outcome.decisive}
        dead = sorted({rules[place] for place in set(rules) - decisive})
        if dead and all(result.verdict == "proved" for result in results):
            # Deadness has no story that an engine could replay, so it is told as undecided.
            text = f"never decisive in any of these profiles: {', '.join(dead)}"
            results = [result.model_copy(update={"verdict": "unknown", "detail": text}) for result in results]
        return results

    def asked(self) -> list[tuple[str, str, str, tuple[str, ...]]]:
        """Claim, profile and part of every outcome, with its questions that have no model."""
        return [
            (job.claim, job.profile, self.prover.parts(job.claim, job.profile)[job.index].label, outcome.asked)
            for job, outcome in self._outcomes.items()
        ]

    def _answers(self, claim: str, profile: str) -> list[Answered]:
        answers = []
        for job in self._parts[claim, profile]:
            by = self._proved_by[job]
            told = "" if by.profile == profile else f" (proved for {by.profile})"
            answers.append(Answered(self._outcomes[by], told, shared=by != job))
        return answers


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
