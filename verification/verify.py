"""The verifier: every claim for every profile, and every claim's mutants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from hitproof.verification.run import Claim, Run
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

    Raises:
        UsageError: No profile, or an unknown claim.
        HitproofError: The rulebook cannot be resolved or bound.
    """
    chosen = _chosen(claims)
    if not profiles:
        raise UsageError("no profile is selected", expected="at least one")
    rulebook = resolve(source)
    results: list[ClaimResult] = []
    for claim in chosen:
        results += _prove(claim, rulebook, profiles, replayer, timeout_ms, progress or _quiet)
    broken = _mutants(source, profiles, chosen, replayer, timeout_ms, progress or _quiet) if mutants else []
    return VerifyReport(
        rulebook=rulebook.name,
        digest=rulebook.digest,
        verdict=joint_verdict([result.verdict for result in results]),
        claims=results,
        mutants=broken,
    )


def run_mutant(
    mutant: Mutant, source: RuleSource, profile: Profile, replayer: Replayer | None, timeout_ms: int = 20_000
) -> MutantResult:
    """Break the rulebook in one place and ask the mutant's claim.

    Raises:
        ReferenceNameError: The rulebook has no such place.
    """
    broken, where = mutant.of(source)
    claim = ALL_CLAIMS[mutant.claim]
    run, seconds = _run(claim, resolve(broken, lenient=True), profile, replayer, timeout_ms)
    result = run.result(claim, seconds)
    return MutantResult(
        id=mutant.id,
        claim=mutant.claim,
        place=str(where),
        change=mutant.change,
        killed=result.verdict == "refuted",
        profile=profile.profile,
        result=result,
    )


def _prove(
    claim: Claim,
    rulebook: Rulebook,
    profiles: Sequence[Profile],
    replayer: Replayer | None,
    timeout_ms: int,
    progress: Progress,
) -> list[ClaimResult]:
    results: list[ClaimResult] = []
    rules: dict[str, str] = {}
    decisive: set[str] = set()
    for profile in profiles:
        progress(f"{claim.id}: {profile.profile}")
        run, seconds = _run(claim, rulebook, profile, replayer, timeout_ms)
        rules.update(run.rules)
        decisive |= run.decisive
        results.append(run.result(claim, seconds))
    dead = sorted({rules[place] for place in set(rules) - decisive})
    if dead and all(result.verdict == "proved" for result in results):
        # Deadness has no story that an engine could replay, so it is told as undecided.
        text = f"never decisive in any of these profiles: {', '.join(dead)}"
        results = [result.model_copy(update={"verdict": "unknown", "detail": text}) for result in results]
    return results


def _run(
    claim: Claim, rulebook: Rulebook, profile: Profile, replayer: Replayer | None, timeout_ms: int
) -> tuple[Run, float]:
    run = Run(bind_rulebook(rulebook, profile), Asker(timeout_ms), replayer)
    begin = perf_counter()
    claim.prove(run)
    return run, perf_counter() - begin


def _mutants(
    source: RuleSource,
    profiles: Sequence[Profile],
    chosen: Sequence[Claim],
    replayer: Replayer | None,
    timeout_ms: int,
    progress: Progress,
) -> list[MutantResult]:
    by_name = {profile.profile: profile for profile in profiles}
    ids = {claim.id for claim in chosen}
    results = []
    for mutant in MUTANTS:
        if mutant.claim in ids and mutant.profile in by_name:
            progress(f"mutant {mutant.id}")
            results.append(run_mutant(mutant, source, by_name[mutant.profile], replayer, timeout_ms))
    return results


def _chosen(claims: Sequence[str] | None) -> list[Claim]:
    if claims is None:
        return [ALL_CLAIMS[name] for name in CLAIMS]
    unknown = [name for name in claims if name not in ALL_CLAIMS]
    if unknown:
        raise UsageError(f"there is no claim '{unknown[0]}'", got=unknown[0], expected=", ".join(CLAIMS))
    if not claims:
        raise UsageError("no claim is selected", expected=", ".join(CLAIMS))
    return [ALL_CLAIMS[name] for name in CLAIMS if name in claims]


def _quiet(_: str) -> None:
    return None
