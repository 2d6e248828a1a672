"""The decision: lengths, prices and joint choice; the short path from a resolved state to a verdict."""

from __future__ import annotations

from typing import Any

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.compile import compile_condition, compile_price
from hitproof.engine.facts import FactTypes
from hitproof.engine.outcome import Judge, Outcome, Step
from hitproof.engine.reasons import dispose, explain_failures, raise_flags
from hitproof.engine.slopes import never_rises
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.decision import SEVERITY, Decision, PlanStep, Verdict
from hitproof.spec.rulebook import LEVELS

__all__ = ["Engine"]


class Engine:
    """Decides requests by one bound rulebook; holds no state of its own."""

    def __init__(self, bound: BoundRulebook) -> None:
        self.bound = bound
        self.types = FactTypes(bound.rulebook)
        self.judge = Judge(bound, self.types)
        self._price = compile_price(bound.rulebook.prefill.cost)
        # Where less reuse never makes the rest cheaper, the first length that is too dear ends the search.
        self._cheapens = never_rises(bound.rulebook.prefill.cost, "length")
        self._door = bound.rulebook.door
        recompute = {None if group.recompute is None else group.recompute.when for group in bound.groups}
        self._recompute = None if None in recompute else [compile_condition(when) for when in recompute if when]

    def decide(self, state: Resolved, *, explain: bool = True) -> Decision:
        """Decide one request.

        Args:
            state: Segments, request, run time and kernels.
            explain: Also give reasons, dispositions and flags; without it only what a replay counts.
        """
        request = state.request
        if any(getattr(request, name) is None for name in self._door):
            unknown = tuple(f"door/{name}" for name in self._door if getattr(request, name) is None)
            return Decision("miss", 0, 0, failed=unknown, digest=self.bound.rulebook.digest)
        empties = self.judge.nothing()
        proposed = proposed_lengths(state)
        price, runtime = self._price, state.runtime
        best_length, best, best_total = 0, None, self.prefill(state, 0)
        logical, first = self._longest(state, empties, proposed, best_total, full=explain)
        if explain and first is None and proposed:
            first = self.judge.outcome(state, empties, logical or proposed[0])
        for length in resumable_lengths(self.bound, state, proposed):
            if length > logical:
                continue
            rest = price(request, runtime, length)
            if length < logical and (rest > best_total or (rest == best_total and best is not None)):
                if self._cheapens:
                    break
                continue
            if first is not None and length == first.length:
                outcome = first
            else:
                outcome = self.judge.outcome(state, empties, length, full=False, at_most=best_total - rest)
            total = rest + outcome.cost
            # Lengths fall, so at equal price the longer one stands already; only L = 0 must yield.
            if outcome.clean and (total < best_total or (total == best_total and best is None)):
                best_length, best, best_total = length, outcome, total
        return self._answer(state, logical, best_length, best, best_total, first, explain=explain)

    def _longest(
        self, state: Resolved, empties: list[Any], lengths: list[int], nothing: float, *, full: bool
    ) -> tuple[int, Outcome | None]:
        """The longest length at which identity holds in every group, and its outcome where that was worked out."""
        if not lengths:
            return 0, None
        top = lengths[0]
        outcome = self.judge.outcome(state, empties, top, full=full, at_most=nothing - self.prefill(state, top))
        if outcome.complete:
            if not self.judge.identity_fails(outcome):
                return top, outcome
            lengths = lengths[1:]
        elif self.judge.identity_holds(state, empties, top):
            return top, outcome
        return next((length for length in lengths if self.judge.identity_holds(state, empties, length)), 0), None

    def prefill(self, state: Resolved, length: int) -> float:
        """Price of computing everything beyond `length`, in microseconds; infinite where it is unknown."""
        price: float = self._price(state.request, state.runtime, length)
        return price

    def _answer(
        self,
        state: Resolved,
        logical: int,
        usable: int,
        best: Outcome | None,
        total: float,
        first: Outcome | None,
        *,
        explain: bool,
    ) -> Decision:
        verdict: Verdict
        if best is not None:
            level = max((option.level for _, _, option, _ in best.steps), default=None)
            verdict = "reuse" if level is None else SEVERITY[LEVELS[level]]  # type: ignore[assignment]
        else:
            verdict = "recompute" if logical else "miss"
            if not self._can_recompute(state):
                verdict = "refuse"
        steps = () if best is None else tuple(map(_step, best.steps))
        cost = 0.0 if best is None else best.cost
        if not explain:
            return Decision(verdict, logical, usable, steps, cost, total)
        failed, reasons = explain_failures(self.judge, state, first)
        return Decision(
            verdict,
            logical,
            usable,
            steps,
            cost,
            total,
            failed,
            reasons,
            dispose(self.judge, state, first),
            raise_flags(self.judge, state, best, usable),
            self.bound.rulebook.digest,
        )

    def _can_recompute(self, state: Resolved) -> bool:
        return self._recompute is not None and all(holds(state.request) for holds in self._recompute)


def _step(step: Step) -> PlanStep:
    group, index, option, cost = step
    return PlanStep(
        group=group.bound.id,
        segment=index,
        option=option.bound.id,
        repair=option.bound.repair,
        level=option.bound.level,
        joint=option.bound.joint,
        cost_us=None if cost == float("inf") else cost,
    )
