"""Questions to the solver: seeds and effort fixed, time capped; a question that is given up is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from hitproof.verification.questions import Checking, Questions, question_text
from hitproof.verification.terms import implies

__all__ = ["Answer", "Asker"]

MAX_EFFORT = 100_000_000
"""Bound on the solver's own count of steps for one question: the same on every machine, unlike time."""

MAX_MEMORY_MB = 4096
"""Bound on the solver's memory; a question that needs more is unknown."""


@dataclass(frozen=True)
class Answer:
    """`unsat`, `sat` with a model, or `unknown` with the solver's reason."""

    status: str
    model: Any = None
    reason: str = ""


@dataclass
class Asker:
    """Asks whether formulas can hold together.

    Args:
        timeout_ms: Bound on one question; a backstop behind the bound on effort.
        questions: Is told each question that has no model.
    """

    timeout_ms: int = 20_000
    questions: Questions = field(default_factory=lambda: Questions(Checking()))

    def ask(
        self,
        ctx: z3.Context,
        formulas: Iterable[Any],
        *,
        soft: Callable[[], Iterable[Any]] | Iterable[Any] = (),
    ) -> Answer:
        """Can all formulas hold together?

        Args:
            soft: Wishes, or a function that makes them: kept, in order, as long as they can be; they make models small.
        """
        solver = self._solver(ctx, formulas)
        text = question_text(solver) if self.questions.checking.active else ""
        answer = self.answer(solver)
        if answer.status == "unsat" and text:
            self.questions.refuted(text)
        if answer.status != "sat":
            return answer
        model = answer.model
        for wish in soft() if callable(soft) else soft:
            solver.push()
            solver.add(wish)
            again = self.answer(solver)
            if again.status == "sat":
                model = again.model
            else:
                solver.pop()
        return Answer("sat", model)

    def rules_out(self, ctx: z3.Context, premise: Iterable[Any], formulas: Sequence[Any]) -> bool:
        """Surely none of the formulas can hold with the premise."""
        return self.ask(ctx, [*premise, z3.Or(list(formulas))]).status == "unsat"

    def possible(
        self, ctx: z3.Context, premise: Iterable[Any], formulas: Sequence[tuple[str, Any]]
    ) -> tuple[set[str], list[tuple[str, str]]]:
        """Which of the labelled formulas can hold with the premise, each in a state of its own.

        Returns:
            Labels of those that can, and of those that were given up, with the reason.
        """
        solver = self._solver(ctx, premise)
        marks = [z3.Bool(f"question.{index}", ctx=ctx) for index in range(len(formulas))]
        # All formulas are told once; a mark then asks for one of them.
        solver.add(*(implies(mark, formula) for mark, (_, formula) in zip(marks, formulas, strict=True)))
        found: set[str] = set()
        undecided: list[tuple[str, str]] = []
        for mark, (label, _) in zip(marks, formulas, strict=True):
            answer = self.answer(solver, mark)
            if answer.status == "unknown":
                undecided.append((label, answer.reason))
            if answer.status == "sat":
                found.add(label)
        return found, undecided

    def answer(self, solver: z3.Solver, *marks: Any) -> Answer:
        """What the solver says of all that it was told, with these marks set."""
        result = solver.check(*marks)
        if result == z3.unsat:
            return Answer("unsat")
        if result != z3.sat:
            return Answer("unknown", reason=solver.reason_unknown())
        return Answer("sat", solver.model())

    def solver(self, ctx: z3.Context) -> z3.Solver:
        """A solver for a search, asked again and again on top of what it was told; its `unsat` is part of no proof."""
        return self._solver(ctx, ())

    def _solver(self, ctx: z3.Context, formulas: Iterable[Any]) -> z3.Solver:
        # Questions are many and small: preparing them takes longer than answering, and so does the newer arithmetic.
        solver = z3.SimpleSolver(ctx=ctx)
        solver.set("arith.solver", 2)
        solver.set(timeout=self.timeout_ms, rlimit=MAX_EFFORT, random_seed=7, max_memory=MAX_MEMORY_MB)
        solver.add(*formulas)
        return solver
