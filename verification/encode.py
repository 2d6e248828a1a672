"""Conditions as Z3 terms in two rails, surely true and surely false; the facts that they read as Z3 constants."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
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
from hitproof.spec.facts import Fact, FactType, Value

__all__ = ["Dual", "EnumSorts", "FactNames", "Z3Fact", "Z3Facts", "encode", "encode_number"]


@dataclass(frozen=True, slots=True)
class Dual:
    """A condition in strong Kleene logic: `T` surely true, `F` surely false, never both; neither is unknown."""

    T: z3.BoolRef
    F: z3.BoolRef


@dataclass(frozen=True, slots=True)
class Z3Fact:
    """A fact: its value, which counts only where `known` holds; `known` implies the fact's domain."""

    value: z3.ExprRef
    known: z3.BoolRef


FactNames = Callable[[str], Z3Fact]
"""From a fact's path to its terms; a `Z3Facts`, or any function."""


class EnumSorts:
    """The enumeration sorts of one Z3 context: one for each enum, since a context takes a name only once."""

    def __init__(self, ctx: z3.Context) -> None:
        self.ctx = ctx
        self._sorts: dict[FactType, tuple[z3.SortRef, dict[str, z3.ExprRef]]] = {}

    def sort(self, kind: FactType) -> z3.SortRef:
        """The sort of an enum type, made at first use."""
        return self._entry(kind)[0]

    def member(self, kind: FactType, name: str) -> z3.ExprRef:
        """The term of an enum member."""
        return self._entry(kind)[1][name]

    def _entry(self, kind: FactType) -> tuple[z3.SortRef, dict[str, z3.ExprRef]]:
        if kind not in self._sorts:
            names = [f"{kind.enum}.{member}" for member in kind.members]
            sort, terms = z3.EnumSort(str(kind.enum), names, ctx=self.ctx)
            self._sorts[kind] = sort, dict(zip(kind.members, terms, strict=True))
        return self._sorts[kind]

    def of_type(self, kind: FactType) -> z3.SortRef:
        """The sort of any fact type: identities are Int, sets of integers are arrays from Int to Bool."""
        match kind.kind:
            case "bool":
                return z3.BoolSort(self.ctx)
            case "real":
                return z3.RealSort(self.ctx)
            case "enum":
                return self.sort(kind)
            case "set":
                return z3.ArraySort(z3.IntSort(self.ctx), z3.BoolSort(self.ctx))
            case _:
                return z3.IntSort(self.ctx)


class Z3Facts:
    """Facts as fresh Z3 constants, each made once.

    Args:
        enums: The enumeration sorts; its context is used for everything.
        lookup: Declarations by path.
        prefix: Put before each constant's name, so that several states can stand beside one another.
        always_known: Paths that are never unknown; their domain goes to `assumptions` instead.
    """

    def __init__(
        self,
        enums: EnumSorts,
        lookup: Mapping[str, Fact] | Callable[[str], Fact],
        prefix: str = "",
        always_known: Container[str] | Callable[[str], bool] = (),
    ) -> None:
        self.enums, self.ctx, self.prefix = enums, enums.ctx, prefix
        self._lookup = lookup if callable(lookup) else lookup.__getitem__
        self._always_known = always_known if callable(always_known) else always_known.__contains__
        self._facts: dict[str, Z3Fact] = {}
        self._flags: dict[str, z3.BoolRef] = {}
        self._assumptions: dict[str, z3.BoolRef] = {}

    def __call__(self, path: str) -> Z3Fact:
        """The terms of a fact."""
        if path not in self._facts:
            self._facts[path] = self._make(path)
        return self._facts[path]

    @property
    def assumptions(self) -> list[z3.BoolRef]:
        """The domains of the always known facts read so far: assert them with every query."""
        return list(self._assumptions.values())

    @property
    def paths(self) -> tuple[str, ...]:
        """The facts read so far."""
        return tuple(self._facts)

    def flag(self, path: str) -> z3.BoolRef:
        """The free Boolean behind `known` of a fact, for substitution; true itself where always known."""
        self(path)
        return self._flags[path]

    def decode(self, model: z3.ModelRef, path: str) -> Value:
        """The value of a fact in a model, None where it is unknown there.

        Identities come back as integers. A set is not decoded, since it may be infinite: ask for single members.

        Raises:
            TypeError: The fact is a set.
        """
        fact, kind = self(path), self._lookup(path).type
        if not z3.is_true(model.eval(fact.known, model_completion=True)):
            return None
        value = model.eval(fact.value, model_completion=True)
        match kind.kind:
            case "bool":
                return z3.is_true(value)
            case "real":
                return float(value.as_fraction())
            case "enum":
                return str(value).split(".", 1)[1]
            case "set":
                raise TypeError(f"{path} is a set: ask the model for single members")
            case _:
                return int(value.as_long())

    def _make(self, path: str) -> Z3Fact:
        fact, name = self._lookup(path), self.prefix + path
        value = z3.Const(name, self.enums.of_type(fact.type))
        inside = _domain(fact, value, self.ctx)
        if not self._always_known(path):
            self._flags[path] = z3.Bool(name + "?", ctx=self.ctx)
            known = z3.And(self._flags[path], inside) if fact.type.is_number else self._flags[path]
            return Z3Fact(value, known)
        if fact.type.is_number:
            self._assumptions[path] = inside
        self._flags[path] = z3.BoolVal(True, ctx=self.ctx)
        return Z3Fact(value, self._flags[path])


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

    A condition's value is its being surely true. A lone enum literal needs `enums`, or a `Z3Facts` as `names`.

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


def _domain(fact: Fact, value: Any, ctx: z3.Context) -> z3.BoolRef:
    if fact.lo is None or fact.hi is None:
        return z3.BoolVal(True, ctx=ctx)
    return z3.And(value >= _numeral(fact.lo, fact.type, ctx), value <= _numeral(fact.hi, fact.type, ctx))


def _numeral(value: int | float, kind: FactType, ctx: z3.Context) -> z3.ArithRef:
    if kind.kind != "real":
        return z3.IntVal(int(value), ctx=ctx)
    exact = Fraction(value)
    return z3.RealVal(f"{exact.numerator}/{exact.denominator}", ctx=ctx)


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
                return _numeral(value, kind, self.ctx)
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
