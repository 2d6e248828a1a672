"""One process's share of the work: parts of claims proved for bound models, and mutants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.profile import Profile
from hitproof.spec.proof import MutantResult
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Replayer
from hitproof.verification.claims import ALL_CLAIMS
from hitproof.verification.cut import Cut, Cutter
from hitproof.verification.judge import Answered, judge
from hitproof.verification.mutants import Mutant
from hitproof.verification.parts import Part
from hitproof.verification.run import Outcome, Run
from hitproof.verification.solve import Asker

__all__ = ["Done", "Job", "PartJob", "Prover"]


@dataclass(frozen=True)
class PartJob:
    """A part of a claim, to be proved for a model: the part is named by its place in the claim's list."""

    claim: str
    profile: str
    index: int


Job = PartJob | Mutant
Done = Outcome | MutantResult


class Prover:
    """Proves parts; resolves the rulebook once, and binds it once a model.

    Args:
        source: The rule files.
        profiles: Models by name.
        replayer: Runs counterexamples on the real engine.
        timeout_ms: Bound on one question to the solver.
    """

    def __init__(
        self, source: RuleSource, profiles: Mapping[str, Profile], replayer: Replayer | None, timeout_ms: int
    ) -> None:
        self.source, self.profiles, self.replayer = source, profiles, replayer
        self.asker = Asker(timeout_ms)
        self._rulebook: Rulebook | None = None
        self._cutters: dict[str, Cutter] = {}
        self._parts: dict[tuple[str, str], list[tuple[Part, Cut]]] = {}

    @property
    def rulebook(self) -> Rulebook:
        """The resolved rulebook."""
        if self._rulebook is None:
            self._rulebook = resolve(self.source)
        return self._rulebook

    def parts(self, claim: str, profile: str) -> list[tuple[Part, Cut]]:
        """The parts of a claim for a model, each with the rules that it reads."""
        if profile not in self._cutters:
            self._cutters[profile] = Cutter(bind_rulebook(self.rulebook, self.profiles[profile]))
        if (claim, profile) not in self._parts:
            self._parts[claim, profile] = _parts(claim, self._cutters[profile])
        return self._parts[claim, profile]

    def do(self, job: Job) -> Done:
        """Prove a part, or ask a mutant."""
        return self.prove(job) if isinstance(job, PartJob) else self.ask(job)

    def prove(self, job: PartJob) -> Outcome:
        """Prove one part."""
        part, cut = self.parts(job.claim, job.profile)[job.index]
        return self._outcome(job.claim, part, cut, self._cutters[job.profile])

    def ask(self, mutant: Mutant) -> MutantResult:
        """Break the rulebook in one place and ask the mutant's claim, until it is refuted.

        Parts that the break has touched are asked first: the others are as true as before.

        Raises:
            ReferenceNameError: The rulebook has no such place.
        """
        broken, where = mutant.of(self.source)
        bound = bind_rulebook(resolve(broken, lenient=True), self.profiles[mutant.profile])
        intact = {cut.key for _, cut in self.parts(mutant.claim, mutant.profile)}
        cutter = Cutter(bound)
        parts = sorted(_parts(mutant.claim, cutter), key=lambda one: one[1].key in intact)
        answers: list[Answered] = []
        for part, cut in parts:
            outcome = self._outcome(mutant.claim, part, cut, cutter)
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

    def _outcome(self, claim: str, part: Part, cut: Cut, cutter: Cutter) -> Outcome:
        begin = perf_counter()
        run = Run(cut, self.asker, self.replayer, part)
        ALL_CLAIMS[claim].prove(run)
        failed = bool(run.gaps) or run.counterexample is not None
        if not (failed and part.free):
            return run.outcome(perf_counter() - begin)
        bound = replace(part, free=frozenset())
        again = self._outcome(claim, bound, cutter.cut(bound), cutter)
        return replace(again, seconds=perf_counter() - begin, alone=True)


def _parts(claim: str, cutter: Cutter) -> list[tuple[Part, Cut]]:
    return [(part, cutter.cut(part)) for part in ALL_CLAIMS[claim].parts_of(cutter.bound)]
