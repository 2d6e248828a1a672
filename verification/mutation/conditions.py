"""Edits of one condition: each of its terms dropped, and each of its atoms turned into its opposite."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["TermEdit", "term_edits"]

_OPPOSITE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Lt: ast.GtE(),
    ast.LtE: ast.Gt(),
    ast.Gt: ast.LtE(),
    ast.GtE: ast.Lt(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}


@dataclass(frozen=True)
class TermEdit:
    """One edit of a condition.

    Args:
        what: `drop` or `flip`.
        text: The condition afterwards; None where nothing is left of it.
        change: The edit in words.
    """

    what: str
    text: str | None
    change: str


def term_edits(condition: object) -> Iterator[TermEdit]:
    """Every edit of a condition: terms of `and` and `or` at any depth dropped, atoms turned into their opposite.

    A condition that is one atom is dropped as a whole. One that is no text is a constant, with nothing to drop.
    """
    if not isinstance(condition, str):
        return
    tree = ast.parse(condition, mode="eval").body
    if not isinstance(tree, ast.BoolOp):
        yield TermEdit("drop", None, f"drops `{condition}`")
    yield from _edits(tree, lambda node: node)


def _edits(node: ast.expr, put: Callable[[ast.expr], ast.expr]) -> Iterator[TermEdit]:
    """Edits inside of a node; `put` gives the whole condition with another node in its place."""
    if isinstance(node, ast.BoolOp):
        for index, term in enumerate(node.values):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield TermEdit("drop", ast.unparse(put(left)), f"drops `{ast.unparse(term)}`")
            yield from _edits(term, _place(put, node, index))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.BoolOp):
        yield from _edits(node.operand, lambda inner: put(ast.UnaryOp(ast.Not(), inner)))
    else:
        turned = ast.unparse(_opposite(node))
        whole = ast.unparse(put(_opposite(node)))
        yield TermEdit("flip", whole, f"turns `{ast.unparse(node)}` into `{turned}`")


def _place(put: Callable[[ast.expr], ast.expr], node: ast.BoolOp, index: int) -> Callable[[ast.expr], ast.expr]:
    def placed(inner: ast.expr) -> ast.expr:
        return put(ast.BoolOp(node.op, [*node.values[:index], inner, *node.values[index + 1 :]]))

    return placed


def _opposite(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [_OPPOSITE[type(node.ops[0])]], node.comparators)
    return ast.UnaryOp(ast.Not(), node)
