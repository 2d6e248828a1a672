"""What was proved before: parts by the digest of all that their proofs read, kept in a proof file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import z3

import hitproof.rules
import hitproof.spec
from hitproof.spec.profile import Profile
from hitproof.spec.proof import SEMANTICS_VERSION, VerifyReport
from hitproof.spec.proof_file import ProofFile, ProvedProfile, StoredOutcome, profile_digest
from hitproof.verification.run import Outcome

__all__ = ["Memory", "axioms_digest", "same_question", "solver_name", "verifier_digest"]

HERE = Path(__file__).parent


class Memory:
    """Outcomes of parts, from an earlier run and for a later one.

    Args:
        earlier: A proof file; one of another verifier, solver or language tells nothing.
        crossed: Whether a second solver is asked; then only what it has agreed to counts as known.
    """

    def __init__(self, earlier: ProofFile | None, *, crossed: bool = False) -> None:
        self._crossed = crossed
        fits = earlier is not None and _made_by_us(earlier)
        self._known: Mapping[str, Mapping[str, StoredOutcome]] = earlier.parts if earlier and fits else {}
        self._kept: dict[str, dict[str, StoredOutcome]] = {}
        self.reused = 0
        """Parts that were not proved again."""

    def known(self, claim: str, key: str) -> Outcome | None:
        """What a part came to, where it was proved before."""
        stored = self._known.get(claim, {}).get(key)
        if stored is None or (self._crossed and not stored.crossed):
            return None
        self.reused += 1
        self._kept.setdefault(claim, {})[key] = stored
        return Outcome(
            obligations=stored.obligations,
            seconds=0.0,
            witness=stored.witness,
            counterexample=None,
            gaps=(),
            covered=tuple(stored.covered),
            count=stored.count,
            rules=dict(stored.rules),
            decisive=frozenset(stored.decisive),
            alone=stored.alone,
            agreed=stored.agreed if self._crossed else 0,
        )

    def keep(self, claim: str, key: str, outcome: Outcome) -> None:
        """Remember what a part came to; what failed, was given up, or tells places in files is not remembered."""
        if outcome.gaps or outcome.counterexample is not None or outcome.rules:
            return
        self._kept.setdefault(claim, {})[key] = StoredOutcome(
            obligations=outcome.obligations,
            seconds=round(outcome.seconds, 3),
            witness=outcome.witness,
            covered=list(outcome.covered),
            count=outcome.count,
            rules={},
            decisive=[],
            alone=outcome.alone,
            agreed=outcome.agreed,
            crossed=self._crossed,
        )

    def proof(self, report: VerifyReport, profiles: Sequence[Profile], axioms: str) -> ProofFile:
        """The proof file of a run."""
        verdicts: dict[str, ProvedProfile] = {
            profile.profile: ProvedProfile(
                digest=profile_digest(profile),
                claims={result.id: result.verdict for result in report.claims if result.profile == profile.profile},
            )
            for profile in profiles
        }
        return ProofFile(
            rulebook=report.rulebook,
            digest=report.digest,
            semantics=SEMANTICS_VERSION,
            axioms=axioms,
            verifier=verifier_digest(),
            solver=solver_name(),
            profiles=verdicts,
            report=report,
            parts=self._kept,
        )


def same_question(
    earlier: ProofFile, digest: str, profiles: Iterable[Profile], claims: Iterable[str], *, crossed: bool
) -> bool:
    """Whether a proof file answers just what is asked: this rulebook, these models and claims, by this verifier."""
    report = earlier.report
    if report is None or not _made_by_us(earlier):
        return False
    asked = {profile.profile: profile_digest(profile) for profile in profiles}
    told = {name: proved.digest for name, proved in earlier.profiles.items()}
    wanted = set(claims)
    return (
        earlier.digest == digest == report.digest
        and told == asked
        and not report.mutants
        and all(set(proved.claims) == wanted for proved in earlier.profiles.values())
        and {(result.profile, result.id) for result in report.claims} == {(p, c) for p in asked for c in wanted}
        and all(result.verdict == "proved" for result in report.claims)
        and (not crossed or any(result.agreed for result in report.claims))
    )


@cache
def verifier_digest() -> str:
    """Digest of the code that a proof rests on: the verifier, the loader of rules, and what both share."""
    folders = [HERE, *(Path(str(package.__file__)).parent for package in (hitproof.rules, hitproof.spec))]
    return hashlib.sha256("".join(map(_digest_of_files, folders)).encode()).hexdigest()


@cache
def axioms_digest() -> str:
    """Digest of the axioms; `spec.proof.AXIOMS_DIGEST` repeats it for the running path."""
    return _digest_of_files(HERE / "axioms")


def solver_name() -> str:
    """The solver with its version."""
    return f"z3 {z3.get_version_string()}"


def _made_by_us(earlier: ProofFile) -> bool:
    return (earlier.semantics, earlier.verifier, earlier.solver) == (
        SEMANTICS_VERSION,
        verifier_digest(),
        solver_name(),
    )


def _digest_of_files(folder: Path) -> str:
    """Over names and content of all Python files, by sorted path."""
    content = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content.update(path.relative_to(folder).as_posix().encode() + b"\0")
        content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()
