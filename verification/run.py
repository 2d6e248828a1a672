"""One part of a claim on one model: questions asked, the first failure found, and its replay on the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import HitproofError
from hitproof.spec.proof import Counterexample
from hitproof.spec.scenario import Replayer, Scenario
from hitproof.spec.seen import RuleSeen
from hitproof.verification.another import Cause, cause_of, without
from hitproof.verification.cut import Cut
from hitproof.verification.parts import Part, whole_part
from hitproof.verification.solve import Answer, Asker

__all__ = ["Claim", "Outcome", "Run"]

Obligation = tuple[str, Any]
"""A label, and the formula that must not hold, or for a witness must be able to hold."""


@dataclass(frozen=True)
class Claim:
    """A statement about the rulebook.

    Args:
        id: Its name.
        sentence: What it says, in plain words.
        method: How it is decided.
        assumptions: Ids of the rulebook's assumptions that it uses, and of the proof model's own.
        prove: Asks all questions of a run: those of its part, or of the whole model where there are no parts.
        parts: What of a bound rulebook is proved apart, so that equal parts of several models are proved once.
        covers: What a proof covered, with `{count}` for the sum over its parts.
    """

    id: str
    sentence: str
    method: str
    assumptions: tuple[str, ...]
    prove: Callable[[Run], None]
    parts: Callable[[BoundRulebook], Sequence[Part]] | None = None
    covers: str = ""

    def parts_of(self, bound: BoundRulebook) -> list[Part]:
        """The parts in which the claim is proved for a model; they ask everything that there is to ask."""
        return [whole_part(bound)] if self.parts is None else list(self.parts(bound))


@dataclass(frozen=True)
class Outcome:
    """What proving one part came to.

    Args:
        obligations: What had to hold, each a question to the solver or a share of one.
        count: Of whatever the claim counts.
        rules: Places of rules that the part asked about, with their ids.
        decisive: Places of those that decide in some state.
        alone: It rests on constants that the part's key leaves open, so that no other model may share it.
        agreed: Questions that a second solver answered with no, as the first did.
        asked: Digests of the questions that have no model, where they were asked again or written down.
        more: Counterexamples beside the first, where they were asked for.
    """

    obligations: int
    seconds: float
    witness: str | None
    counterexample: Counterexample | None
    gaps: tuple[str, ...]
    covered: tuple[str, ...]
    count: int
    rules: dict[str, str]
    decisive: frozenset[str]
    alone: bool = False
    agreed: int = 0
    asked: tuple[str, ...] = ()
    more: tuple[Counterexample, ...] = ()


@dataclass
class Run:
    """State of proving one part of a claim.

    Args:
        bound: The rules that the part reads; all of them for a claim without parts.
        part: What is to be proved.
        known: Causes by which obligations have failed already: they are asked whether they fail for another.
    """

    bound: BoundRulebook
    asker: Asker
    replayer: Replayer | None
    part: Part
    obligations: int = 0
    count: int = 0
    witness: str | None = None
    counterexample: Counterexample | None = None
    gaps: list[str] = field(default_factory=list)
    covered: list[str] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)
    decisive: set[str] = field(default_factory=set)
    known: tuple[Cause, ...] = ()
    _failed: tuple[str, Any, Any] | None = None

    @property
    def whole(self) -> BoundRulebook:
        """The rules that nothing is withheld from: to write and replay a counterexample, never to prove."""
        return self.bound.whole if isinstance(self.bound, Cut) else self.bound

    @property
    def group(self) -> BoundGroup:
        """The first group that the part is about."""
        return self.bound.group(self.part.groups[0])

    @property
    def assumptions(self) -> frozenset[str]:
        """Assumptions that the rulebook grants."""
        return frozenset(self.bound.rulebook.assumptions)

    @property
    def done(self) -> bool:
        """A replayed failure was found; nothing more needs to be asked."""
        return self.counterexample is not None and self.counterexample.replayed

    @property
    def cause(self) -> Cause | None:
        """Why the obligation failed that did so last; None where none has."""
        return None if self._failed is None else cause_of(*self._failed)

    def must_not(
        self,
        ctx: Any,
        formulas: Iterable[Any],
        label: str,
        *,
        soft: Callable[[], Iterable[Any]] | Iterable[Any] = (),
        wrong: Any = None,
    ) -> Answer | None:
        """An obligation: the formulas must not hold together. A model is a failure and is returned.

        Args:
            soft: Wishes that make a failure small, or what makes them once there is a failure.
            wrong: The one of the formulas that says what is wrong; the others are what must be so for it to matter.
        """
        self.obligations += 1
        asked = list(formulas)
        if any(cause.label == label for cause in self.known):
            asked.append(without(label, z3.And(asked) if wrong is None else wrong, self.known))
        answer = self._heard(label, self.asker.ask(ctx, asked, soft=soft))
        if answer is not None:
            self._failed = label, z3.And(asked) if wrong is None else wrong, answer.model
        return answer

    def must_none(
        self,
        ctx: Any,
        premise: Sequence[Any],
        obligations: Sequence[Obligation],
        *,
        soft: Callable[[], Iterable[Any]] | Iterable[Any] = (),
    ) -> tuple[str, Answer] | None:
        """Obligations over one premise: none of the formulas may hold with it.

        They are asked in one question, and one by one only where that one cannot be answered with no.

        Args:
            soft: Wishes that make a failure small, or what makes them once there is a failure.

        Returns:
            The label of the first that can hold, and a model; None where none can or the solver gave up.
        """
        if not obligations:
            return None
        self.obligations += len(obligations)
        obligations = [(label, without(label, formula, self.known)) for label, formula in obligations]
        if len(obligations) > 1 and self.asker.rules_out(ctx, premise, [formula for _, formula in obligations]):
            return None
        for label, formula in obligations:
            found = self._heard(label, self.asker.ask(ctx, [*premise, formula], soft=soft))
            if found is not None:
                self._failed = label, formula, found.model
                return label, found
        return None

    def must(self, ctx: Any, formulas: Iterable[Any], label: str) -> Answer | None:
        """A witness: the formulas must hold together for some state. Returns the model, or None where none exists."""
        self.obligations += 1
        return self._heard(label, self.asker.ask(ctx, formulas))

    def must_each(self, ctx: Any, premise: Sequence[Any], witnesses: Sequence[Obligation]) -> set[str]:
        """Witnesses over one premise: the labels of those that can hold with it, each in a state of its own."""
        self.obligations += len(witnesses)
        possible, undecided = self.asker.possible(ctx, premise, witnesses)
        self.gaps += [f"{label}: the solver gave up ({reason})" for label, reason in undecided]
        return possible

    def fail(
        self,
        sentence: str,
        rule: str,
        place: object,
        scenario: Scenario | None,
        *,
        axioms: Sequence[RuleSeen] = (),
    ) -> None:
        """Record a failure, after replaying it; one that does not replay leaves the claim unknown.

        Args:
            sentence: What goes wrong.
            rule: The rule that is to blame.
            place: Where it stands.
            scenario: The story.
            axioms: What fails that no rule says, and the engine cannot see therefore.
        """
        replayed, differences, seen = False, list[str](), list[RuleSeen]()
        why = "no engine was given to replay it" if self.replayer is None else "it has no story to replay"
        if self.replayer is not None and scenario is not None:
            try:
                result = self.replayer.replay(self.whole.rulebook, scenario)
                replayed, differences, why = result.passed, result.differences, "; ".join(result.differences)
                seen = [*axioms, *self.replayer.seen(self.whole.rulebook, scenario, rule)] if replayed else []
            except HitproofError as error:
                why = str(error)
        if not replayed:
            self.gaps.append(f"{rule}: a counterexample did not replay ({why})")
        if self.counterexample is None or (replayed and not self.counterexample.replayed):
            self.counterexample = Counterexample(
                sentence=sentence,
                rule=rule,
                place=str(place),
                scenario=scenario,
                replayed=replayed,
                differences=differences,
                seen=seen,
            )

    def outcome(self, seconds: float) -> Outcome:
        """What was found; a part without a witness is a gap, whatever the other parts have."""
        questions = self.asker.questions
        missed = questions.undecided
        given_up = [f"{self.part.label}: cvc5 has no answer to {len(missed)} questions ({missed[0]})"] if missed else []
        silent = self.witness is None and self.counterexample is None
        nothing = [f"{self.part.label}: no state was found that the premise allows"] if silent else []
        return Outcome(
            obligations=self.obligations,
            seconds=seconds,
            witness=self.witness,
            counterexample=self.counterexample,
            gaps=(*self.gaps, *given_up, *nothing),
            covered=tuple(self.covered),
            count=self.count,
            rules=dict(self.rules),
            decisive=frozenset(self.decisive),
            agreed=questions.agreed,
            asked=tuple(questions.asked),
        )

    def _heard(self, label: str, answer: Answer) -> Answer | None:
        if answer.status == "unknown":
            self.gaps.append(f"{label}: the solver gave up ({answer.reason})")
        return answer if answer.status == "sat" else None
