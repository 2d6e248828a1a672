"""Whether an event that happened to a segment, or was refused, is what the proof's transitions say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.facts import Fact, admit
from hitproof.spec.steplog import EventTaken
from hitproof.verification.concrete import Formula, Reader, Scopes
from hitproof.verification.model import World
from hitproof.verification.steps import Step, make_step
from hitproof.verification.z3_facts import Z3Facts

__all__ = ["Events"]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A transition from one form: when it may happen, and what it makes of each fact that it names."""

    step: Step
    guard: Formula
    kept: tuple[str, ...]
    made: Mapping[str, Formula]


class Events:
    """The events of one group.

    Args:
        bound: The rulebook.
        group: The group.
    """

    def __init__(self, bound: BoundRulebook, group: BoundGroup) -> None:
        self._bound, self._group = bound, group
        self._world = World(bound)
        self._model = self._world.group(group.id)
        self._after = Z3Facts(self._world.enums, dict(group.facts), "after.", bound.rulebook.engine_owned)
        runtime = {f"runtime.{name}": fact for name, fact in bound.rulebook.runtime.items()}
        self._reader = Reader(self._world.enums)
        self._reader.facts("self", self._model.own, group.facts)
        self._reader.facts("after", self._after, group.facts)
        self._reader.facts("kernel", self._model.kernel, bound.rulebook.kernel)
        self._reader.facts("runtime", self._world.shared, runtime)
        self._rules: dict[tuple[str, str], tuple[_Rule, ...]] = {}

    def refusal(self, taken: EventTaken) -> str:
        """Why it is not what the rules say; empty where it is."""
        before, after = taken.segment.before, taken.segment.after
        rules = self._of(taken.event, str(before["form"]))
        if not rules:
            return f"'{taken.event}' is no event of '{self._group.object}' in the form {before['form']}"
        allowed = next((rule for rule in rules if self._allows(rule, taken)), None)
        if not taken.happened:
            if allowed is not None:
                return f"'{taken.event}' was refused, and the rules allow it"
            return "" if before == after else f"'{taken.event}' was refused, and the segment has changed"
        if allowed is None:
            return f"'{taken.event}' has happened to a segment with {before['pins']} pins, and the rules forbid it"
        scopes = self._scopes(allowed, taken)
        wrong = [name for name in allowed.kept if before[name] != after[name]]
        wrong += [name for name, formula in allowed.made.items() if not formula.holds(scopes)]
        return f"after '{taken.event}' these are not as the rules say: {', '.join(sorted(wrong))}" if wrong else ""

    def _of(self, event: str, source: str) -> tuple[_Rule, ...]:
        key = (event, source)
        if key not in self._rules:
            self._rules[key] = tuple(
                self._rule(make_step(self._model, rule, source))
                for rule in self._group.transitions
                if rule.id == event and source in rule.sources
            )
        return self._rules[key]

    def _rule(self, step: Step) -> _Rule:
        kept, made = [], {}
        self._reader.facts(f"event {step.transition.id}", step.event, self._group.facts)
        if step.donor is not None:
            self._reader.facts(f"donor {step.transition.id}", step.donor, self._group.facts)
        for name in self._group.facts:
            post, now = step.post(name), self._after(name)
            if post is self._model.own(name):
                kept.append(name)
            else:
                same = z3.And(post.known == now.known, z3.Implies(post.known, post.value == now.value))
                made[name] = self._reader.formula(same)
        return _Rule(step, self._reader.formula(step.guard), tuple(kept), made)

    def _allows(self, rule: _Rule, taken: EventTaken) -> bool:
        sole = rule.step.transition.owner != "sole" or taken.sole
        donor = rule.step.donor is None or taken.donor is not None
        return sole and donor and rule.guard.holds(self._scopes(rule, taken))

    def _scopes(self, rule: _Rule, taken: EventTaken) -> Scopes:
        facts, event = self._group.facts, rule.step.transition.id
        given = {
            name: admit(facts[name], _listed(facts[name], value))
            for name, value in taken.arguments.items()
            if name in facts
        }
        return {
            "self": taken.segment.before,
            "after": taken.segment.after,
            "kernel": taken.kernel,
            "runtime": {f"runtime.{name}": value for name, value in taken.runtime.items()},
            f"event {event}": given,
            f"donor {event}": taken.donor or {},
        }


def _listed(fact: Fact, value: object) -> object:
    """An argument as the event takes it: a list of tokens counts as a set."""
    if fact.type.kind == "set" and isinstance(value, list | tuple | set):
        return frozenset(value)
    return value
