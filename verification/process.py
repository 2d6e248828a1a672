"""A state of the recovery process as terms: counters and counts before, at a report, and after what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import Node
from hitproof.spec.process import ProcessStep, RecoveryProcess
from hitproof.verification.axioms.recovery import Measured, reported
from hitproof.verification.encode import encode, encode_number
from hitproof.verification.model import World
from hitproof.verification.z3_facts import Z3Fact

__all__ = ["ProcessModel"]


class ProcessModel:
    """One process; `beside` another one it reads the same counts and counters by its own steps.

    Args:
        bound: What the process stands in.
        process: Its counters and steps.
        beside: A model of a process with the same counters.
    """

    def __init__(self, bound: BoundRulebook, process: RecoveryProcess, beside: ProcessModel | None = None) -> None:
        self.process = process
        self.world: World = World(bound) if beside is None else beside.world
        self.ctx = self.world.ctx
        self.before, self.now, self.after = (Measured.fresh(self.ctx, f"{at}.") for at in ("before", "now", "after"))
        true = z3.BoolVal(True, ctx=self.ctx)
        self.counters = {one.id: Z3Fact(z3.Int(one.id, ctx=self.ctx), true) for one in process.counters}

    def state(self) -> list[Any]:
        """A state that can be: counters within their domains, those that repeat a count equal to it."""
        inside = [self.inside(one.id, self.counters[one.id].value) for one in self.process.counters]
        return [*inside, *self.repeats(self.counters, self.before), *self._domains()]

    def repeats(self, counters: Mapping[str, Z3Fact], counts: Measured) -> list[Any]:
        """Every counter that starts from a count is equal to it."""
        found = [(counters[one.id].value, one.measure) for one in self.process.counters if one.measure is not None]
        return [value == counts.fact(measure).value for value, measure in found]

    def inside(self, counter: str, value: Any) -> Any:
        """A counter's value is within its domain."""
        fact = next(one.fact for one in self.process.counters if one.id == counter)
        return z3.And(value >= int(fact.lo or 0), value <= int(fact.hi or 0))

    def budget(self) -> Any:
        """Some counter that no count of the engine gives is above its least value: going on can be paid for."""
        free = [one for one in self.process.counters if one.measure is None]
        above = [self.counters[one.id].value > int(one.fact.lo or 0) for one in free]
        return z3.Or([z3.BoolVal(False, ctx=self.ctx), *above])

    def guard(self, step: ProcessStep) -> Any:
        """Surely true, at the report."""
        if step.when is None:
            return z3.BoolVal(True, ctx=self.ctx)
        return encode(step.when, lambda path: self._name(path, self.now), ctx=self.ctx, enums=self.world.enums).T

    def taken(self, report: str, step: ProcessStep) -> list[Any]:
        """The step is the first of those that answer the report whose guard surely holds."""
        earlier = []
        for one in self.process.steps:
            if one is step:
                break
            earlier += [z3.Not(self.guard(one))] if report in one.on else []
        return [*self.state(), *reported(report, self.before, self.now), *earlier, self.guard(step)]

    def changed(self, step: ProcessStep) -> dict[str, Z3Fact]:
        """The counters after a step."""
        found = dict(self.counters)
        found.update({name: self.after.fact(name) for name in step.takes})
        found.update({name: self.number(node, self.after) for name, node in step.sets.items()})
        return found

    def number(self, node: Node, counts: Measured) -> Z3Fact:
        """An expression over the counters before and these counts."""
        names = lambda path: self._name(path, counts)  # noqa: E731 - a name for the argument
        return Z3Fact(*encode_number(node, names, ctx=self.ctx, enums=self.world.enums))

    def _name(self, path: str, counts: Measured) -> Z3Fact:
        scope, _, name = path.partition(".")
        if scope == "event":
            return counts.fact(name)
        return self.counters[path] if path in self.counters else self.world.shared(path)

    def _domains(self) -> list[Any]:
        counts = (self.before, self.now, self.after)
        return [*(bound for one in counts for bound in one.domain()), *self.world.domains()]
