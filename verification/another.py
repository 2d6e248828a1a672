"""Another counterexample: why a question has a model, so that the next one is asked for another reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.proof import Counterexample
from hitproof.verification.terms import implies, negated

__all__ = ["Cause", "cause_of", "distinct", "without"]


@dataclass(frozen=True)
class Cause:
    """Why an obligation failed.

    Args:
        label: The obligation.
        literals: Parts of its formula without logic inside, as text, with the truth that they have in the model. They
            are enough for the formula to hold.
    """

    label: str
    literals: frozenset[tuple[str, bool]]


def cause_of(label: str, formula: Any, model: Any) -> Cause:
    """The cause by which a formula holds in a model, with no literal that the solver sees to be idle."""
    ctx = formula.ctx
    atoms = {atom.sexpr(): atom for atom in _atoms(formula)}
    truths = {name: z3.is_true(model.eval(atom, model_completion=True)) for name, atom in atoms.items()}
    solver = z3.SimpleSolver(ctx=ctx)
    solver.set(random_seed=7, **{"core.minimize": True})
    marks = {name: z3.Bool(f"literal.{index}", ctx=ctx) for index, name in enumerate(atoms)}
    solver.add(negated(formula))
    solver.add(*(implies(marks[name], atom if truths[name] else negated(atom)) for name, atom in atoms.items()))
    if solver.check(*marks.values()) != z3.unsat:
        return Cause(label, frozenset(truths.items()))
    core = {mark.decl().name() for mark in solver.unsat_core()}
    return Cause(label, frozenset((name, truths[name]) for name, mark in marks.items() if mark.decl().name() in core))


def without(label: str, formula: Any, causes: Sequence[Cause]) -> Any:
    """The formula for another reason than these causes of the same obligation; literals are found by their text."""
    mine = [cause for cause in causes if cause.label == label]
    if not mine:
        return formula
    atoms = {atom.sexpr(): atom for atom in _atoms(formula)}
    # A cause that cannot be told anew leaves nothing to ask, rather than the same once more.
    others = [
        z3.Or(
            [negated(atoms[name]) if held else atoms[name] for name, held in sorted(cause.literals) if name in atoms]
            or [z3.BoolVal(False, ctx=formula.ctx)]
        )
        for cause in mine
    ]
    return z3.And([formula, *others])


def distinct(examples: Sequence[Counterexample]) -> list[Counterexample]:
    """Those that differ from the ones before in the rule, in what they say beside numbers, or in what holds."""
    found: dict[object, Counterexample] = {}
    for example in examples:
        truths = tuple((seen.rule, part.text, part.holds) for seen in example.seen for part in seen.conjuncts)
        found.setdefault((example.rule, re.sub(r"\d+", "#", example.sentence), truths), example)
    return list(found.values())


def _atoms(formula: Any) -> Iterator[Any]:
    """Boolean parts of a formula in which no other one is joined by logic, each once."""
    todo, known = [formula], set[int]()
    while todo:
        one = todo.pop()
        if one.get_id() in known or z3.is_true(one) or z3.is_false(one):
            continue
        known.add(one.get_id())
        parts = one.children() if z3.is_app(one) else []
        joins = z3.is_and(one) or z3.is_or(one) or z3.is_not(one) or z3.is_implies(one)
        if joins or (parts and all(map(z3.is_bool, parts))):
            todo += parts
        else:
            yield one
