"""Deciding under a policy: the cheapest plan that the rules of admission let in, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.decide import Engine, plan_step, verdict_of
from hitproof.engine.outcome import Outcome
from hitproof.engine.policy.plan_facts import plan_facts
from hitproof.engine.reasons import dispose, first_failing, raise_flags
from hitproof.engine.slopes import never_falls, never_rises
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import Node, compile_python
from hitproof.spec.decision import Decision, Execution, Reason, Verdict
from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value
from hitproof.spec.policy import AdmissionRule

__all__ = ["Candidate", "PolicyEngine"]

Environment = dict[str, Value]
Read = Callable[[Mapping[str, Any]], Any]
RISING = (
    "plan.recovery_us", "plan.wait_us", "plan.prefill_us",
    "plan.host_bytes", "plan.disk_bytes", "plan.loaded_blocks", "plan.level",
)  # fmt: skip
FALLING = ("plan.length", "plan.held_blocks")
"""Where a policy's price never falls with the former and never rises with these, no plan of a length or of a shorter
one is cheaper than that length without any repair."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan under a policy.

    Args:
        length: Tokens that it reuses.
        price: What the policy minimises, in microseconds; infinite where it is unknown.
        outcome: Its repairs; None where nothing is reused.
        facts: What the rules read, by path.
        broken: Admission rules that do not surely hold.
    """

    length: int
    price: float
    outcome: Outcome | None
    facts: Environment
    broken: tuple[AdmissionRule, ...]


class PolicyEngine:
    """An engine that also asks the rules of admission and execution (article 6.1, 4.3).

    Args:
        bound: The rulebook, bound to a model.
        policy: Id of one of its policies.

    Raises:
        UsageError: The rulebook has no such policy.
    """

    def __init__(self, bound: BoundRulebook, policy: str) -> None:
        rules = bound.rulebook.policy
        if policy not in rules.policies:
            raise UsageError(
                f"the rulebook has no policy '{policy}'", got=policy, expected=", ".join(rules.policies) or "none"
            )
        self.policy = rules.policies[policy]
        self.bound = bound
        self.engine = Engine(_with_repairs(bound, self.policy.repairs))
        self._admission = [
            (rules.admission[name], _read(rules.admission[name].require)) for name in self.policy.admission
        ]
        self._execution = [(rules.execution[name], _read(rules.execution[name].when)) for name in self.policy.execution]
        self._demand = {name: _read(pool.demand) for name, pool in rules.pools.items()}
        price = self.policy.minimise
        self._price = None if price is None else _read(price)
        # Then the first length that is too dear without any repair ends the search.
        self._rises = never_rises(bound.rulebook.prefill.cost, "length") and (
            price is None
            or (all(never_falls(price, path) for path in RISING) and all(never_rises(price, path) for path in FALLING))
        )

    def decide(self, state: Resolved, *, explain: bool = True) -> Decision:
        """Decide one request under the policy.

        Of each length its best plan is looked at, by the rulebook's own order of choosing. The cheapest of these that
        every admission rule surely admits is taken, at equal price the longer one. Where there is none, the rules that
        the plan without any reuse breaks say whether the request waits or is turned away.

        Args:
            state: Segments, request, run time and kernels.
            explain: Also give reasons, dispositions and flags.
        """
        return self.weigh(state, explain=explain)[0]

    def weigh(self, state: Resolved, *, explain: bool = True) -> tuple[Decision, Environment]:
        """Decide, and tell what the rules read of the plan that was taken, or else of the one that was wanted.

        A waiting request is ranked by these facts.
        """
        if any(getattr(state.request, name) is None for name in self.bound.rulebook.door):
            return self.engine.decide(state, explain=explain), {}
        computes = self.engine.can_recompute(state)
        if explain:
            decision = self.engine.decide(state)
        else:
            decision = Decision("miss", self.engine.longest_match(state), 0)
        best, wanted, nothing = self._cheapest(state, decision.logical, computes=computes)
        reasons = _reasons(wanted)
        if explain:
            # What is kept is what the policy's plan reads, or will read where the request has to wait for it.
            dispositions = self._dispositions(state, decision.logical, best or wanted)
            decision = replace(decision, dispositions=dispositions)
        if best is None:
            return self._not_now(decision, wanted, nothing, computes=computes), wanted.facts
        verdict = verdict_of(best.outcome) if best.outcome is not None else _nothing_reused(decision)
        taken = replace(
            decision,
            verdict=verdict,
            usable=best.length,
            plan=() if best.outcome is None else tuple(map(plan_step, best.outcome.steps)),
            cost_us=0.0 if best.outcome is None else best.outcome.cost,
            total_us=self.engine.prefill(state, best.length) + (best.outcome.cost if best.outcome else 0.0),
            execution=self._executes(best.facts),
            admission=reasons,
            promised=self._promised(best.facts),
            flags=raise_flags(self.engine.judge, state, best.outcome, best.length) if explain else (),
        )
        return taken, best.facts

    def _candidate(
        self, state: Resolved, length: int, outcome: Outcome | None, around: Environment, recompute_us: float
    ) -> Candidate:
        """The plan at a length as the policy sees it, `around` being the facts of request and run time."""
        facts = self._facts(state, length, outcome, around, recompute_us)
        broken = tuple(rule for rule, holds in self._admission if holds(facts) is not True)
        return Candidate(length, self._priced(facts), outcome, facts, broken)

    def _cheapest(
        self, state: Resolved, logical: int, *, computes: bool
    ) -> tuple[Candidate | None, Candidate, Candidate]:
        """The cheapest admitted plan, the one that would be taken if no rule stood against it, and that of no reuse."""
        judge, around = self.engine.judge, state.environment()
        recompute_us = self.engine.prefill(state, 0)
        wanted = nothing = self._candidate(state, 0, None, around, recompute_us)
        best = nothing if computes and not nothing.broken else None
        empties = judge.nothing()
        for length in resumable_lengths(judge.groups, state, proposed_lengths(state)):
            if length > logical:
                continue
            if best is not None and self._rises:
                # Without any repair, which no plan of this length or of a shorter one can be under.
                least = self._priced(self._facts(state, length, None, around, recompute_us))
                if least > best.price:
                    break
            outcome = judge.outcome(state, empties, length, full=False)
            if not outcome.clean:
                continue
            found = self._candidate(state, length, outcome, around, recompute_us)
            if _better(found, wanted) or (wanted is nothing and not computes):
                wanted = found
            if not found.broken and (best is None or _better(found, best)):
                best = found
        return best, wanted, nothing

    def _facts(
        self, state: Resolved, length: int, outcome: Outcome | None, around: Environment, recompute_us: float
    ) -> Environment:
        return {**around, **plan_facts(state, length, outcome, self.engine.prefill(state, length), recompute_us)}

    def _priced(self, facts: Environment) -> float:
        if self._price is None:
            parts = (facts["plan.recovery_us"], facts["plan.prefill_us"])
            return float("inf") if None in parts else float(parts[0]) + float(parts[1])  # type: ignore[arg-type]
        value = self._price(facts)
        return float("inf") if value is None else float(value)

    def _executes(self, facts: Environment) -> Execution:
        if not facts["plan.level"]:
            return "synchronous"
        ways: Iterator[Execution] = (rule.then for rule, holds in self._execution if holds(facts) is True)
        return next(ways, "synchronous")

    def _dispositions(self, state: Resolved, logical: int, plan: Candidate) -> dict[str, str]:
        judge, proposed = self.engine.judge, proposed_lengths(state)
        first = judge.outcome(state, judge.nothing(), logical or proposed[0]) if proposed else None
        return dispose(judge, state, first, plan.outcome)

    def _promised(self, facts: Environment) -> dict[str, int]:
        amounts = {name: demand(facts) for name, demand in self._demand.items()}
        return {name: max(0, amount) for name, amount in amounts.items() if amount is not None}

    @staticmethod
    def _not_now(decision: Decision, wanted: Candidate, nothing: Candidate, *, computes: bool) -> Decision:
        """Not even a plan without reuse is possible and admitted: its rules say whether waiting can help."""
        # What the request did not bring cannot be computed: then the plan that was wanted stands or falls.
        broken = nothing.broken if computes else wanted.broken if wanted is not nothing else ()
        waits = bool(broken) and all(rule.otherwise == "defer" for rule in broken)
        reasons = {reason.rule: reason for reason in (*_reasons(wanted), *_reasons(nothing))}
        return replace(
            decision,
            verdict="defer" if waits else "refuse",
            usable=0,
            plan=(),
            cost_us=0.0,
            total_us=0.0,
            admission=tuple(reasons.values()),
            flags=(),
        )


def _better(found: Candidate, other: Candidate) -> bool:
    """Cheaper; lengths fall, so at equal price the longer stands already, and only no reuse at all yields."""
    return found.price < other.price or (found.price == other.price and other.length == 0)


def _reasons(candidate: Candidate) -> tuple[Reason, ...]:
    return tuple(_reason(rule, candidate.facts) for rule in candidate.broken)


def _reason(rule: AdmissionRule, facts: Environment) -> Reason:
    conjunct, values = first_failing(rule.require, facts)
    return Reason(f"admission/{rule.id}", "admission", conjunct, values, rule.because, str(rule.where))


def _nothing_reused(decision: Decision) -> Verdict:
    return "recompute" if decision.logical else "miss"


def _read(node: Node) -> Read:
    return compile_python(node, trusted=True)


def _with_repairs(bound: BoundRulebook, repairs: frozenset[str] | None) -> BoundRulebook:
    """The same rules without the options whose repair the policy does not run; computing again always remains."""
    if repairs is None:
        return bound
    groups = tuple(
        replace(group, options=tuple(option for option in group.options if option.repair in repairs))
        for group in bound.groups
    )
    return replace(bound, groups=groups)
