"""Operands of conditions: numbers, facts, enum members, and what a name means."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
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
    extreme,
    negate,
)
from hitproof.spec.condition.lexical import Source
from hitproof.spec.condition.nodes import Literal, Node, Ref, type_of
from hitproof.spec.condition.scope import Scope
from hitproof.spec.condition.traverse import reads
from hitproof.spec.errors import ConditionError
from hitproof.spec.facts import BOOL, FactType

__all__ = ["OperandChecker", "describe", "kind_of"]

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_FUNCTIONS = ("abs", "implies", "known", "max", "min")


class OperandChecker(ABC):
    """The half of the type checker that reads operands; every method takes a part of the syntax tree."""

    def __init__(self, source: Source, scope: Scope, *, cost: bool) -> None:
        self.source, self.scope = source, scope
        self.rules = Rules(constant=lambda node: reads(node) <= scope.constants, cost=cost)

    @abstractmethod
    def condition(self, part: ast.expr, positive: bool = True) -> Node:
        """The part as a condition; `positive` is false under an odd number of negations."""

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
                    "implies takes a condition and its consequence" if name == "implies" else "known takes one fact",
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
            self.unknown_name(part, value.name)
        if not isinstance(value, Numeral) and not type_of(value).is_number:
            self.fail(part)("a number is expected here", got=describe(value), expected="a number")
        return value

    def of_type(self, part: ast.expr, kind: FactType) -> Node:
        """The part as an expression of exactly this type."""
        if kind == BOOL:
            return self.condition(part)
        return self.explain(part, self.value(part), kind)

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

    def literal(self, part: ast.expr, kind: FactType) -> Literal:
        """The part as a literal of this type."""
        node = self.explain(part, self.value(part), kind)
        if not isinstance(node, Literal):
            self.fail(part)(
                "a tuple holds literals only", got=self.source.excerpt(part), hint="join comparisons with or"
            )
        return node

    def explain(self, part: ast.expr, value: Part, kind: FactType) -> Node:
        """The part as a node of this type; a bare name may be a member of an enum."""
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
            self.unknown_name(part, value.name)
        return adopt(value, kind, self.fail(part))

    def unknown_name(self, part: ast.expr, name: str) -> NoReturn:
        """Raise the error of a name that means nothing here."""
        close = self.scope.closest(name)
        self.fail(part)(
            "this name is not known here",
            got=name,
            expected="a fact, a need or a constant of this rule",
            hint=f"did you mean {close}?" if close else None,
        )

    def _name(self, part: ast.Name | ast.Attribute) -> Part:
        path = self.source.excerpt(part)
        if path in self.scope.facts:
            return Ref(path, self.scope.facts[path])
        macro = self.scope.macros.get(path)
        if macro is not None:
            numeral = (
                isinstance(macro, Literal) and macro.type.kind in ("int", "real") and not macro.type.unit.exponents
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
        self.unknown_name(part, path)


def kind_of(value: Part) -> FactType | None:
    """The type of an operand, None where its neighbour decides."""
    return None if isinstance(value, Numeral | BareName) else type_of(value)


def describe(value: Part) -> str:
    """An operand in words, for messages."""
    match value:
        case Numeral(value=number):
            return f"the number {number}"
        case BareName(name=name):
            return name
        case _:
            return f"a value of type {type_of(value)}"
