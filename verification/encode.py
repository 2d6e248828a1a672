"""Conditions as Z3 terms in two rails: surely true and surely false."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.condition import (
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
    check_bounds,
    refs,
    type_of,
)
from hitproof.verification.z3_facts import EnumSorts, FactNames, Z3Fact, Z3Facts, numeral

__all__ = ["Dual", "EnumSorts", "FactNames", "Z3Fact", "Z3Facts", "encode", "encode_number"]


@dataclass(frozen=True, slots=True)
class Dual:
    """A condition in strong Kleene logic: `T` surely true, `F` surely false, never both; else unknown."""

    T: z3.BoolRef
    F: z3.BoolRef


def encode(node: Node, names: FactNames, *, ctx: z3.Context | None = None) -> Dual:
    """Translate a bound condition.

    Args:
        node: The condition.
        names: Where facts come from.
        ctx: Context of conditions that read no fact; that of `names` where it has one.

    Raises:
        BindError: The condition is not bound.
    """
    check_bounds(node)
    return _Encoder(names, _context(node, names, ctx)).dual(node)


def encode_number(
    node: Node, names: FactNames, *, ctx: z3.Context | None = None, enums: EnumSorts | None = None
) -> tuple[Any, z3.BoolRef]:
    """Translate a bound number, enum, identity or set to its value and to its being known.

    A condition's value is its being surely true. A lone enum literal needs `enums` or a `Z3Facts`.

    Raises:
        BindError: The expression is not bound.
    """
    check_bounds(node)
    encoder = _Encoder(names, _context(node, names, ctx))
    if type_of(node).kind == "bool":
        dual = encoder.dual(node)
        return dual.T, z3.Or(dual.T, dual.F)
    if isinstance(node, Literal) and node.type.kind == "enum":
        sorts = enums or getattr(names, "enums", None)
        if sorts is None:
            raise TypeError("an enum literal alone needs the enumeration sorts")
        return sorts.member(node.type, str(node.value)), z3.BoolVal(True, ctx=encoder.ctx)
    return encoder.value(node), encoder.known(node)


def _context(node: Node, names: FactNames, ctx: z3.Context | None) -> z3.Context:
    given = ctx or getattr(names, "ctx", None)
    if given is not None:
        return given
    first = next(iter(refs(node)), None)
    return names(first.path).known.ctx if first else z3.main_ctx()


class _Encoder:
    def __init__(self, names: FactNames, ctx: z3.Context) -> None:
        self.names, self.ctx = names, ctx

    def dual(self, node: Node) -> Dual:
        match node:
            case Literal(value=value):
                return Dual(z3.BoolVal(bool(value), ctx=self.ctx), z3.BoolVal(not value, ctx=self.ctx))
            case Not(x=x):
                inner = self.dual(x)
                return Dual(inner.F, inner.T)
            case And(terms=terms):
                parts = [self.dual(term) for term in terms]
                return Dual(z3.And([part.T for part in parts]), z3.Or([part.F for part in parts]))
            case Or(terms=terms):
                parts = [self.dual(term) for term in terms]
                return Dual(z3.Or([part.T for part in parts]), z3.And([part.F for part in parts]))
            case Known(ref=ref):
                known = self.names(ref.path).known
                return Dual(known, z3.Not(known))
            case Ref(path=path):
                return _where(self.names(path).known, self.names(path).value)
            case Compare(op=op, left=left, right=right):
                return _where(self.known(node), self._compare(op, left, right))
            case Member(item=item, container=Ref(path=path)):
                return _where(self.known(node), z3.Select(self.names(path).value, self.value(item)))
            case Member(item=item, container=tuple() as literals):
                holds = z3.Or([self._compare("==", item, literal) for literal in literals])
                return _where(self.known(node), holds)
            case _:
                raise TypeError(f"not a condition: {node!r}")

    def known(self, node: Node) -> z3.BoolRef:
        """Every fact that the node reads is known."""
        return z3.And([z3.BoolVal(True, ctx=self.ctx), *(self.names(ref.path).known for ref in refs(node))])

    def value(self, node: Node) -> Any:
        match node:
            case Literal(value=int() | float() as value, type=kind):
                return numeral(value, kind, self.ctx)
            case Ref(path=path):
                return self.names(path).value
            case Negate(x=x):
                return -self.value(x)
            case Extreme(op="abs", args=(x,)):
                value = self.value(x)
                return z3.If(value >= 0, value, -value)
            case Extreme(op=op, args=(first, *others)):
                best = self.value(first)
                for value in map(self.value, others):
                    best = z3.If(value < best if op == "min" else value > best, value, best)
                return best
            case Arith(op=op, left=left, right=right):
                return self._arith(op, self.value(left), self.value(right))
            case _:
                raise TypeError(f"not a value: {node!r}")

    def _arith(self, op: str, left: Any, right: Any) -> Any:
        if z3.is_real(left) is not z3.is_real(right):
            left, right = (side if z3.is_real(side) else z3.ToReal(side) for side in (left, right))
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "//":
                return left / right
            case _:
                return left % right

    def _compare(self, op: str, left: Node, right: Node) -> Any:
        if type_of(left).kind == "enum":
            return self._compare_enums(op, left, right)
        first, second = self.value(left), self.value(right)
        match op:
            case "==":
                return first == second
            case "!=":
                return first != second
            case "<":
                return first < second
            case "<=":
                return first <= second
            case ">":
                return first > second
            case _:
                return first >= second

    def _compare_enums(self, op: str, left: Node, right: Node) -> z3.BoolRef:
        if isinstance(left, Literal) and isinstance(right, Literal):
            same = z3.BoolVal(left.value == right.value, ctx=self.ctx)
        else:
            first, second = self._enum(left, right), self._enum(right, left)
            same = first == second
        return same if op == "==" else z3.Not(same)

    def _enum(self, node: Node, neighbour: Node) -> Any:
        """An enum's term; a literal takes the sort of its neighbour, so that no table of sorts is needed."""
        if not isinstance(node, Literal):
            return self.value(node)
        return self.value(neighbour).sort().constructor(node.type.members.index(str(node.value)))()


def _where(known: z3.BoolRef, holds: Any) -> Dual:
    return Dual(z3.And(known, holds), z3.And(known, z3.Not(holds)))
