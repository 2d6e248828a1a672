"""Interval analysis: no part of a bound expression may leave the range that every target computes exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from hitproof.spec.condition.nodes import Arith, Extreme, Literal, Negate, Node, Ref, type_of
from hitproof.spec.condition.traverse import children
from hitproof.spec.errors import BindError, Position

__all__ = ["Interval", "check_bounds", "interval"]

Interval = tuple[int | float, int | float]

_LARGEST = 2**62
_LARGEST_REAL = 1e60


def check_bounds(node: Node, *, where: Position | None = None, rule: str | None = None) -> None:
    """Require positive literal divisors, a fixed factor in products, and all integers within 2**62.

    Raises:
        BindError: One of these does not hold.
    """

    def fail(message: str, got: object, expected: object, hint: str | None = None) -> NoReturn:
        raise BindError(message, where=where, rule=rule, got=got, expected=expected, hint=hint)

    if type_of(node).is_number:
        _interval(node, fail)
    else:
        for child in children(node):
            check_bounds(child, where=where, rule=rule)


def interval(node: Node) -> Interval:
    """The closed range of a number over the domains of its facts.

    Raises:
        BindError: As in `check_bounds`.
    """

    def fail(message: str, got: object, expected: object, hint: str | None = None) -> NoReturn:
        raise BindError(message, got=got, expected=expected, hint=hint)

    return _interval(node, fail)


def _interval(node: Node, fail: Callable[..., NoReturn]) -> Interval:
    found = _range(node, fail)
    largest = _LARGEST_REAL if type_of(node).kind == "real" else _LARGEST
    if max(abs(found[0]), abs(found[1])) > largest:
        fail(
            "a number may grow too large",
            f"{found[0]} to {found[1]}",
            "within 2**62",
            "narrow the domain of a fact that it reads",
        )
    return found


def _range(node: Node, fail: Callable[..., NoReturn]) -> Interval:
    match node:
        case Literal(value=bool() | int() | float() as value):
            return value, value
        case Ref(fact=fact) if fact.lo is not None and fact.hi is not None:
            return fact.lo, fact.hi
        case Negate(x=x):
            lo, hi = _interval(x, fail)
            return -hi, -lo
        case Extreme(op="abs", args=(x,)):
            lo, hi = _interval(x, fail)
            return (0 if lo <= 0 <= hi else min(abs(lo), abs(hi))), max(abs(lo), abs(hi))
        case Extreme(op=op, args=args):
            ranges = [_interval(arg, fail) for arg in args]
            pick = min if op == "min" else max
            return pick(lo for lo, _ in ranges), pick(hi for _, hi in ranges)
        case Arith(op=op, left=left, right=right):
            if op in ("//", "%") and not (isinstance(right, Literal) and type(right.value) is int and right.value > 0):
                got = right.value if isinstance(right, Literal) else "an expression that is not constant"
                fail("a divisor must be a positive constant", got, "1 or more")
            fixed = isinstance(left, Literal) or isinstance(right, Literal)
            if op == "*" and not fixed and [type_of(left).kind, type_of(right).kind].count("real") != 1:
                fail(
                    "a product needs a constant factor",
                    f"{type_of(left)} * {type_of(right)}",
                    "a constant on one side",
                )
            return _arith(op, _interval(left, fail), _interval(right, fail))
        case _:
            fail("this is not a number", type_of(node), "a number")


def _arith(op: str, left: Interval, right: Interval) -> Interval:
    match op:
        case "+":
            return left[0] + right[0], left[1] + right[1]
        case "-":
            return left[0] - right[1], left[1] - right[0]
        case "*":
            corners = [a * b for a in left for b in right]
            return min(corners), max(corners)
        case "//":
            return left[0] // right[0], left[1] // right[0]
        case _:
            inside = 0 <= left[0] and left[1] < right[0]
            return left if inside else (0, right[0] - 1)
