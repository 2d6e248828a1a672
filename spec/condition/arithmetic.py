"""Typing of numbers: units, numerals that take their neighbour's unit, and which products are allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from hitproof.spec.condition.nodes import Arith, Extreme, Literal, Negate, Node, type_of
from hitproof.spec.condition.operators import ARITHMETIC, EXTREME
from hitproof.spec.errors import ConditionError, UnitError
from hitproof.spec.facts import COUNT, FactType

__all__ = [
    "BareName",
    "Numeral",
    "Part",
    "Rules",
    "adopt",
    "combine",
    "common_type",
    "extreme",
    "negate",
    "typed",
]

LARGEST = 2**62
LARGEST_REAL = 1e15


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number written in the text that has not met the neighbour whose unit it takes."""

    value: int | float


@dataclass(frozen=True, slots=True)
class BareName:
    """A single word that is no fact: an enum member, if its neighbour is an enum."""

    name: str


Part = Node | Numeral | BareName


class Fail(Protocol):
    """Raises an error at the place of the expression in hand."""

    def __call__(
        self,
        message: str,
        *,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
        kind: type[ConditionError] = ConditionError,
    ) -> NoReturn:
        """Raise `kind` with these fields."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides whether a product or quotient is allowed."""

    constant: Callable[[Node], bool]
    cost: bool


def typed(part: Node | Numeral) -> Node:
    """The part as a node; a lonely numeral is a dimensionless number."""
    if isinstance(part, Numeral):
        return Literal(part.value, COUNT if isinstance(part.value, int) else FactType("real"))
    return part


def adopt(part: Node | Numeral, kind: FactType, fail: Fail) -> Node:
    """The part as a node of this type: a numeral takes it, anything else must have it."""
    if isinstance(part, Numeral):
        if not kind.is_number:
            fail("a number cannot stand here", got=part.value, expected=kind)
        if kind.kind == "real":
            return Literal(float(part.value), kind)
        if not isinstance(part.value, int):
            fail(
                "only quantities with microseconds in their unit are fractions",
                got=part.value,
                expected="an integer",
            )
        return Literal(part.value, kind)
    got = type_of(part)
    if got != kind:
        error = UnitError if got.is_number and kind.is_number else ConditionError
        fail(
            "two units meet that differ" if error is UnitError else "the type does not fit here",
            got=got,
            expected=kind,
            kind=error,
        )
    return part


def common_type(parts: Sequence[Node | Numeral], fail: Fail) -> FactType | None:
    """The type that all parts share, None where all are numerals."""
    kinds = [type_of(part) for part in parts if not isinstance(part, Numeral)]
    for kind in kinds[1:]:
        if kind != kinds[0]:
            error = UnitError if kind.is_number and kinds[0].is_number else ConditionError
            fail(
                "two quantities of different units meet" if error is UnitError else "two different types meet",
                got=f"{kinds[0]} and {kind}",
                expected="the same on both sides",
                kind=error,
            )
    return kinds[0] if kinds else None


def combine(op: str, left: Node | Numeral, right: Node | Numeral, rules: Rules, fail: Fail) -> Node | Numeral:
    """`left op right` for + - * // %."""
    if isinstance(left, Numeral) and isinstance(right, Numeral):
        return _fold(op, left.value, right.value, fail)
    _refuse_counters(op, left, right, fail)
    if op in "+-":
        kind = common_type((left, right), fail)
        return Arith(op, _adopt(left, kind, fail), _adopt(right, kind, fail))
    if op == "*":
        factors = _scale(left, right, fail), _scale(right, left, fail)
        _check_product(*factors, rules, fail)
        return Arith(op, *factors)
    return _divide(op, left, right, rules, fail)


def negate(part: Node | Numeral, fail: Fail) -> Node | Numeral:
    """Minus a number."""
    if isinstance(part, Numeral):
        return Numeral(-part.value)
    if type_of(part).kind == "counter":
        fail("a counter cannot be negated", got="counter", expected="a number")
    return Negate(part)


def extreme(op: str, parts: Sequence[Node | Numeral], fail: Fail) -> Node | Numeral:
    """`min`, `max` or `abs`."""
    if op == "abs" and len(parts) != 1:
        fail("abs takes one number", got=f"{len(parts)} arguments", expected=1)
    if op != "abs" and len(parts) < 2:
        fail(f"{op} takes two or more numbers", got=f"{len(parts)} arguments")
    kind = common_type(parts, fail)
    if kind is None:
        return Numeral(EXTREME[op](*(part.value for part in parts if isinstance(part, Numeral))))
    if kind.kind == "counter":
        fail("a counter can only be compared", got=op, expected="== != < <= > >= or + a literal")
    return Extreme(op, tuple(adopt(part, kind, fail) for part in parts))


def _adopt(part: Node | Numeral, kind: FactType | None, fail: Fail) -> Node:
    return adopt(part, kind, fail) if kind else typed(part)


def _fold(op: str, left: int | float, right: int | float, fail: Fail) -> Numeral:
    if op in ("//", "%") and (not isinstance(left, int) or not isinstance(right, int) or right <= 0):
        fail("the divisor must be a positive integer", got=right, expected="1 or more")
    value = ARITHMETIC[op](left, right)
    if abs(value) > (LARGEST if isinstance(value, int) else LARGEST_REAL):
        fail("the number is too large", got=value, expected="at most 2**62")
    return Numeral(value)


def _refuse_counters(op: str, left: Node | Numeral, right: Node | Numeral, fail: Fail) -> None:
    counters = [part for part in (left, right) if not isinstance(part, Numeral) and type_of(part).kind == "counter"]
    if counters and not (op == "+" and (isinstance(left, Numeral) or isinstance(right, Numeral))):
        fail("a counter takes no part in arithmetic", got=op, expected="== != < <= > >= or + a literal")


def _scale(part: Node | Numeral, other: Node | Numeral, fail: Fail) -> Node:
    if not isinstance(part, Numeral):
        return part
    real = not isinstance(other, Numeral) and type_of(other).kind == "real"
    return adopt(part, FactType("real") if real else COUNT, fail)


def _check_product(left: Node, right: Node, rules: Rules, fail: Fail) -> None:
    if rules.constant(left) or rules.constant(right):
        return
    reals = [type_of(side).kind for side in (left, right)].count("real")
    if not (rules.cost and reals == 1):
        fail(
            "a product needs a factor that is constant once the profile is bound",
            got=f"{type_of(left)} * {type_of(right)}",
            expected="a literal or a group constant on one side",
            hint="only a cost may multiply one quantity by one runtime rate",
        )


def _divide(op: str, left: Node | Numeral, right: Node | Numeral, rules: Rules, fail: Fail) -> Node:
    if isinstance(right, Numeral) and right.value <= 0:
        fail("the divisor must be positive", got=right.value, expected="1 or more")
    if op == "%":
        kind = common_type((left, right), fail)
        sides = _adopt(left, kind, fail), _adopt(right, kind, fail)
    else:
        # `4096 // group.ratio` counts ratios: a dividend takes the unit, while a divisor only scales.
        divisor = _scale(right, left, fail)
        sides = (adopt(left, type_of(divisor), fail) if isinstance(left, Numeral) else left), divisor
    if any(type_of(side).kind == "real" for side in sides):
        fail(
            f"{op} works on integers only",
            got=f"{type_of(sides[0])} {op} {type_of(sides[1])}",
            expected="integers",
        )
    if not rules.constant(sides[1]):
        fail(
            "the divisor must be constant once the profile is bound",
            got=f"a divisor of type {type_of(sides[1])}",
            expected="a literal or a group constant",
        )
    return Arith(op, *sides)
