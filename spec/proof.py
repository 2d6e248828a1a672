"""What the verifier answers, as data: verdicts a claim and profile, with counterexamples that replay."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from hitproof.spec.scenario import Scenario
from hitproof.spec.seen import RuleSeen

__all__ = [
    "AXIOMS_DIGEST",
    "CLAIMS",
    "ClaimResult",
    "ClaimVerdict",
    "Counterexample",
    "MutantResult",
    "SEMANTICS_VERSION",
    "VerifyReport",
    "joint_verdict",
]

SEMANTICS_VERSION = 1
"""Grows when a rule file would mean something else than before."""

CLAIMS = (
    "sound",
    "complete",
    "deterministic",
    "fail_closed",
    "repair_sound",
    "cheapest_first",
    "terminates",
    "separation",
    "intersection_satisfiable",
    "static_graph",
    "check_to_use",
    "alignment",
    "identity_monotone",
    "admission_bounded",
    "graph_covers_machine",
)
"""Claims that a rulebook must keep, in the order in which they are told."""

AXIOMS_DIGEST = "05fd5a208473d519fd9fd20b65fab6e0a04a90514ecbcd9b8b7de7a82b4898ee"
"""Digest of the axioms that proofs rest on: of the files in `verification/axioms/`, which the running path never reads.
A proof that was made with others is not one of what this version asks for. `make schema` writes it.
"""

ClaimVerdict = Literal["proved", "refuted", "unknown"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Counterexample(_Model):
    """A state or a story in which the claim fails, and what the engine did with it.

    Args:
        sentence: What goes wrong, in plain words.
        rule: Id of the rule concerned, `object/check` or `object/option`.
        place: `file:line:column` of that rule.
        scenario: A scenario that the engine replays; it passes exactly when the failure is real.
        replayed: True where the engine was seen to do what the scenario says.
        differences: What the engine did otherwise, where it ran the scenario: one of the two readings of the rules is
            wrong then, the verifier's or the engine's.
        seen: The rules concerned, each part of their conditions with the values that the engine saw.
    """

    sentence: str
    rule: str
    place: str
    scenario: Scenario | None
    replayed: bool
    differences: list[str] = []
    seen: list[RuleSeen] = []


class ClaimResult(_Model):
    """The verdict on one claim for one profile.

    Args:
        method: How it was decided.
        assumptions: Ids of the rulebook's assumptions that the proof used, and of the proof model's own.
        obligations: What had to hold, each a question to the solver or a share of one.
        agreed: Questions that a second solver answered with no, as the first did; 0 where none was asked.
        shared: Those of them that were proved once for several groups or models, and not for this one.
        witness: A state that the claim's premise allows: without one, nothing would have been said.
        detail: Why a verdict is unknown, or what a proof covered.
        counterexample: The first that was found, one that the engine replayed before others.
        more: Others that it replayed, each of another rule or with another reason, where they were asked for.
    """

    id: str
    verdict: ClaimVerdict
    seconds: float
    method: str
    profile: str
    sentence: str
    assumptions: list[str]
    obligations: int
    agreed: int = 0
    shared: int = 0
    witness: str | None = None
    detail: str = ""
    counterexample: Counterexample | None = None
    more: list[Counterexample] = []


class MutantResult(_Model):
    """A rulebook deliberately broken: the claim that must be refuted, and whether it was."""

    id: str
    claim: str
    place: str
    change: str
    killed: bool
    profile: str
    result: ClaimResult


class VerifyReport(_Model):
    """All verdicts on one rulebook."""

    rulebook: str
    digest: str
    verdict: ClaimVerdict
    claims: list[ClaimResult]
    mutants: list[MutantResult] = []


def joint_verdict(verdicts: list[ClaimVerdict]) -> ClaimVerdict:
    """`refuted` outranks `unknown`, which outranks `proved`; nothing at all is unknown."""
    if "refuted" in verdicts:
        return "refuted"
    return "unknown" if "unknown" in verdicts or not verdicts else "proved"
