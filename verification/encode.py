"""Conditions as Z3 terms in two rails: surely true and surely false."""

from __future__ import annotations

from collections.abc import Iterable
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
from hitproof.verification.terms import COMPARISONS, all_of, any_of, equal, negated
from hitproof.verification.z3_facts import EnumSorts, FactNames, Z3Fact, Z3Facts, numeral

__all__ = ["Dual", "EnumSorts", "FactNames", "Z3Fact", "Z3Facts", "encode", "encode_number"]


@dataclass(frozen=True, slots=True)
class Dual:
    """A condition in strong Kleene logic: `T` surely true, `F` surely false, never both; else unknown."""

    T: z3.BoolRef
    F: z3.BoolRef


def encode(node: Node, names: FactNames, *, ctx: z3.Context | None = None, enums: EnumSorts | None = None) -> Dual:
    """Translate a bound condition.

    Args:
        node: The condition.
        names: Where facts come from.
        ctx: Context of conditions that read no fact; that of `names` where it has one.
        enums: The enumeration sorts, where they are at hand; that of `names` where it has them.

    Raises:
        BindError: The condition is not bound.
    """
    check_bounds(node)
    return _Encoder(names, _context(node, names, ctx), enums).dual(node)


def encode_number(
    node: Node, names: FactNames, *, ctx: z3.Context | None = None, enums: EnumSorts | None = None
) -> tuple[Any, z3.BoolRef]:
    """Translate a bound number, enum, identity or set to its value and to its being known.

    A condition's value is its being surely true. A lone enum literal needs `enums` or a `Z3Facts`.

    Raises:
        BindError: The expression is not bound.
    """
    check_bounds(node)
    encoder = _Encoder(names, _context(node, names, ctx), enums)
    if type_of(node).kind == "bool":
        dual = encoder.dual(node)
        return dual.T, z3.Or(dual.T, dual.F)
    if isinstance(node, Literal) and node.type.kind == "enum":
        if encoder.enums is None:
            raise TypeError("an enum literal alone needs the enumeration sorts")
        return encoder.enums.member(node.type, str(node.value)), encoder.true
    return encoder.value(node), encoder.known(node)


def _context(node: Node, names: FactNames, ctx: z3.Context | None) -> z3.Context:
    given = ctx or getattr(names, "ctx", None)
    if given is not None:
        return given
    first = next(iter(refs(node)), None)
    return names(first.path).known.ctx if first else z3.main_ctx()


class _Encoder:
    def __init__(self, names: FactNames, ctx: z3.Context, enums: EnumSorts | None) -> None:
        self.names, self.ctx = names, ctx
        self.enums: EnumSorts | None = enums or getattr(names, "enums", None)
        self.true, self.false = z3.BoolVal(True, ctx=ctx), z3.BoolVal(False, ctx=ctx)

    def dual(self, node: Node) -> Dual:
        match node:
            case Literal(value=value):
                return Dual(self.true, self.false) if value else Dual(self.false, self.true)
            case Not(x=x):
                inner = self.dual(x)
                return Dual(inner.F, inner.T)
            case And(terms=terms):
                parts = [self.dual(term) for term in terms]
                return Dual(self._all(part.T for part in parts), self._any(part.F for part in parts))
            case Or(terms=terms):
                parts = [self.dual(term) for term in terms]
                return Dual(self._any(part.T for part in parts), self._all(part.F for part in parts))
            case Known(ref=ref):
                known = self.names(ref.path).known
                return Dual(known, negated(known))
            case Ref(path=path):
                fact = self.names(path)
                return self._where(fact.known, fact.value)
            case Compare(op=op, left=left, right=right):
                return self._where(self.known(node), self._compare(op, left, right))
            case Member(item=item, container=Ref(path=path)):
                return self._where(self.known(node), z3.Select(self.names(path).value, self.value(item)))
            case Member(item=item, container=tuple() as literals):
                holds = self._any(self._compare("==", item, literal) for literal in literals)
                return self._where(self.known(node), holds)
            case _:
                raise TypeError(f"not a condition: {node!r}")

    def known(self, node: Node) -> z3.BoolRef:
        """Every fact that the node reads is known."""
        return self._all(self.names(ref.path).known for ref in refs(node))

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
        return COMPARISONS[op](self.value(left), self.value(right))

    def _compare_enums(self, op: str, left: Node, right: Node) -> z3.BoolRef:
        if isinstance(left, Literal) and isinstance(right, Literal):
            same = z3.BoolVal(left.value == right.value, ctx=self.ctx)
        else:
            same = equal(self._enum(left, right), self._enum(right, left))
        return same if op == "==" else negated(same)

    def _enum(self, node: Node, neighbour: Node) -> Any:
        """An enum's term; without a table of sorts a literal takes the sort of its neighbour."""
        if not isinstance(node, Literal):
            return self.value(node)
        if self.enums is not None:
            return self.enums.member(node.type, str(node.value))
        return self.value(neighbour).sort().constructor(node.type.members.index(str(node.value)))()

    def _all(self, parts: Iterable[Any]) -> Any:
        return all_of(list(parts), self.true)

    def _any(self, parts: Iterable[Any]) -> Any:
        return any_of(list(parts), self.false)

    def _where(self, known: Any, holds: Any) -> Dual:
        return Dual(self._all((known, holds)), self._all((known, negated(holds))))
