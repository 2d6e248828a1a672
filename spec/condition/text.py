"""From a tree back to the text of the language."""

from __future__ import annotations

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
)

__all__ = ["text"]

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _MINUS, _ATOM = range(8)


def text(node: Node) -> str:
    """The expression as text; parsing it in the same scope gives an equal tree.

    A bound tree prints its constants as bare numbers, which take their neighbour's unit when read again.
    """
    return _write(node)[0]


def _write(node: Node) -> tuple[str, int]:
    match node:
        case Ref(path=path):
            return path, _ATOM
        case Literal(value=value):
            return str(value), _ATOM if not str(value).startswith("-") else _MINUS
        case Known(ref=ref):
            return f"known({ref.path})", _ATOM
        case Extreme(op=op, args=args):
            return f"{op}({', '.join(map(text, args))})", _ATOM
        case Negate(x=x):
            return f"-{_inside(x, _ATOM)}", _MINUS
        case Arith(op=op, left=left, right=right):
            level = _SUM if op in ("+", "-") else _PRODUCT
            return f"{_inside(left, level)} {op} {_inside(right, level + 1)}", level
        case Compare(op=op, left=left, right=right):
            return f"{_inside(left, _SUM)} {op} {_inside(right, _SUM)}", _COMPARE
        case Not(x=Member() as member):
            return _member(member, "not in"), _COMPARE
        case Member():
            return _member(node, "in"), _COMPARE
        case Not(x=x):
            return f"not {_inside(x, _NOT)}", _NOT
        case And(terms=terms):
            return " and ".join(_inside(term, _NOT) for term in terms), _AND
        case Or(terms=terms):
            return " or ".join(_inside(term, _AND) for term in terms), _OR


def _inside(node: Node, level: int) -> str:
    written, own = _write(node)
    return written if own >= level else f"({written})"


def _member(node: Member, word: str) -> str:
    if isinstance(node.container, Ref):
        group = node.container.path
    else:
        group = "(" + ", ".join(text(one) for one in node.container) + (",)" if len(node.container) == 1 else ")")
    return f"{_inside(node.item, _SUM)} {word} {group}"
