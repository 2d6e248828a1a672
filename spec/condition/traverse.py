"""Walks over condition trees: facts read, children, substitution, conjuncts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

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
from hitproof.spec.errors import ConditionError

__all__ = ["children", "conjuncts", "depth", "reads", "refs", "substitute", "walk"]


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node, left to right."""
    match node:
        case Negate(x=x) | Not(x=x):
            return (x,)
        case Arith(left=left, right=right) | Compare(left=left, right=right):
            return (left, right)
        case Extreme(args=parts) | And(terms=parts) | Or(terms=parts):
            return parts
        case Member(item=item, container=Ref() as container):
            return (item, container)
        case Member(item=item, container=tuple() as literals):
            return (item, *literals)
        case Known(ref=ref):
            return (ref,)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, top down, left to right."""
    pending = [node]
    while pending:
        top = pending.pop()
        yield top
        pending.extend(reversed(children(top)))


def depth(node: Node) -> int:
    """The number of levels of the tree."""
    level: list[Node] = [node]
    count = 0
    while level:
        count += 1
        level = list(chain.from_iterable(map(children, level)))
    return count


def refs(node: Node) -> tuple[Ref, ...]:
    """The facts read, each once, in order of first reading; the argument of `known` counts too."""
    return tuple({part.path: part for part in walk(node) if isinstance(part, Ref)}.values())


def reads(node: Node) -> frozenset[str]:
    """The paths of all facts read."""
    return frozenset(part.path for part in walk(node) if isinstance(part, Ref))


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The terms that must all hold: those of a conjunction, else the node alone."""
    return node.terms if isinstance(node, And) else (node,)


def substitute(node: Node, mapping: Mapping[str, Node]) -> Node:
    """The node with each fact in `mapping` replaced by an expression, all at once.

    `known(x)` becomes "every fact that the new expression reads is known". Where the new expression is a
    composed condition, it becomes `x or not x`: true exactly where that is known, else unknown.

    Raises:
        ConditionError: A set fact is replaced by something that is not a set fact.
    """

    def visit(part: Node) -> Node:
        match part:
            case Ref(path=path):
                return mapping.get(path, part)
            case Known(ref=ref):
                return _known(mapping[ref.path]) if ref.path in mapping else part
            case Literal():
                return part
            case Negate(x=x):
                return Negate(visit(x))
            case Not(x=x):
                return Not(visit(x))
            case Arith(op=op, left=left, right=right):
                return Arith(op, visit(left), visit(right))
            case Compare(op=op, left=left, right=right):
                return Compare(op, visit(left), visit(right))
            case Extreme(op=op, args=args):
                return Extreme(op, tuple(map(visit, args)))
            case And(terms=terms):
                return conjunction(map(visit, terms))
            case Or(terms=terms):
                return disjunction(map(visit, terms))
            case Member(item=item, container=Ref() as container):
                target = visit(container)
                if not isinstance(target, Ref):
                    raise ConditionError("a set fact can only be replaced by a set fact", got=container.path)
                return Member(visit(item), target)
            case Member(item=item, container=container):
                return Member(visit(item), container)

    return visit(node)


def _known(node: Node) -> Node:
    if isinstance(node, Ref):
        return Known(node)
    if isinstance(node, And | Or | Not) and type_of(node).kind == "bool":
        return disjunction((node, Not(node)))
    return conjunction(Known(ref) for ref in refs(node))
