"""The way from the text of an expression to a typed tree."""

from __future__ import annotations

from hitproof.spec.condition.arithmetic import BareName, typed
from hitproof.spec.condition.check import AllowKnown, Checker
from hitproof.spec.condition.lexical import read_source
from hitproof.spec.condition.nodes import Node
from hitproof.spec.condition.scope import Scope
from hitproof.spec.condition.traverse import depth, reads, walk
from hitproof.spec.errors import ConditionError, Position
from hitproof.spec.facts import COST, FactType

__all__ = ["parse_condition"]

MAX_INLINED_NODES = 4_000
MAX_INLINED_DEPTH = 80


def parse_condition(
    text: str,
    scope: Scope,
    *,
    expect: str | FactType = "bool",
    where: Position | None = None,
    rule: str | None = None,
    allow_known: AllowKnown = "positive",
) -> Node:
    """Parse and type-check an expression of the rule language.

    Args:
        text: The expression, at most 2,000 characters, 400 parts and 40 levels.
        scope: The names it may read.
        expect: `bool` (a condition), `applies` (a condition on constants only), `number` (any unit), `cost`
            (microseconds; may multiply a quantity by a rate), `any`, or the exact type of a fact to set.
        where: Position of the first character; `<memory>:1:1` where none is given.
        rule: Id of the rule, for errors.
        allow_known: Where `known(x)` may stand; `known` of a constant is always allowed.

    Returns:
        The typed tree: chains, `implies` and `not in` desugared, macros put in place.

    Raises:
        ConditionError: Not in the language, or of the wrong type; UnitError where units differ.
    """
    source = read_source(text, where or Position(line=1, column=1), rule)
    checker = Checker(source, scope, allow_known, cost=expect == "cost")
    fail = checker.fail(source.tree)
    match expect:
        case "bool" | "applies":
            node = checker.condition(source.tree)
        case "number":
            node = typed(checker.number(source.tree))
        case "cost":
            node = checker.of_type(source.tree, COST)
        case "any":
            part = checker.value(source.tree)
            if isinstance(part, BareName):
                fail(
                    "this name is not known here",
                    got=part.name,
                    expected="a fact, a need or a constant of this rule",
                )
            node = typed(part)
        case FactType():
            node = checker.of_type(source.tree, expect)
        case _:
            raise ValueError(f"expect must be bool, applies, number, cost, any or a fact type, not {expect!r}")
    varying = sorted(reads(node) - scope.constants) if expect == "applies" else []
    if varying:
        fail(
            "this may read constants of the profile only",
            got=varying[0],
            expected="constants, such as group.window",
        )
    _check_inlined(node, source.at(source.tree), rule)
    return node


def _check_inlined(node: Node, where: Position, rule: str | None) -> None:
    size = sum(1 for _ in walk(node))
    if size > MAX_INLINED_NODES or depth(node) > MAX_INLINED_DEPTH:
        raise ConditionError(
            "the expression is too large once its needs are put in place",
            where=where,
            rule=rule,
            got=f"{size} parts",
            expected=f"at most {MAX_INLINED_NODES} parts and {MAX_INLINED_DEPTH} levels",
        )
