"""Questions to the solver: seeds fixed, time capped, a time-out is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import z3

__all__ = ["Answer", "Asker"]

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
    """Asks whether formulas can hold together, and counts the questions.

    Args:
        timeout_ms: Bound on one question.
    """

    timeout_ms: int = 20_000
    asked: int = 0
    unknown: list[str] = field(default_factory=list)

    def ask(self, ctx: z3.Context, formulas: Iterable[Any], label: str, *, soft: Iterable[Any] = ()) -> Answer:
        """Can all formulas hold together? `soft` ones are kept, in order, as long as they can; they make models small.

        Returns:
            The answer; an unknown one is also noted under its label.
        """
        self.asked += 1
        solver = z3.Solver(ctx=ctx)
        solver.set("timeout", self.timeout_ms)
        solver.set("random_seed", 7)
        solver.set("max_memory", MAX_MEMORY_MB)
        solver.add(*formulas)
        result = solver.check()
        if result == z3.unsat:
            return Answer("unsat")
        if result != z3.sat:
            self.unknown.append(f"{label}: {solver.reason_unknown()}")
            return Answer("unknown", reason=solver.reason_unknown())
        model = solver.model()
        for wish in soft:
            solver.push()
            solver.add(wish)
            if solver.check() == z3.sat:
                model = solver.model()
            else:
                solver.pop()
        return Answer("sat", model)
