"""What holds of segments whoever holds them, found by Spacer in a process of its own, and put back to be checked.

Spacer is asked where the template does not carry and no short story breaks a goal: it searches an invariant of the form
machine under which every step keeps the template. It has been seen to answer wrongly and to crash (Z3Prover/z3#7554 and
#10123), so nothing rests on its word: what it finds is a candidate, and every step is then asked anew of the plain
solver.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.condition import reads
from hitproof.verification.holder import Facts, Move, Program
from hitproof.verification.terms import all_of, implies

__all__ = ["Candidate", "search"]

MAX_EFFORT = 100_000_000
"""Bound on the solver's own count of steps: the same on every machine."""

MAX_SECONDS = 60
"""A backstop behind the bound on effort."""

Candidate = Callable[[Facts], Any]
"""The formula that was found, for any state of a segment's facts."""


def search(
    program: Program, events: Sequence[Move], starts: Sequence[Any], breaks: Any, domains: Sequence[Any]
) -> Candidate | None:
    """Ask Spacer for what holds of a segment's facts in every state that its events lead to.

    Args:
        program: The lease, on the segment as it is before the events.
        events: Everything that may change the segment's facts.
        starts: What holds of a segment at the beginning.
        breaks: What must be impossible where the searched invariant holds: a step that breaks the template.
        domains: What is always true.

    Returns:
        None where Spacer finds nothing.
    """
    problem = _Problem(program, events)
    return problem.candidate(_asked(problem.text(events, starts, breaks, domains)))


def _asked(text: str) -> str:
    """The child's answer: a word, and the formula behind a `sat`; nothing where it died or took too long."""
    child = [sys.executable, "-c", _CHILD, str(MAX_EFFORT), str(MAX_SECONDS * 1000)]
    try:
        done = subprocess.run(child, input=text, capture_output=True, text=True, timeout=2 * MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout if done.returncode == 0 else ""


@dataclass(frozen=True)
class _Found:
    """A formula over variables that stand for facts."""

    problem: _Problem
    body: Any

    def __call__(self, facts: Facts) -> Any:
        pairs = list(zip(self.problem.variables, self.problem.values(facts), strict=True))
        return z3.substitute(self.body, *pairs)


class _Problem:
    """The form machine as Horn clauses over the form, the pins and those facts that guards compare by name."""

    def __init__(self, program: Program, events: Sequence[Move]) -> None:
        self.model = program.model
        read = {path for move in events for path in _read(move)}
        facts = self.model.group.facts
        self.names = ["form", "pins", *(n for n in facts if n in read - {"form"} and facts[n].type.kind in _BY_NAME)]
        self.variables = [z3.Const(f"v{i}", term.sort()) for i, term in enumerate(self.values(self.model.own))]

    def values(self, facts: Facts) -> list[Any]:
        """The terms of a state in the order of the variables."""
        owned = self.model.world.bound.rulebook.engine_owned
        found = [facts(name) for name in self.names]
        known = [fact.known for name, fact in zip(self.names, found, strict=True) if name not in owned]
        return [*(fact.value for fact in found), *known]

    def text(self, events: Sequence[Move], starts: Sequence[Any], breaks: Any, domains: Sequence[Any]) -> str:
        """The beginning, every event, and what must be impossible."""
        ctx, true, false = self.model.world.ctx, self.model.true, self.model.false
        holds = z3.Function("Inv", *[term.sort() for term in self.variables], z3.BoolSort(ctx))
        here = holds(*self.values(self.model.own))
        clauses = [implies(all_of([*starts, *domains], true), here)]
        clauses += [
            implies(all_of([here, move.guard, *domains], true), holds(*self.values(move.post.facts))) for move in events
        ]
        clauses.append(implies(all_of([here, *domains, breaks], true), false))
        solver = z3.Solver(ctx=ctx)
        for clause in clauses:
            free = _constants(clause)
            solver.add(z3.ForAll(free, clause) if free else clause)
        return f"(set-logic HORN)\n{solver.sexpr()}"

    def candidate(self, answer: str) -> Candidate | None:
        """What the child process answered, as a formula."""
        word, _, body = answer.partition("\n")
        if word != "sat":
            return None
        names = {str(term): term for term in self.variables}
        kinds = (term.sort() for term in self.variables)
        sorts = {sort.name(): sort for sort in kinds if sort.kind() == z3.Z3_DATATYPE_SORT}
        try:
            parsed = z3.parse_smt2_string(f"(assert {body})", sorts=sorts, decls=names, ctx=self.model.world.ctx)
        except z3.Z3Exception:
            return None
        return _Found(self, all_of(list(parsed), self.model.true))


_BY_NAME = ("bool", "enum")


def _read(move: Move) -> set[str]:
    """Facts of the segment that an event's condition reads."""
    when = None if move.step is None else move.step.transition.when
    paths = () if when is None else reads(when)
    return {path.removeprefix("self.") for path in paths if path.startswith("self.")}


def _constants(term: Any) -> list[Any]:
    """The free constants of a term."""
    found: dict[int, Any] = {}
    waiting = [term]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one.get_id() in seen:
            continue
        seen.add(one.get_id())
        if z3.is_const(one) and one.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[one.get_id()] = one
        waiting += one.children()
    return list(found.values())


_CHILD = """
import sys
import z3


def named(term):
    # The reader of formulas knows no recognisers of constructors.
    parts = [named(part) for part in term.children()]
    if term.decl().kind() == z3.Z3_OP_DT_IS:
        sort = parts[0].sort()
        return parts[0] == next(
            sort.constructor(i)() for i in range(sort.num_constructors()) if sort.recognizer(i) == term.decl()
        )
    return term.decl()(*parts) if parts else term


solver = z3.SolverFor("HORN")
solver.set("rlimit", int(sys.argv[1]))
solver.set("timeout", int(sys.argv[2]))
solver.from_string(sys.stdin.read())
answer = solver.check()
print(answer)
if answer == z3.sat:
    model = solver.model()
    inv = next(one for one in model.decls() if one.name() == "Inv")
    terms = [z3.Const(f"v{i}", inv.domain(i)) for i in range(inv.arity())]
    print(named(z3.substitute_vars(model[inv].else_value(), *terms)).sexpr())
"""
