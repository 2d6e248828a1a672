"""Facts: the typed, bounded quantities that conditions read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from hitproof.spec.errors import Position, ReferenceNameError, SchemaError
from hitproof.spec.units import BASE_UNITS, DIMENSIONLESS, Unit, parse_unit

__all__ = [
    "BOOL",
    "COST",
    "COUNT",
    "COUNTER",
    "Fact",
    "FactType",
    "IDENTITY",
    "Kind",
    "TOKENS",
    "TOKEN_SET",
    "Value",
    "admit",
    "declare_fact",
    "enum_type",
    "parse_fact_type",
]

Kind = Literal["bool", "int", "real", "enum", "identity", "set", "counter"]
Value = bool | int | float | str | frozenset[int] | None
"""A value of a fact in Python; `None` is unknown."""

_LARGEST_BOUND = 2**61
_LARGEST_REAL = 1e12


@dataclass(frozen=True, slots=True)
class FactType:
    """What a fact or an expression is; `unit` for numbers and sets, `enum` and `members` for enumerations."""

    kind: Kind
    unit: Unit = DIMENSIONLESS
    enum: str | None = None
    members: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        """True for kinds that have an order: int, real, counter."""
        return self.kind in ("int", "real", "counter")

    def __str__(self) -> str:
        if self.kind == "enum":
            return f"{self.enum}"
        if self.kind == "set":
            return f"set of {self.unit}"
        if self.kind in ("int", "real"):
            return str(self.unit) if self.unit != DIMENSIONLESS else ("count" if self.kind == "int" else "ratio")
        return self.kind


_TOKENS_UNIT = parse_unit("tokens")
BOOL = FactType("bool")
COUNT = FactType("int")
COUNTER = FactType("counter")
IDENTITY = FactType("identity")
TOKENS = FactType("int", _TOKENS_UNIT)
TOKEN_SET = FactType("set", _TOKENS_UNIT)
COST = FactType("real", parse_unit("us"))


@dataclass(frozen=True, slots=True)
class Fact:
    """A declared fact.

    Args:
        name: Name in its scope, for messages.
        type: Its type and unit.
        lo: Smallest value in the domain; None where the type has no order.
        hi: Largest value in the domain, itself inside.
        because: Why the domain is what it is.
    """

    name: str
    type: FactType
    lo: int | float | None = None
    hi: int | float | None = None
    because: str = ""


def enum_type(name: str, members: Sequence[str]) -> FactType:
    """The type of an enumeration with these members, in this order."""
    return FactType("enum", enum=name, members=tuple(members))


def parse_fact_type(
    text: str, enums: Mapping[str, Sequence[str]], *, where: Position | None = None, rule: str | None = None
) -> FactType:
    """Read a type: `bool`, `identity`, `counter`, `count`, `address`, `set of tokens`, an enum or a unit.

    Raises:
        ReferenceNameError: A single word that names no type.
        UnitError: A unit expression that cannot be read.
    """
    word = " ".join(text.split())
    plain = {
        "bool": BOOL,
        "identity": IDENTITY,
        "counter": COUNTER,
        "count": COUNT,
        "set of tokens": TOKEN_SET,
    }
    if word in plain:
        return plain[word]
    if word in enums:
        return enum_type(word, enums[word])
    if word == "address":
        return FactType("int", parse_unit("bytes"))
    known = sorted({*plain, *enums, "address", *BASE_UNITS})
    if word not in BASE_UNITS and not any(c in word for c in "*/()"):
        close = get_close_matches(word, known, 1)
        raise ReferenceNameError(
            f"'{word}' is not a type",
            where=where,
            rule=rule,
            got=text,
            expected="one of " + ", ".join(known),
            hint=f"did you mean {close[0]}?" if close else None,
        )
    unit = parse_unit(word, where=where, rule=rule)
    return FactType("real" if unit.is_time else "int", unit)


def declare_fact(
    name: str,
    text: str,
    enums: Mapping[str, Sequence[str]],
    *,
    domain: Sequence[int | float] | None = None,
    because: str = "",
    where: Position | None = None,
    rule: str | None = None,
) -> Fact:
    """Make a fact from its type text and, for numbers, a closed domain `[lo, hi]` in the fact's unit.

    Raises:
        ReferenceNameError, UnitError: The type cannot be read.
        SchemaError: The domain is not a pair of bounds, is empty, or does not fit the type.
    """
    kind = parse_fact_type(text, enums, where=where, rule=rule)
    if domain is None:
        lo, hi = _default_domain(kind, text.strip())
        return Fact(name, kind, lo, hi, because)
    problem = _domain_problem(kind, domain)
    if problem:
        raise SchemaError(
            f"the domain of {name} {problem}",
            where=where,
            rule=rule,
            got=list(domain),
            expected="[lowest, highest]",
        )
    bounds = [float(bound) if kind.kind == "real" else bound for bound in domain]
    return Fact(name, kind, bounds[0], bounds[1], because)


def _default_domain(kind: FactType, text: str) -> tuple[int | float | None, int | float | None]:
    if kind.kind == "real":
        return 0.0, _LARGEST_REAL
    if not kind.is_number:
        return None, None
    if text == "address":
        return 0, _LARGEST_BOUND
    exact = {"tokens": 2**40, "bytes": 2**50, "blocks": 2**32, "layers": 2**32}
    return 0, 2**40 if kind.kind == "counter" else exact.get(str(kind.unit), 2**32)


def _domain_problem(kind: FactType, domain: Sequence[int | float]) -> str | None:
    if not kind.is_number:
        return f"has no meaning: a {kind} has no order"
    if len(domain) != 2:
        return "must have two bounds"
    wanted = (int, float) if kind.kind == "real" else (int,)
    if any(type(bound) not in wanted for bound in domain):
        return "must be made of numbers" if kind.kind == "real" else "must be made of integers"
    if not all(abs(bound) <= _LARGEST_BOUND for bound in domain):
        return "reaches beyond 2**61"
    return None if domain[0] <= domain[1] else "is empty: the lower bound is above the upper"


def admit(fact: Fact, value: object) -> Value:
    """The value as conditions see it: itself inside the fact's type and domain, else None (unknown).

    Real facts come back as floats. Types are matched exactly: True is no integer.
    """
    match fact.type.kind:
        case "bool":
            return value if isinstance(value, bool) else None
        case "int" | "counter":
            return value if type(value) is int and _inside(fact, value) else None
        case "real":
            return float(value) if type(value) in (int, float) and _inside(fact, value) else None  # type: ignore[arg-type]
        case "enum":
            return value if isinstance(value, str) and value in fact.type.members else None
        case "identity":
            return value if type(value) is str or type(value) is int else None
        case "set":
            return value if type(value) is frozenset and all(type(item) is int for item in value) else None


def _inside(fact: Fact, value: object) -> bool:
    return fact.lo <= value <= fact.hi  # type: ignore[operator]
