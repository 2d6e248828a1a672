"""The plain meaning of conditions: a tree walk with strong Kleene logic, written to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitproof.spec.condition.nodes import (
    And,
    Arith,
    Compare,
    Extreme,
    Known,
    Literal,
    Member,
    Negate,
    Node,
    Not,
    Or,
    Ref,
)
from hitproof.spec.condition.operators import ARITHMETIC, COMPARISON, EXTREME
from hitproof.spec.facts import Value, admit

__all__ = ["UNKNOWN", "interpret"]

UNKNOWN = None
"""The Python value of whatever is not known."""


def interpret(node: Node, env: Mapping[str, object]) -> Any:
    """Evaluate an expression.

    Args:
        node: A typed tree; divisors must be positive, as binding guarantees.
        env: Values by path. A missing path, None, a value outside its fact's domain or type is unknown.

    Returns:
        True, False, a number, an enum member, an identity or a set; UNKNOWN where it is not known.
    """
    match node:
        case Literal(value=value):
            return value
        case Ref(path=path, fact=fact):
            return admit(fact, env.get(path))
        case Known(ref=ref):
            return interpret(ref, env) is not UNKNOWN
        case Not(x=x):
            truth = interpret(x, env)
            return UNKNOWN if truth is UNKNOWN else not truth
        case And(terms=terms):
            return _all([interpret(term, env) for term in terms])
        case Or(terms=terms):
            return _any([interpret(term, env) for term in terms])
        case Negate(x=x):
            value = interpret(x, env)
            return UNKNOWN if value is UNKNOWN else -value
        case Arith(op=op, left=left, right=right):
            return _known_only(ARITHMETIC[op], interpret(left, env), interpret(right, env))
        case Compare(op=op, left=left, right=right):
            return _known_only(COMPARISON[op], interpret(left, env), interpret(right, env))
        case Extreme(op=op, args=args):
            return _known_only(EXTREME[op], *(interpret(arg, env) for arg in args))
        case Member(item=item, container=Ref() as container):
            return _known_only(lambda value, group: value in group, interpret(item, env), interpret(container, env))
        case Member(item=item, container=tuple() as literals):
            return _known_only(lambda value: any(value == one.value for one in literals), interpret(item, env))


def _known_only(function: Any, *values: Value) -> Any:
    return UNKNOWN if any(value is UNKNOWN for value in values) else function(*values)


def _all(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return UNKNOWN if UNKNOWN in truths else True


def _any(truths: list[bool | None]) -> bool | None:
    if True in truths:
        return True
    return UNKNOWN if UNKNOWN in truths else False
