"""From what the parts of a claim came to, to the claim's verdict for one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitproof.spec.proof import ClaimResult, ClaimVerdict
from hitproof.verification.another import distinct
from hitproof.verification.run import Claim, Outcome

__all__ = ["Answered", "judge"]


@dataclass(frozen=True)
class Answered:
    """The outcome that answers one part of a claim for one model.

    Args:
        told: For which model it was proved, where that was another one.
        shared: It was proved for another group, of this model or another.
    """

    outcome: Outcome
    told: str = ""
    shared: bool = False


def judge(claim: Claim, profile: str, parts: Sequence[Answered], wanted: int = 1) -> ClaimResult:
    """Refuted by one part that is, with its replayed counterexample; proved if all are, and one has a witness.

    Args:
        claim: The claim.
        profile: The model.
        parts: What its parts came to.
        wanted: Most counterexamples to tell.
    """
    outcomes = [part.outcome for part in parts]
    found = [outcome.counterexample for outcome in outcomes if outcome.counterexample is not None]
    replayed = [example for example in found if example.replayed]
    gaps = list(dict.fromkeys(f"{gap}{part.told}" for part in parts for gap in part.outcome.gaps))
    witness = next(((part, part.outcome.witness) for part in parts if part.outcome.witness), None)
    verdict: ClaimVerdict
    if replayed:
        verdict = "refuted"
    elif gaps or found or witness is None:
        verdict = "unknown"
    else:
        verdict = "proved"
    detail = "; ".join(gaps[:5]) if gaps or replayed else _covered(claim, outcomes)
    if verdict == "unknown" and not detail:
        detail = "no state was found that the claim's premise allows"
    return ClaimResult(
        id=claim.id,
        verdict=verdict,
        seconds=round(sum(part.outcome.seconds for part in parts if not part.shared), 3),
        method=claim.method,
        profile=profile,
        sentence=claim.sentence,
        assumptions=list(claim.assumptions),
        obligations=sum(outcome.obligations for outcome in outcomes),
        agreed=sum(outcome.agreed for outcome in outcomes),
        shared=sum(part.outcome.obligations for part in parts if part.shared),
        witness=None if witness is None else f"{witness[1]}{witness[0].told}",
        detail=detail,
        counterexample=next(iter([*replayed, *found]), None),
        more=distinct([*replayed, *(one for outcome in outcomes for one in outcome.more)])[1:wanted],
    )


def _covered(claim: Claim, outcomes: Sequence[Outcome]) -> str:
    told = [text for outcome in outcomes for text in outcome.covered]
    if claim.covers:
        told.append(claim.covers.format(count=sum(outcome.count for outcome in outcomes)))
    return "; ".join(dict.fromkeys(told))
