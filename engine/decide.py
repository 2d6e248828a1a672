"""The decision: lengths, prices and joint choice; the short path from a resolved state to a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.compile import compile_condition, compile_price
from hitproof.engine.facts import FactTypes
from hitproof.engine.outcome import Judge, Outcome, Step
from hitproof.engine.reasons import dispose, explain_failures, raise_flags
from hitproof.engine.slopes import never_rises
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import reads
from hitproof.spec.decision import SEVERITY, Decision, PlanStep, Verdict
from hitproof.spec.errors import SchemaError
from hitproof.spec.leasing import Leasing
from hitproof.spec.price import NO_LIMIT, UNKNOWN_PRICE, microseconds
from hitproof.spec.rulebook import LEVELS

__all__ = ["Engine", "plan_step", "verdict_of"]


class Engine:
    """Decides requests by one bound rulebook; holds no state of its own."""

    def __init__(self, bound: BoundRulebook) -> None:
        self.bound = bound
        self.types = FactTypes(bound.rulebook)
        self.judge = Judge(bound, self.types)
        self._price = compile_price(bound.rulebook.prefill.cost)
        # Where less reuse never makes the rest cheaper, the first length that is too dear ends the search.
        self._cheapens = never_rises(bound.rulebook.prefill.cost, "length")
        # Then a length that needs no repair is better than every shorter one.
        self._longest_is_best = self._cheapens and self.judge.order.cheapest_then_longest
        self._door = bound.rulebook.door
        self.counted = _counted(bound)
        """Facts of requests and of the run time that the process of a recovery reads."""
        recompute = {None if group.recompute is None else group.recompute.when for group in bound.groups}
        self._recompute = None if None in recompute else [compile_condition(when) for when in recompute if when]

    @property
    def leasing(self) -> Leasing:
        """How the rulebook says that what a decision rests on is held.

        Raises:
            SchemaError: It declares no `leasing:`.
        """
        rulebook = self.bound.rulebook
        if rulebook.leasing is None:
            raise SchemaError(
                "the rulebook does not say how what is used is held", where=rulebook.where, expected="leasing"
            )
        return rulebook.leasing

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
        # Where the prompt cannot be computed from its first token on, reusing nothing is no plan.
        nothing = self._price(request, state.runtime, 0) if self.can_recompute(state) else NO_LIMIT
        logical, first = self._longest(state, empties, proposed, nothing, full=explain)
        if explain and first is None and proposed:
            first = self.judge.outcome(state, empties, logical or proposed[0])
        if first is not None and first.length == logical and first.clean and not first.steps and self._longest_is_best:
            rest = min(self._price(request, state.runtime, logical), UNKNOWN_PRICE)
            return self._answer(state, logical, first, rest, first, explain=explain)
        lengths = [length for length in resumable_lengths(self.judge.groups, state, proposed) if length <= logical]
        choose = self._cheapest if self.judge.order.cheapest_then_longest else self._first_in_order
        best, total = choose(state, empties, lengths, logical, first, nothing)
        return self._answer(state, logical, best, total, first, explain=explain)

    def _cheapest(
        self, state: Resolved, empties: list[Any], lengths: Iterable[int], top: int, first: Outcome | None, nothing: int
    ) -> tuple[Outcome | None, int]:
        """The cheapest plan, the longest of them, and its price; None where computing all is possible for less."""
        price, request, runtime = self._price, state.request, state.runtime
        best, best_total = None, nothing
        for length in lengths:
            rest = price(request, runtime, length)
            if length < top and (rest > best_total or (rest == best_total and best is not None)):
                if self._cheapens:
                    break
                continue
            if first is not None and length == first.length:
                outcome = first
            else:
                at_most = best_total - rest if best_total < UNKNOWN_PRICE else NO_LIMIT
                outcome = self.judge.outcome(state, empties, length, full=False, at_most=at_most)
            total = min(rest + outcome.price, UNKNOWN_PRICE)
            # Lengths fall, so at equal price the longer one stands already; only L = 0 must yield.
            if outcome.clean and (total < best_total or (total == best_total and best is None)):
                best, best_total = outcome, total
        return best, best_total

    def _first_in_order(
        self, state: Resolved, empties: list[Any], lengths: Iterable[int], top: int, first: Outcome | None, nothing: int
    ) -> tuple[Outcome | None, int]:
        """The plan that the declared order puts first, be it the cheapest or not, and its price; None for no reuse."""
        order = self.judge.order
        best, best_total = None, nothing
        best_key = None if nothing >= NO_LIMIT else order.sort_key(nothing, 0, len(LEVELS), 0, ())
        for length in lengths:
            outcome = first if first is not None and length == first.length else None
            if outcome is None or not outcome.complete:
                outcome = self.judge.outcome(state, empties, length)
            total = min(self._price(state.request, state.runtime, length) + outcome.price, UNKNOWN_PRICE)
            level = max((option.level for _, _, option, _ in outcome.steps), default=-1)
            key = order.sort_key(total, length, level, len(outcome.steps), outcome.ids())
            if outcome.clean and (best_key is None or key < best_key):
                best, best_total, best_key = outcome, total, key
        return best, best_total

    def _longest(
        self, state: Resolved, empties: list[Any], lengths: list[int], nothing: int, *, full: bool
    ) -> tuple[int, Outcome | None]:
        """The longest length at which identity holds in every group, and its outcome where that was worked out."""
        if not lengths:
            return 0, None
        top = lengths[0]
        rest = self._price(state.request, state.runtime, top)
        at_most = nothing - rest if nothing < UNKNOWN_PRICE else NO_LIMIT
        outcome = self.judge.outcome(state, empties, top, full=full, at_most=at_most)
        if outcome.complete:
            if (outcome.clean and not outcome.steps) or not self.judge.identity_fails(outcome):
                return top, outcome
            lengths = lengths[1:]
        elif self.judge.identity_holds(state, empties, top):
            return top, outcome
        return next((length for length in lengths if self.judge.identity_holds(state, empties, length)), 0), None

    def longest_match(self, state: Resolved) -> int:
        """The longest candidate length at which identity holds in every group, in tokens; 0 where there is none.

        Args:
            state: What the decision reads; the facts of the request that the door asks for are known.
        """
        empties = self.judge.nothing()
        lengths = proposed_lengths(state)
        return next((length for length in lengths if self.judge.identity_holds(state, empties, length)), 0)

    def prefill(self, state: Resolved, length: int) -> float:
        """Price of computing everything beyond `length`, in microseconds; infinite where it is unknown."""
        return microseconds(self.prefill_price(state, length))

    def prefill_price(self, state: Resolved, length: int) -> int:
        """The same in ticks, `UNKNOWN_PRICE` where it is unknown."""
        price: int = self._price(state.request, state.runtime, length)
        return price

    def _answer(
        self,
        state: Resolved,
        logical: int,
        best: Outcome | None,
        price: int,
        first: Outcome | None,
        *,
        explain: bool,
    ) -> Decision:
        verdict: Verdict
        if best is not None:
            verdict = verdict_of(best)
        else:
            verdict = "recompute" if logical else "miss"
            if not self.can_recompute(state):
                verdict = "refuse"
        steps = () if best is None else tuple(map(plan_step, best.steps))
        usable = 0 if best is None else best.length
        cost = 0.0 if best is None else best.cost
        total = self.prefill(state, 0) if best is None else microseconds(price)
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
            dispose(self.judge, state, first, best),
            raise_flags(self.judge, state, best, usable),
            self.bound.rulebook.digest,
        )

    def can_recompute(self, state: Resolved) -> bool:
        """Whether every group may be computed from token 0 on, by what the request brings."""
        return self._recompute is not None and all(holds(state.request) for holds in self._recompute)


def _counted(bound: BoundRulebook) -> tuple[str, ...]:
    process = bound.rulebook.recovering
    if process is None:
        return ()
    nodes = [one.start for one in process.counters]
    nodes += [node for step in process.steps for node in (step.when, *step.sets.values()) if node is not None]
    paths = {path for node in nodes for path in reads(node)}
    return tuple(sorted(path for path in paths if path.startswith(("request.", "runtime."))))


def verdict_of(outcome: Outcome) -> Verdict:
    """The verdict of a plan by the severest level of its steps."""
    level = max((option.level for _, _, option, _ in outcome.steps), default=None)
    return "reuse" if level is None else SEVERITY[LEVELS[level]]  # type: ignore[return-value]


def plan_step(step: Step) -> PlanStep:
    """A step as a decision tells it."""
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
