"""One claim on one profile: questions asked, the first failure found, and its replay on the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import HitproofError
from hitproof.spec.proof import ClaimResult, ClaimVerdict, Counterexample
from hitproof.spec.scenario import Replayer, Scenario
from hitproof.verification.solve import Answer, Asker

__all__ = ["Claim", "Run"]


@dataclass(frozen=True)
class Claim:
    """A statement about the rulebook.

    Args:
        id: Its name.
        sentence: What it says, in plain words.
        method: How it is decided.
        assumptions: Ids of the rulebook's assumptions that it uses, and of the proof model's own.
        prove: Asks all questions of a run.
    """

    id: str
    sentence: str
    method: str
    assumptions: tuple[str, ...]
    prove: Callable[[Run], None]


@dataclass
class Run:
    """State of proving one claim for one bound rulebook."""

    bound: BoundRulebook
    asker: Asker
    replayer: Replayer | None
    obligations: int = 0
    witness: str | None = None
    counterexample: Counterexample | None = None
    gaps: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)
    decisive: set[str] = field(default_factory=set)

    @property
    def assumptions(self) -> frozenset[str]:
        """Assumptions that the rulebook grants."""
        return frozenset(self.bound.rulebook.assumptions)

    @property
    def done(self) -> bool:
        """A replayed failure was found; nothing more needs to be asked."""
        return self.counterexample is not None and self.counterexample.replayed

    def must_not(self, ctx: Any, formulas: Iterable[Any], label: str, *, soft: Iterable[Any] = ()) -> Answer | None:
        """An obligation: the formulas must not hold together. A model is a failure and is returned."""
        self.obligations += 1
        answer = self.asker.ask(ctx, formulas, label, soft=soft)
        if answer.status == "unknown":
            self.gaps.append(f"{label}: the solver gave up ({answer.reason})")
        return answer if answer.status == "sat" else None

    def must(self, ctx: Any, formulas: Iterable[Any], label: str) -> Answer | None:
        """A witness: the formulas must hold together for some state. Returns the model, or None where none exists."""
        self.obligations += 1
        answer = self.asker.ask(ctx, formulas, label)
        if answer.status == "unknown":
            self.gaps.append(f"{label}: the solver gave up ({answer.reason})")
        return answer if answer.status == "sat" else None

    def fail(self, sentence: str, rule: str, place: object, scenario: Scenario | None) -> None:
        """Record a failure, after replaying it; one that does not replay leaves the claim unknown."""
        replayed, why = False, "no engine was given to replay it"
        if self.replayer is not None and scenario is not None:
            try:
                result = self.replayer.replay(self.bound.rulebook, scenario)
                replayed, why = result.passed, "; ".join(result.differences)
            except HitproofError as error:
                why = str(error)
        if not replayed:
            self.gaps.append(f"{rule}: a counterexample did not replay ({why})")
        if self.counterexample is None or (replayed and not self.counterexample.replayed):
            self.counterexample = Counterexample(
                sentence=sentence, rule=rule, place=str(place), scenario=scenario, replayed=replayed
            )

    def result(self, claim: Claim, seconds: float) -> ClaimResult:
        """The verdict."""
        verdict: ClaimVerdict
        if self.counterexample is not None and self.counterexample.replayed:
            verdict = "refuted"
        elif self.gaps or self.counterexample is not None or self.witness is None:
            verdict = "unknown"
        else:
            verdict = "proved"
        detail = "; ".join(self.gaps[:5]) if self.gaps else "; ".join(self.covered)
        if verdict == "unknown" and not detail:
            detail = "no state was found that the claim's premise allows"
        return ClaimResult(
            id=claim.id,
            verdict=verdict,
            seconds=round(seconds, 3),
            method=claim.method,
            profile=self.bound.profile.profile,
            sentence=claim.sentence,
            assumptions=list(claim.assumptions),
            obligations=self.obligations,
            witness=self.witness,
            detail=detail,
            counterexample=self.counterexample,
        )
