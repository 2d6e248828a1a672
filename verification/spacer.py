"""An invariant found by Spacer in a process of its own, put back as a formula for the plain solver to check.

Spacer is asked where the template does not carry and no short story breaks a goal. It has been seen to answer wrongly and
to crash (Z3Prover/z3#7554, Z3Prover/z3#10123), so nothing rests on its word: what it finds is a candidate, and every
step is then asked anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.condition import reads
from hitproof.verification.holder import Move, Program, State
from hitproof.verification.terms import all_of, implies

__all__ = ["Candidate", "search"]

MAX_EFFORT = 400_000_000
"""Bound on the solver's own count of steps: the same on every machine."""

MAX_SECONDS = 120
"""A backstop behind the bound on effort."""


@dataclass(frozen=True)
class Candidate:
    """A formula over what Spacer was told of a state.

    Args:
        body: The formula over its variables.
        variables: Its variables, in the order of `values`.
    """

    search: _Search
    body: Any

    def holds(self, state: State) -> Any:
        """The formula for a state."""
        pairs = list(zip(self.search.variables, self.search.values(state), strict=True))
        return z3.substitute(self.body, *pairs)


def search(
    program: Program, before: State, moves: Sequence[Move], starts: Sequence[Any], goal: Any, domains: Sequence[Any]
) -> Candidate | None:
    """Ask Spacer for what holds in every state that can be reached; None where it does not answer.

    Args:
        program: The lease.
        before: Any state.
        moves: All that may happen in it.
        starts: What holds of `before` where it is a state at the beginning.
        goal: What must hold of it.
        domains: What is always true of it.
    """
    problem = _Search(program, moves)
    text = problem.text(before, moves, starts, goal, domains)
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, str(MAX_EFFORT), str(MAX_SECONDS * 1000)],
            input=text,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS * 2,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return problem.candidate(child.stdout) if child.returncode == 0 else None


class _Search:
    """The state that Spacer sees: the holder, and those facts that guards can tell apart without arithmetic."""

    def __init__(self, program: Program, moves: Sequence[Move]) -> None:
        self.program, self.model = program, program.model
        facts = self.model.group.facts
        read = {path for move in moves if move.step for path in _reads(move)}
        self.facts = [name for name, fact in facts.items() if fact.type.kind in ("enum", "bool") and name in read]
        self.variables = [
            z3.Const(f"v{index}", term.sort()) for index, term in enumerate(self.values(self._any()))
        ]

    def _any(self) -> State:
        from hitproof.verification.holder import Holder

        return State(self.model.own, Holder.fresh(self.model, "any."))

    def values(self, state: State) -> list[Any]:
        """The terms of a state in the order of the variables."""
        holder, facts, enums = state.holder, state.facts, self.model.world.enums
        epoch, pins = facts("epoch").value, facts("pins").value
        forms = self.model.group.facts["form"].type
        found = [holder.at == count for count in range(self.program.over)]
        found += [holder.checked, holder.confirmed, holder.reading, holder.misled, holder.robbed, holder.diverted]
        found += [holder.intact, epoch == holder.epoch, epoch >= holder.epoch, pins >= 1, pins >= 2]
        found += [self.program.same_mapping(state)]
        found += [holder.form == enums.member(forms, member) for member in forms.members]
        for name in self.facts:
            fact, kind = facts(name), self.model.group.facts[name].type
            if kind.kind == "enum":
                found += [fact.value == enums.member(kind, member) for member in kind.members]
            else:
                found.append(fact.value)
            found.append(fact.known)
        return found

    def _numbers(self, state: State) -> set[int]:
        """Numbers that a lease deals in."""
        holder = state.holder
        own = [state.facts(name).value for name in ("epoch", "pins", "mapped_generation")]
        other = z3.Int("other.mapping", ctx=self.model.world.ctx)
        return {term.get_id() for term in (*own, holder.at, holder.epoch, holder.mapping, other)}

    def text(
        self, before: State, moves: Sequence[Move], starts: Sequence[Any], goal: Any, domains: Sequence[Any]
    ) -> str:
        """The problem as Horn clauses: beginning, every step, and the goal."""
        ctx, true, false = self.model.world.ctx, self.model.true, self.model.false
        holds = z3.Function("Inv", *[term.sort() for term in self.variables], z3.BoolSort(ctx))
        here = holds(*self.values(before))
        clauses = [implies(all_of([*starts, *domains], true), here)]
        for move in moves:
            step = [here, move.guard, *domains]
            clauses.append(implies(all_of(step, true), holds(*self.values(move.post))))
        clauses.append(implies(all_of([here, *domains, z3.Not(goal)], true), false))
        solver = z3.Solver(ctx=ctx)
        plain = _Plain(ctx, self._numbers(before))
        for clause in map(plain, clauses):
            free = _constants(clause)
            solver.add(z3.ForAll(free, clause) if free else clause)
        return f"(set-logic HORN)\n{solver.sexpr()}"

    def candidate(self, answer: str) -> Candidate | None:
        """What the child process answered, as a formula."""
        word, _, body = answer.partition("\n")
        if word != "sat":
            return None
        ctx = self.model.world.ctx
        names = {str(term): term for term in self.variables}
        sorts: dict[str, Any] = {}
        for term in self.variables:
            sort = term.sort()
            if isinstance(sort, z3.DatatypeSortRef):
                sorts[sort.name()] = sort
                names |= {sort.constructor(i).name(): sort.constructor(i)() for i in range(sort.num_constructors())}
        try:
            parsed = z3.parse_smt2_string(f"(assert {body})", sorts=sorts, decls=names, ctx=ctx)
        except z3.Z3Exception:
            return None
        return Candidate(self, all_of(list(parsed), self.model.true))


class _Plain:
    """Formulas in which every comparison of data is a free choice; lease, forms and counters stay."""

    def __init__(self, ctx: z3.Context, kept: set[int]) -> None:
        self.ctx, self.kept = ctx, kept
        self.done: dict[int, tuple[Any, Any]] = {}

    def __call__(self, term: Any) -> Any:
        if term.get_id() not in self.done:
            self.done[term.get_id()] = self._of(term), term
        return self.done[term.get_id()][0]

    def _of(self, term: Any) -> Any:
        if not z3.is_bool(term) or term.num_args() == 0:
            return term
        kind = term.decl().kind()
        logical = kind in (z3.Z3_OP_AND, z3.Z3_OP_OR, z3.Z3_OP_NOT, z3.Z3_OP_IMPLIES, z3.Z3_OP_ITE, z3.Z3_OP_UNINTERPRETED)
        if logical or all(z3.is_bool(part) for part in term.children()):
            return term.decl()(*[self(part) for part in term.children()])
        data = [one for one in _constants(term) if one.sort().kind() not in (z3.Z3_BOOL_SORT, z3.Z3_DATATYPE_SORT)]
        if all(one.get_id() in self.kept for one in data):
            return term
        return z3.FreshBool("choice", ctx=self.ctx) if False else z3.Bool(f"choice.{len(self.done)}.{term.get_id()}", ctx=self.ctx)


def _reads(move: Move) -> set[str]:
    """Facts of the segment that an event's guard reads."""
    transition = None if move.step is None else move.step.transition
    if transition is None or transition.when is None:
        return {"form"}
    return {"form", *(path.removeprefix("self.") for path in reads(transition.when) if path.startswith("self."))}


def _constants(term: Any) -> list[Any]:
    """The free constants of a term."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [term]
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

effort, milliseconds = int(sys.argv[1]), int(sys.argv[2])
solver = z3.SolverFor("HORN")
solver.set("rlimit", effort)
solver.set("timeout", milliseconds)
solver.from_string(sys.stdin.read())
answer = solver.check()
print(answer)
if answer == z3.sat:
    model = solver.model()
    inv = next(one for one in model.decls() if one.name() == "Inv")
    terms = [z3.Const(f"v{i}", inv.domain(i)) for i in range(inv.arity())]
    print(model.eval(inv(*terms), model_completion=True).sexpr())
"""
