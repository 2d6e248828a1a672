"""Type checker: from a syntax tree to typed nodes, chains desugared, macros put in place."""

from __future__ import annotations

import ast
from typing import Literal as OneOf
from typing import NoReturn

from hitproof.spec.condition.arithmetic import (
    LARGEST,
    LARGEST_REAL,
    BareName,
    Fail,
    Numeral,
    Part,
    Rules,
    adopt,
    combine,
    common_type,
    extreme,
    negate,
    typed,
)
from hitproof.spec.condition.lexical import Source
from hitproof.spec.condition.nodes import (
    Compare,
    Known,
    Literal,
    Member,
    Node,
    Not,
    Ref,
    conjunction,
    disjunction,
    type_of,
)
from hitproof.spec.condition.scope import Scope
from hitproof.spec.condition.traverse import reads
from hitproof.spec.errors import ConditionError
from hitproof.spec.facts import BOOL, FactType

__all__ = ["AllowKnown", "Checker"]

AllowKnown = OneOf["positive", "never", "any"]

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_COMPARISON: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FUNCTIONS = ("abs", "implies", "known", "max", "min")


class Checker:
    """Checks one expression; every method takes a part of its syntax tree."""

    def __init__(self, source: Source, scope: Scope, allow_known: AllowKnown, *, cost: bool) -> None:
        self.source, self.scope, self.allow_known = source, scope, allow_known
        self.rules = Rules(constant=lambda node: reads(node) <= scope.constants, cost=cost)

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
            self._unknown_name(part, value.name)
        if isinstance(value, Numeral) or type_of(value) != BOOL:
            self.fail(part)(
                "a condition is expected here",
                got=_describe(value),
                expected="a condition",
                hint="compare it with something",
            )
        return value

    def value(self, part: ast.expr) -> Part:
        """The part as an operand: a number, a fact, or a name that its neighbour must explain."""
        fail = self.fail(part)
        match part:
            case ast.Constant(value=bool(truth)):
                return Literal(truth, BOOL)
            case ast.Constant(value=int() | float() as number):
                largest = LARGEST if isinstance(number, int) else LARGEST_REAL
                if not -largest <= number <= largest:
                    fail("the number is too large", got=self.source.excerpt(part), expected="at most 2**62")
                return Numeral(number)
            case ast.Name() | ast.Attribute():
                return self._name(part)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return negate(self.number(operand), fail)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return combine(_ARITHMETIC[type(op)], self.number(left), self.number(right), self.rules, fail)
            case ast.Call(func=ast.Name(id="min" | "max" | "abs" as name), args=arguments, keywords=[]):
                return extreme(name, [self.number(argument) for argument in arguments], fail)
            case ast.Call(func=ast.Name(id="implies" | "known" as name), args=arguments):
                if len(arguments) == (2 if name == "implies" else 1) and not part.keywords:
                    return self.condition(part, positive=False)
                fail(
                    "implies takes a condition and its consequence"
                    if name == "implies"
                    else "known takes one fact",
                    got=f"{len(arguments)} arguments",
                )
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return self.condition(part, positive=False)
            case ast.Call():
                fail(
                    "this function does not exist",
                    got=self.source.excerpt(part),
                    expected=", ".join(_FUNCTIONS),
                )
            case ast.Tuple():
                fail("a tuple can only stand after in", got=self.source.excerpt(part))
        fail("this is not part of the language", got=self.source.excerpt(part))

    def number(self, part: ast.expr) -> Node | Numeral:
        """The part as a number."""
        value = self.value(part)
        if isinstance(value, BareName):
            self._unknown_name(part, value.name)
        if not isinstance(value, Numeral) and not type_of(value).is_number:
            self.fail(part)("a number is expected here", got=_describe(value), expected="a number")
        return value

    def of_type(self, part: ast.expr, kind: FactType) -> Node:
        """The part as an expression of exactly this type."""
        if kind == BOOL:
            return self.condition(part)
        return self._explain(part, self.value(part), kind)

    def fail(self, part: ast.expr) -> Fail:
        """What raises an error at the place of this part."""

        def raise_here(
            message: str,
            *,
            got: object = None,
            expected: object = None,
            hint: str | None = None,
            kind: type[ConditionError] = ConditionError,
        ) -> NoReturn:
            place = self.source.at(part)
            raise kind(message, where=place, rule=self.source.rule, got=got, expected=expected, hint=hint)

        return raise_here

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
            fail(
                "this comparison is not part of the language", got=self.source.excerpt(part), hint="write =="
            )
        first, second = self.value(left), self.value(right)
        enum = next((k for k in map(_type, (first, second)) if k and k.kind == "enum"), None)
        if enum:
            first, second = self._explain(left, first, enum), self._explain(right, second, enum)
        for side, value in ((left, first), (right, second)):
            if isinstance(value, BareName):
                self._unknown_name(side, value.name)
            kind = _type(value)
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
        return Compare(sign, self._explain(left, first, kind), self._explain(right, second, kind))

    def _member(self, item: ast.expr, container: ast.expr) -> Node:
        fail = self.fail(container)
        value = self.value(item)
        if isinstance(value, BareName):
            self._unknown_name(item, value.name)
        if not isinstance(container, ast.Tuple):
            group = self.value(container)
            if not isinstance(group, Ref) or group.fact.type.kind != "set":
                fail(
                    "after in stands a set fact or a tuple of literals",
                    got=self.source.excerpt(container),
                    hint="a tuple of one is written (x,)",
                )
            return Member(adopt(value, FactType("int", group.fact.type.unit), self.fail(item)), group)
        kind = _type(typed(value) if isinstance(value, Numeral) else value)
        if kind is None or kind.kind not in ("int", "counter", "enum"):
            self.fail(item)(
                "this cannot be looked up in a tuple", got=_describe(value), expected="an integer or enum"
            )
        if not container.elts:
            fail("the tuple is empty", expected="one literal or more")
        members = tuple(self._literal(element, kind) for element in container.elts)
        return Member(typed(value) if isinstance(value, Numeral) else value, members)

    def _literal(self, part: ast.expr, kind: FactType) -> Literal:
        node = self._explain(part, self.value(part), kind)
        if not isinstance(node, Literal):
            self.fail(part)(
                "a tuple holds literals only", got=self.source.excerpt(part), hint="join comparisons with or"
            )
        return node

    def _known(self, call: ast.expr, argument: ast.expr, positive: bool) -> Node:
        ref = self.value(argument)
        if isinstance(ref, BareName):
            self._unknown_name(argument, ref.name)
        if not isinstance(ref, Ref):
            self.fail(argument)(
                "known takes one fact", got=self.source.excerpt(argument), expected="the name of a fact"
            )
        refused = self.allow_known == "never" or (self.allow_known == "positive" and not positive)
        if refused and ref.path not in self.scope.constants:
            self.fail(call)(
                "known cannot stand here" if self.allow_known == "never" else "known stands under a negation",
                got=self.source.excerpt(call),
                expected="known in positive position",
                hint="what is accepted while a fact is unknown must not depend on its being unknown",
            )
        return Known(ref)

    def _name(self, part: ast.Name | ast.Attribute) -> Part:
        path = self.source.excerpt(part)
        if path in self.scope.facts:
            return Ref(path, self.scope.facts[path])
        macro = self.scope.macros.get(path)
        if macro is not None:
            numeral = (
                isinstance(macro, Literal)
                and macro.type.kind in ("int", "real")
                and not macro.type.unit.exponents
            )
            return (
                Numeral(macro.value)
                if numeral and isinstance(macro, Literal) and not isinstance(macro.value, str)
                else macro
            )
        if isinstance(part, ast.Name):
            if path in ("true", "false"):
                return Literal(path == "true", BOOL)
            return BareName(path)
        self._unknown_name(part, path)

    def _explain(self, part: ast.expr, value: Part, kind: FactType) -> Node:
        if kind.kind == "enum" and isinstance(part, ast.Name):
            name = part.id if part.id in kind.members else self.scope.aliases.get(part.id)
            if name in kind.members:
                return Literal(name, kind)
            if isinstance(value, BareName):
                self.fail(part)(
                    f"{kind.enum} has no member of this name",
                    got=value.name,
                    expected=", ".join(kind.members),
                )
        if isinstance(value, BareName):
            self._unknown_name(part, value.name)
        return adopt(value, kind, self.fail(part))

    def _unknown_name(self, part: ast.expr, name: str) -> NoReturn:
        close = self.scope.closest(name)
        self.fail(part)(
            "this name is not known here",
            got=name,
            expected="a fact, a need or a constant of this rule",
            hint=f"did you mean {close}?" if close else None,
        )


def _type(value: Part) -> FactType | None:
    return None if isinstance(value, Numeral | BareName) else type_of(value)


def _describe(value: Part) -> str:
    match value:
        case Numeral(value=number):
            return f"the number {number}"
        case BareName(name=name):
            return name
        case _:
            return f"a value of type {type_of(value)}"
