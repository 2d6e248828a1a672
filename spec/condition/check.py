"""Type checker: from a syntax tree to typed nodes, chains desugared, macros put in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal as OneOf

from hitproof.spec.condition.arithmetic import BareName, Numeral, adopt, common_type, typed
from hitproof.spec.condition.lexical import Source
from hitproof.spec.condition.nodes import (
    And,
    Compare,
    Known,
    Member,
    Node,
    Not,
    Or,
    Ref,
    conjunction,
    disjunction,
    type_of,
)
from hitproof.spec.condition.operands import OperandChecker, describe, kind_of
from hitproof.spec.condition.scope import Scope
from hitproof.spec.condition.traverse import children
from hitproof.spec.facts import BOOL, FactType

__all__ = ["AllowKnown", "Checker"]

AllowKnown = OneOf["positive", "never", "any"]

_COMPARISON: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class Checker(OperandChecker):
    """Checks one expression; every method takes a part of its syntax tree."""

    def __init__(self, source: Source, scope: Scope, allow_known: AllowKnown, *, cost: bool) -> None:
        super().__init__(source, scope, cost=cost)
        self.allow_known = allow_known

    def condition(self, part: ast.expr, positive: bool = True) -> Node:
        """The part as a condition; `positive` is false under an odd number of negations."""
        match part:
            case ast.BoolOp(op=op, values=values):
                terms = [self.condition(value, positive) for value in values]
                return conjunction(terms) if isinstance(op, ast.And) else disjunction(terms)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self.condition(operand, not positive))
            case ast.Compare():
                return self._comparison(part)
            case ast.Call(func=ast.Name(id="implies"), args=[left, right], keywords=[]):
                return disjunction((Not(self.condition(left, not positive)), self.condition(right, positive)))
            case ast.Call(func=ast.Name(id="known"), args=[argument], keywords=[]):
                return self._known(part, argument, positive)
        value = self.value(part)
        if isinstance(value, BareName):
            self.unknown_name(part, value.name)
        if isinstance(value, Numeral) or type_of(value) != BOOL:
            self.fail(part)(
                "a condition is expected here",
                got=describe(value),
                expected="a condition",
                hint="compare it with something",
            )
        for path, upright in _askings(value, positive):
            self._check_known(part, path, upright)
        return value

    def _comparison(self, part: ast.Compare) -> Node:
        sides = [part.left, *part.comparators]
        if any(isinstance(op, ast.In | ast.NotIn) for op in part.ops):
            if len(part.ops) > 1:
                self.fail(part)(
                    "in cannot be chained", got=self.source.excerpt(part), hint="join two conditions with and"
                )
            member = self._member(part.left, part.comparators[0])
            return member if isinstance(part.ops[0], ast.In) else Not(member)
        pairs = zip(part.ops, sides, sides[1:], strict=False)
        return conjunction(self._compare(part, op, left, right) for op, left, right in pairs)

    def _compare(self, part: ast.Compare, op: ast.cmpop, left: ast.expr, right: ast.expr) -> Node:
        fail = self.fail(left if len(part.ops) == 1 else right)
        sign = _COMPARISON.get(type(op))
        if sign is None:
            fail("this comparison is not part of the language", got=self.source.excerpt(part), hint="write ==")
        first, second = self.value(left), self.value(right)
        enum = next((k for k in map(kind_of, (first, second)) if k and k.kind == "enum"), None)
        if enum:
            first, second = self.explain(left, first, enum), self.explain(right, second, enum)
        for side, value in ((left, first), (right, second)):
            if isinstance(value, BareName):
                self.unknown_name(side, value.name)
            kind = kind_of(value)
            if kind == BOOL:
                self.fail(side)(
                    "conditions are not compared",
                    got=self.source.excerpt(part),
                    expected="numbers, enums or identities",
                    hint="write the condition itself, or not before it",
                )
            if kind and kind.kind == "set":
                self.fail(side)(
                    "sets are not compared", got=self.source.excerpt(part), hint="ask for membership with in"
                )
            if kind and not kind.is_number and sign not in ("==", "!="):
                fail(f"values of type {kind} have no order", got=sign, expected="== or !=")
        kind = common_type([s for s in (first, second) if not isinstance(s, BareName)], fail)
        if kind is None:
            real = any(isinstance(s, Numeral) and isinstance(s.value, float) for s in (first, second))
            kind = FactType("real" if real else "int")
        return Compare(sign, self.explain(left, first, kind), self.explain(right, second, kind))

    def _member(self, item: ast.expr, container: ast.expr) -> Node:
        fail = self.fail(container)
        value = self.value(item)
        if isinstance(value, BareName):
            self.unknown_name(item, value.name)
        if not isinstance(container, ast.Tuple):
            group = self.value(container)
            if not isinstance(group, Ref) or group.fact.type.kind != "set":
                fail(
                    "after in stands a set fact or a tuple of literals",
                    got=self.source.excerpt(container),
                    hint="a tuple of one is written (x,)",
                )
            return Member(adopt(value, FactType("int", group.fact.type.unit), self.fail(item)), group)
        kind = kind_of(typed(value) if isinstance(value, Numeral) else value)
        if kind is None or kind.kind not in ("int", "counter", "enum"):
            self.fail(item)("this cannot be looked up in a tuple", got=describe(value), expected="an integer or enum")
        if not container.elts:
            fail("the tuple is empty", expected="one literal or more")
        members = tuple(self.literal(element, kind) for element in container.elts)
        return Member(typed(value) if isinstance(value, Numeral) else value, members)

    def _known(self, call: ast.expr, argument: ast.expr, positive: bool) -> Node:
        ref = self.value(argument)
        if isinstance(ref, BareName):
            self.unknown_name(argument, ref.name)
        if not isinstance(ref, Ref):
            self.fail(argument)(
                "known takes one fact", got=self.source.excerpt(argument), expected="the name of a fact"
            )
        self._check_known(call, ref.path, positive)
        return Known(ref)

    def _check_known(self, part: ast.expr, path: str, positive: bool) -> None:
        refused = self.allow_known == "never" or (self.allow_known == "positive" and not positive)
        if refused and path not in self.scope.constants:
            self.fail(part)(
                "known cannot stand here" if self.allow_known == "never" else "known stands under a negation",
                got=self.source.excerpt(part),
                expected="known in positive position",
                hint="what is accepted while a fact is unknown must not depend on its being unknown",
            )


def _askings(node: Node, positive: bool) -> Iterator[tuple[str, bool]]:
    """Every `known` of a finished condition: the fact's path, and whether it stands in positive position."""
    if isinstance(node, Known):
        yield node.ref.path, positive
    elif isinstance(node, Not | And | Or):
        for child in children(node):
            yield from _askings(child, positive is not isinstance(node, Not))
