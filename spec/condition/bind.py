"""Binding: a profile's constants take the place of their names, and what is left is checked and folded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from hitproof.spec.condition.intervals import check_bounds
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
    conjunction,
    disjunction,
    type_of,
)
from hitproof.spec.condition.operators import ARITHMETIC, COMPARISON, EXTREME
from hitproof.spec.errors import BindError, Position
from hitproof.spec.facts import BOOL, admit

__all__ = ["CONSTANT_SCOPES", "bind", "bind_constant"]

CONSTANT_SCOPES = ("group.",)


def bind(
    node: Node,
    constants: Mapping[str, object],
    *,
    scopes: tuple[str, ...] = CONSTANT_SCOPES,
    never_unknown: frozenset[str] = frozenset(),
    where: Position | None = None,
    rule: str | None = None,
) -> Node:
    """Put constants in place, fold what became constant, and check divisors, products and ranges.

    `known(c)` of a constant says whether it is declared. A conjunction stops at its first false term and a
    disjunction at its first true one, so `implies(known(group.window), ...)` never reads a missing window.

    Args:
        node: A typed tree.
        constants: Values by full path, such as `group.window`; all of them are folded.
        scopes: Beginnings of the paths that must be constant.
        never_unknown: Paths whose value is known wherever the tree is read; a quotient of one that is 0 for every value
            of its domain is folded.
        where: Position of the rule, for errors.
        rule: Id of the rule, for errors.

    Raises:
        BindError: A constant is missing or outside its domain, a divisor is not a positive constant,
            a product has no constant factor, or a number may leave 2**62.
    """
    bound = _Binder(constants, scopes, where, rule, never_unknown, absent_is_false=False).visit(node)
    check_bounds(bound, where=where, rule=rule)
    return bound


def bind_constant(
    node: Node,
    constants: Mapping[str, object],
    *,
    scopes: tuple[str, ...] = CONSTANT_SCOPES,
    where: Position | None = None,
    rule: str | None = None,
) -> bool:
    """Decide a condition on constants alone (`applies`); what is absent takes no part.

    A comparison, membership or Boolean constant that needs a missing constant is false; `known(c)` says
    whether c is declared.

    Raises:
        BindError: The condition reads something that is not constant, or a constant is outside its domain.
    """
    bound = _Binder(constants, scopes, where, rule, absent_is_false=True).visit(node)
    if not isinstance(bound, Literal) or not isinstance(bound.value, bool):
        raise BindError(
            "this condition must depend on constants of the profile only",
            where=where,
            rule=rule,
            expected="constants, such as group.window",
        )
    return bound.value


class _Absent(Exception):
    """A constant is not declared; caught at the atom that reads it."""


class _Binder:
    def __init__(
        self,
        constants: Mapping[str, object],
        scopes: tuple[str, ...],
        where: Position | None,
        rule: str | None,
        never_unknown: frozenset[str] = frozenset(),
        *,
        absent_is_false: bool,
    ) -> None:
        self.constants, self.scopes, self.where, self.rule = constants, scopes, where, rule
        self.never_unknown = never_unknown
        self.absent_is_false = absent_is_false

    def visit(self, node: Node) -> Node:
        match node:
            case And(terms=terms):
                return self._junction(terms, False)
            case Or(terms=terms):
                return self._junction(terms, True)
            case Not(x=x):
                inner = self.visit(x)
                return Literal(not inner.value, BOOL) if isinstance(inner, Literal) else Not(inner)
            case Known(ref=ref):
                return Literal(ref.path in self.constants, BOOL) if self._is_constant(ref.path) else node
            case Compare() | Member() | Ref():
                try:
                    return self._atom(node)
                except _Absent:
                    return Literal(False, BOOL)
            case _:
                return self._number(node)

    def _junction(self, terms: tuple[Node, ...], absorbing: bool) -> Node:
        kept: list[Node] = []
        for term in terms:
            bound = self.visit(term)
            if not isinstance(bound, Literal):
                kept.append(bound)
            elif bound.value is absorbing:
                return bound
        return disjunction(kept) if absorbing else conjunction(kept)

    def _atom(self, node: Node) -> Node:
        match node:
            case Compare(op=op, left=left, right=right):
                first, second = self._number(left), self._number(right)
                if isinstance(first, Literal) and isinstance(second, Literal):
                    return Literal(COMPARISON[op](first.value, second.value), BOOL)
                return Compare(op, first, second)
            case Member(item=item, container=Ref() as container):
                if self._is_constant(container.path):
                    self._fail("a set cannot be a constant of a profile", container.path)
                return Member(self._number(item), container)
            case Member(item=item, container=tuple() as container):
                value = self._number(item)
                if isinstance(value, Literal):
                    return Literal(any(value.value == one.value for one in container), BOOL)
                return Member(value, container)
            case _:
                return self._number(node)

    def _number(self, node: Node) -> Node:
        match node:
            case Ref() if self._is_constant(node.path):
                return self._constant(node)
            case Negate(x=x):
                value = self._number(x)
                return Literal(-value.value, value.type) if isinstance(value, Literal) else Negate(value)  # type: ignore[operator]
            case Extreme(op=op, args=args):
                parts = tuple(map(self._number, args))
                literals = [part for part in parts if isinstance(part, Literal)]
                if len(literals) < len(parts):
                    return Extreme(op, parts)
                return Literal(EXTREME[op](*(part.value for part in literals)), literals[0].type)
            case Arith(op=op, left=left, right=right):
                return self._arith(op, self._number(left), self._number(right))
            case _:
                return node

    def _arith(self, op: str, left: Node, right: Node) -> Node:
        node = Arith(op, left, right)
        if op == "//" and self._surely_below(left, right):
            return Literal(0, type_of(node))
        if not (isinstance(left, Literal) and isinstance(right, Literal)):
            return node
        check_bounds(node, where=self.where, rule=self.rule)
        return Literal(ARITHMETIC[op](left.value, right.value), type_of(node))

    def _surely_below(self, left: Node, right: Node) -> bool:
        """The quotient is 0, whatever the value is; of a fact that may be unknown it would be unknown."""
        if not (isinstance(left, Ref) and left.path in self.never_unknown and isinstance(right, Literal)):
            return False
        lo, hi = left.fact.lo, left.fact.hi
        return lo is not None and hi is not None and 0 <= lo <= hi < right.value  # type: ignore[operator]

    def _constant(self, ref: Ref) -> Node:
        kind = ref.fact.type
        if ref.path not in self.constants:
            if self.absent_is_false:
                raise _Absent
            self._fail(
                f"the profile does not give {ref.path}",
                None,
                expected=f"{ref.path} in {kind}",
                hint="declare it in the profile, or let the rule apply only where it is declared",
            )
        value = admit(ref.fact, self.constants[ref.path])
        if value is None:
            domain = f" from {ref.fact.lo} to {ref.fact.hi}" if kind.is_number else ""
            self._fail(
                f"the value of {ref.path} does not fit its declaration",
                self.constants[ref.path],
                expected=f"{kind}{domain}",
            )
        if kind.kind in ("identity", "set") or isinstance(value, frozenset):
            self._fail(f"{ref.path} cannot be a constant of a profile", f"a fact of type {kind}")
        return Literal(value, kind)

    def _is_constant(self, path: str) -> bool:
        return path in self.constants or path.startswith(self.scopes)

    def _fail(self, message: str, got: object, expected: object = None, hint: str | None = None) -> NoReturn:
        raise BindError(message, where=self.where, rule=self.rule, got=got, expected=expected, hint=hint)
