"""The typed tree of a condition: frozen nodes without any behaviour but their type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hitproof.spec.facts import BOOL, Fact, FactType

__all__ = [
    "And",
    "Arith",
    "Compare",
    "Extreme",
    "Known",
    "Literal",
    "Member",
    "Negate",
    "Node",
    "Not",
    "Or",
    "Ref",
    "conjunction",
    "disjunction",
    "type_of",
]


@dataclass(frozen=True, slots=True)
class Ref:
    """Reads a fact by its path, such as `self.start` or `length`."""

    path: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a Boolean, a number in its unit, or the name of an enum member."""

    value: bool | int | float | str
    type: FactType


@dataclass(frozen=True, slots=True)
class Negate:
    """Minus a number."""

    x: Node


@dataclass(frozen=True, slots=True)
class Arith:
    """`left op right` with op one of + - * // %."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Extreme:
    """`min`, `max` or `abs` of numbers of one unit."""

    op: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right` with op one of == != < <= > >=; never chained."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Member:
    """The item is one of some literals, or is in a set fact."""

    item: Node
    container: Ref | tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The fact is known; itself never unknown."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Not:
    """Kleene negation."""

    x: Node


@dataclass(frozen=True, slots=True)
class And:
    """Kleene conjunction of two or more conditions."""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Kleene disjunction of two or more conditions."""

    terms: tuple[Node, ...]


Node = Ref | Literal | Negate | Arith | Extreme | Compare | Member | Known | Not | And | Or


def conjunction(terms: Iterable[Node]) -> Node:
    """All of the terms, nested conjunctions flattened; true where there is none."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, And) else (term,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else Literal(True, BOOL)


def disjunction(terms: Iterable[Node]) -> Node:
    """Any of the terms, nested disjunctions flattened; false where there is none."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, Or) else (term,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else Literal(False, BOOL)


def type_of(node: Node) -> FactType:
    """The type and unit of an expression."""
    match node:
        case Ref(fact=fact):
            return fact.type
        case Literal(type=kind):
            return kind
        case Negate(x=x) | Extreme(args=(x, *_)):
            return type_of(x)
        case Arith(op="*", left=left, right=right):
            return _scaled(type_of(left), type_of(right), divide=False)
        case Arith(op="//", left=left, right=right):
            return _scaled(type_of(left), type_of(right), divide=True)
        case Arith(left=left):
            return type_of(left)
        case _:
            return BOOL


def _scaled(left: FactType, right: FactType, *, divide: bool) -> FactType:
    unit = left.unit / right.unit if divide else left.unit * right.unit
    return replace(right if right.kind == "real" else left, unit=unit)
