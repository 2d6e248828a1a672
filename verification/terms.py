"""Terms of the solver made straight through its C interface, which checks sorts too, at a tenth of the price.

Most of the verifier's time goes into making terms, not into solving. What is made once or twice may as well use `z3`
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3
from z3 import z3core

__all__ = ["COMPARISONS", "all_of", "any_of", "choice", "equal", "implies", "negated"]


def all_of(parts: Sequence[Any], true: Any) -> Any:
    """The conjunction.

    Args:
        parts: Boolean terms.
        true: The term that is always true in their context; it is left out.
    """
    kept = [part for part in parts if part.ast.value != true.ast.value]
    if len(kept) < 2:
        return kept[0] if kept else true
    return _joined(z3core.Z3_mk_and, kept, true.ctx)


def any_of(parts: Sequence[Any], false: Any) -> Any:
    """The disjunction; `false` is the term that is never true, and is left out."""
    kept = [part for part in parts if part.ast.value != false.ast.value]
    if len(kept) < 2:
        return kept[0] if kept else false
    return _joined(z3core.Z3_mk_or, kept, false.ctx)


def negated(part: Any) -> Any:
    """The negation."""
    ctx = part.ctx
    return z3.BoolRef(z3core.Z3_mk_not(ctx.ref(), part.ast), ctx)


def implies(premise: Any, conclusion: Any) -> Any:
    """If the premise holds, so does the conclusion."""
    return _pair(z3core.Z3_mk_implies, premise, conclusion)


def equal(left: Any, right: Any) -> Any:
    """Two terms of one sort are equal."""
    return _pair(z3core.Z3_mk_eq, left, right)


def choice(condition: Any, yes: Any, no: Any) -> Any:
    """One of two terms of one sort."""
    ctx = condition.ctx
    kind = next(kind for kind in (z3.BoolRef, z3.ArithRef, z3.DatatypeRef, z3.ArrayRef) if isinstance(yes, kind))
    return kind(z3core.Z3_mk_ite(ctx.ref(), condition.ast, yes.ast, no.ast), ctx)


def _joined(make: Callable[..., Any], parts: Sequence[Any], ctx: z3.Context) -> Any:
    array = (z3.Ast * len(parts))(*(part.ast for part in parts))
    return z3.BoolRef(make(ctx.ref(), len(parts), array), ctx)


def _pair(make: Callable[..., Any], left: Any, right: Any) -> Any:
    ctx = left.ctx
    return z3.BoolRef(make(ctx.ref(), left.ast, right.ast), ctx)


def _unequal(left: Any, right: Any) -> Any:
    return negated(equal(left, right))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal,
    "!=": _unequal,
    "<": lambda left, right: _pair(z3core.Z3_mk_lt, left, right),
    "<=": lambda left, right: _pair(z3core.Z3_mk_le, left, right),
    ">": lambda left, right: _pair(z3core.Z3_mk_gt, left, right),
    ">=": lambda left, right: _pair(z3core.Z3_mk_ge, left, right),
}
"""The comparison that an operator stands for, of two numbers, whole or real; the first two of any one sort."""
