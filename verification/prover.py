"""One process's share of the work: parts of claims proved for bound models, and mutants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import process_time

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import Counterexample, MutantResult
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Replayer
from hitproof.verification.another import distinct
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.cut import Cutter
from hitproof.verification.judge import Answered, judge
from hitproof.verification.mutants import Mutant
from hitproof.verification.parts import Part
from hitproof.verification.questions import Checking, Questions
from hitproof.verification.run import Outcome, Run
from hitproof.verification.solve import Asker

__all__ = ["Done", "Job", "PartJob", "Prover"]


@dataclass(frozen=True)
class PartJob:
    """A part of a claim, to be proved for a model: the part is named by its place in the claim's list."""

    claim: str
    profile: str
    index: int


TRIES = 3
"""Searches for each further counterexample; not every other cause makes another story."""

Job = PartJob | Mutant
Done = Outcome | MutantResult


class Prover:
    """Proves parts; resolves the rulebook once, and binds it once a model.

    Args:
        source: The rule files.
        profiles: Models by name.
        replayer: Runs counterexamples on the real engine.
        timeout_ms: Bound on one question to the solver.
        checking: What becomes of each question beside its answer.
        wanted: Most counterexamples to a part.
    """

    def __init__(
        self,
        source: RuleSource,
        profiles: Mapping[str, Profile],
        replayer: Replayer | None,
        timeout_ms: int,
        checking: Checking | None = None,
        wanted: int = 1,
    ) -> None:
        self.wanted = wanted
        self.source, self.profiles, self.replayer = source, profiles, replayer
        self.asker = Asker(timeout_ms, Questions(checking or Checking()))
        # Mutants and further counterexamples are stories that the engine replays: nothing rests on what has no model.
        self._asker_of_stories = Asker(timeout_ms)
        self._rulebook: Rulebook | None = None
        self._cutters: dict[str, Cutter] = {}
        self._parts: dict[tuple[str, str], list[Part]] = {}

    @property
    def rulebook(self) -> Rulebook:
        """The resolved rulebook."""
        if self._rulebook is None:
            self._rulebook = resolve(self.source)
        return self._rulebook

    def parts(self, claim: str, profile: str) -> list[Part]:
        """The parts of a claim for a model."""
        if (claim, profile) not in self._parts:
            self._parts[claim, profile] = ALL_CLAIMS[claim].parts_of(self.cutter(profile).bound)
        return self._parts[claim, profile]

    def cutter(self, profile: str) -> Cutter:
        """Cuts the rulebook that is bound to a model."""
        if profile not in self._cutters:
            self._cutters[profile] = Cutter(bind_rulebook(self.rulebook, self.profiles[profile]))
        return self._cutters[profile]

    def do(self, job: Job) -> Done:
        """Prove a part, or ask a mutant."""
        return self.prove(job) if isinstance(job, PartJob) else self.ask(job)

    def prove(self, job: PartJob) -> Outcome:
        """Prove one part."""
        return self.ask_part(job.claim, self.parts(job.claim, job.profile)[job.index], self.cutter(job.profile))

    def ask(self, mutant: Mutant) -> MutantResult:
        """Break the rulebook in one place and ask the mutant's claim, until it is refuted.

        Parts that the break has touched are asked first: the others are as true as before.

        Raises:
            ReferenceNameError: The rulebook has no such place.
        """
        broken, where = mutant.of(self.source)
        bound = bind_rulebook(resolve(broken, lenient=True), self.profiles[mutant.profile])
        cutter, intact = Cutter(bound), self.cutter(mutant.profile)
        before = {intact.key(part) for part in self.parts(mutant.claim, mutant.profile)}
        parts = ALL_CLAIMS[mutant.claim].parts_of(bound)
        answers: list[Answered] = []
        for part in sorted(parts, key=lambda part: cutter.key(part) in before):
            outcome = self.ask_part(mutant.claim, part, cutter, self._asker_of_stories)
            answers.append(Answered(outcome))
            if outcome.counterexample is not None and outcome.counterexample.replayed:
                break
        result = judge(ALL_CLAIMS[mutant.claim], mutant.profile, answers)
        return MutantResult(
            id=mutant.id,
            claim=mutant.claim,
            place=str(where),
            change=mutant.change,
            killed=result.verdict == "refuted",
            profile=mutant.profile,
            result=result,
        )

    def ask_part(self, claim: str, part: Part, cutter: Cutter, asker: Asker | None = None) -> Outcome:
        """Prove a part of a claim on rules that a cutter cuts; with its own constants where open ones do not do."""
        begin = process_time()
        asker = asker or self.asker
        asker.questions.begin(f"{claim}: {part.label}")
        run = Run(cutter.cut(part), asker, self.replayer, part)
        ALL_CLAIMS[claim].prove(run)
        failed = bool(run.gaps) or run.counterexample is not None
        if not (failed and part.free):
            more = tuple(self._others(claim, part, cutter, run)) if run.done and self.wanted > 1 else ()
            return replace(run.outcome(process_time() - begin), more=more)
        tried = tuple(asker.questions.asked)
        again = self.ask_part(claim, replace(part, free=frozenset()), cutter, asker)
        return replace(again, seconds=process_time() - begin, alone=True, asked=(*tried, *again.asked))

    def _others(self, claim: str, part: Part, cutter: Cutter, run: Run) -> list[Counterexample]:
        """Counterexamples to a part beside the one that a run has found: it is asked again, without known causes.

        A claim that finds its counterexample by a search of its own has one a part.
        """
        found, causes = [run.counterexample], [run.cause]
        for _ in range(TRIES * self.wanted):
            if causes[-1] is None or len(found) >= self.wanted:
                break
            again = Run(
                cutter.cut(part), self._asker_of_stories, self.replayer, part, known=tuple(filter(None, causes))
            )
            ALL_CLAIMS[claim].prove(again)
            causes.append(again.cause)
            if again.done:
                found = list(distinct([one for one in (*found, again.counterexample) if one is not None]))
        return [one for one in found[1:] if one is not None]
