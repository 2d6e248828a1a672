"""Terms made straight through the solver's C interface mean what the library's own terms mean."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from hitproof.verification.terms import COMPARISONS, all_of, any_of, choice, equal, implies, negated

CTX = z3.Context()
TRUE, FALSE = z3.BoolVal(True, ctx=CTX), z3.BoolVal(False, ctx=CTX)
BOOLS = [TRUE, FALSE, *z3.Bools("a b c", ctx=CTX)]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def same(one: Any, other: Any) -> bool:
    """The two are equal in every state."""
    solver = z3.Solver(ctx=CTX)
    solver.add(one != other)
    return bool(solver.check() == z3.unsat)


@given(st.lists(st.sampled_from(BOOLS), max_size=5), st.sampled_from(BOOLS), st.sampled_from(BOOLS))
def test_logic_is_that_of_the_library(parts: list[Any], premise: Any, conclusion: Any) -> None:
    """Whatever is left out because it is always or never true; nothing at all is true of all and false of any."""
    assert same(all_of(parts, TRUE), z3.And(TRUE, *parts))
    assert same(any_of(parts, FALSE), z3.Or(FALSE, *parts))
    assert same(negated(premise), z3.Not(premise))
    assert same(implies(premise, conclusion), z3.Implies(premise, conclusion))
    assert same(equal(premise, conclusion), premise == conclusion)
    x, y = z3.Ints("x y", ctx=CTX)
    assert same(choice(premise, x, y), z3.If(premise, x, y))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("sort", [z3.Int, z3.Real])
def test_comparisons_are_those_of_the_library(name: str, sort: Callable[..., Any]) -> None:
    """For both kinds of numbers."""
    x, y = sort("x", ctx=CTX), sort("y", ctx=CTX)
    assert same(COMPARISONS[name](x, y), OPERATORS[name](x, y))


def test_sorts_are_still_checked() -> None:
    """The C interface refuses what the library would have refused."""
    form, _ = z3.EnumSort("form", ["full", "moving"], ctx=CTX)
    some, number = z3.Const("some", form), z3.Int("x", ctx=CTX)
    wrong: list[Callable[[], Any]] = [
        lambda: COMPARISONS["<="](some, number),
        lambda: equal(some, number),
        lambda: all_of([BOOLS[2], number], TRUE),
        lambda: negated(number),
        lambda: choice(number, number, number),
    ]
    for make in wrong:
        with pytest.raises(z3.Z3Exception, match="Sort"):
            make()


def test_whole_and_real_numbers_are_compared_as_reals() -> None:
    """As the library does it."""
    x, y = z3.Int("x", ctx=CTX), z3.Real("y", ctx=CTX)
    assert same(COMPARISONS["<="](x, y), z3.ToReal(x) <= y)
