"""Conditions over columns: one NumPy pass for many candidates, in 64-bit integers and known-masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    type_of,
)
from hitproof.spec.condition.traverse import refs
from hitproof.spec.facts import Fact, admit

__all__ = ["Column", "Mask", "column_of", "columns", "number_columns"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one fact, and where they are known; both broadcast to the number of candidates.

    Integers: any integer dtype. Reals: float64. Booleans: bool. Enums: the index of the member in the fact's
    type. Identities and sets: dtype object; `column_of` makes sure of what is inside.
    """

    values: npt.NDArray[Any]
    known: Mask


_YES: Mask = np.array(True)
_NO: Mask = np.array(False)

_Facts = Mapping[str, Column]
_Number = Callable[[_Facts], Column]
_Rails = Callable[[_Facts], tuple[Mask, Mask]]

_UFUNC = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.remainder,
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def columns(node: Node) -> Callable[[Mapping[str, Column], int], tuple[Mask, Mask]]:
    """Compile a bound condition to a function over columns.

    Returns:
        A function of columns by path and the number n of candidates; it gives two masks of length n, surely
        true and surely false. A missing column, a value outside its domain, or a wrong dtype is unknown.

    Raises:
        BindError: The condition is not bound.
    """
    check_bounds(node)
    rails, facts = _rails(node), refs(node)

    def run(given: Mapping[str, Column], n: int) -> tuple[Mask, Mask]:
        true, false = rails({ref.path: _read(ref.fact, given.get(ref.path)) for ref in facts})
        return _spread(true, n), _spread(false, n)

    return run


def number_columns(node: Node) -> Callable[[Mapping[str, Column], int], Column]:
    """Compile a bound number (or enum, identity or set fact) to a function that gives a column of length n.

    Values count only where they are known.
    """
    check_bounds(node)
    number, facts = _number(node), refs(node)

    def run(given: Mapping[str, Column], n: int) -> Column:
        found = number({ref.path: _read(ref.fact, given.get(ref.path)) for ref in facts})
        return Column(np.broadcast_to(found.values, (n,)).copy(), _spread(found.known, n))

    return run


def column_of(fact: Fact, values: Sequence[object]) -> Column:
    """A column from Python values; None, and all that the fact does not admit, is unknown."""
    admitted = [admit(fact, value) for value in values]
    kind = fact.type.kind
    column = np.empty(len(admitted), dtype=_dtype(kind))
    if kind == "enum":
        column[:] = [0 if value is None else fact.type.members.index(str(value)) for value in admitted]
    else:
        filler = _filler(fact)
        for index, value in enumerate(admitted):
            column[index] = filler if value is None else value
    return Column(column, np.array([value is not None for value in admitted], dtype=bool))


def _dtype(kind: str) -> type[Any]:
    return {"bool": np.bool_, "real": np.float64, "identity": object, "set": object}.get(kind, np.int64)


def _filler(fact: Fact) -> Any:
    return frozenset() if fact.type.kind == "set" else fact.lo or 0


def _spread(mask: Mask, n: int) -> Mask:
    return np.array(np.broadcast_to(mask, (n,)), dtype=bool)


def _read(fact: Fact, column: Column | None) -> Column:
    """The column with unknown values replaced by one inside the domain, so that nothing can overflow."""
    kind = fact.type.kind
    values = None if column is None else np.asarray(column.values)
    wanted = {"bool": "b", "real": "fiu", "identity": "Oiu", "set": "O"}.get(kind, "iu")
    if column is None or values is None or values.dtype.kind not in wanted:
        filler = np.empty((), dtype=_dtype(kind))
        filler[()] = _filler(fact)
        return Column(filler, _NO)
    known = np.asarray(column.known)
    if kind in ("bool", "identity", "set"):
        return Column(values if kind == "bool" else values.astype(object), known)
    lo, hi = (0, len(fact.type.members) - 1) if kind == "enum" else (fact.lo or 0, fact.hi or 0)
    known = known & np.greater_equal(values, lo) & np.less_equal(values, hi)
    exact = _dtype(kind)
    return Column(np.where(known, values.astype(exact), exact(lo)), known)


def _rails(node: Node) -> _Rails:
    match node:
        case Literal(value=value):
            truth = _YES if value else _NO
            return lambda facts: (truth, np.logical_not(truth))
        case Known(ref=ref):
            return lambda facts: (facts[ref.path].known, np.logical_not(facts[ref.path].known))
        case Ref(path=path):
            return lambda facts: _split(facts[path].known, facts[path].values)
        case Not(x=x):
            inner = _rails(x)
            return lambda facts: inner(facts)[::-1]
        case And(terms=terms):
            return _junction(list(map(_rails, terms)), np.logical_and, np.logical_or)
        case Or(terms=terms):
            return _junction(list(map(_rails, terms)), np.logical_or, np.logical_and)
        case Compare(op=op, left=left, right=right):
            return _comparison(_UFUNC[op], _number(left), _number(right), type_of(left).kind == "identity")
        case Member(item=item, container=Ref(path=path)):
            return _in_set(_number(item), path)
        case Member(item=item, container=tuple() as literals):
            return _in_tuple(_number(item), np.array([_plain(one) for one in literals], dtype=np.int64))
        case _:
            raise TypeError(f"not a condition: {node!r}")


def _split(known: Mask, holds: Any) -> tuple[Mask, Mask]:
    return np.logical_and(known, holds), np.logical_and(known, np.logical_not(holds))


def _junction(parts: list[_Rails], true: np.ufunc, false: np.ufunc) -> _Rails:
    def run(facts: _Facts) -> tuple[Mask, Mask]:
        surely, surely_not = parts[0](facts)
        for part in parts[1:]:
            more, more_not = part(facts)
            surely, surely_not = true(surely, more), false(surely_not, more_not)
        return surely, surely_not

    return run


def _comparison(ufunc: np.ufunc, left: _Number, right: _Number, opaque: bool) -> _Rails:
    def run(facts: _Facts) -> tuple[Mask, Mask]:
        first, second = left(facts), right(facts)
        holds = ufunc(first.values, second.values)
        return _split(np.logical_and(first.known, second.known), holds.astype(bool) if opaque else holds)

    return run


def _in_set(item: _Number, path: str) -> _Rails:
    def run(facts: _Facts) -> tuple[Mask, Mask]:
        value, group = item(facts), facts[path]
        if group.values.size == 1:
            members = np.fromiter((m for m in group.values.flat[0] if -(2**63) <= m < 2**63), dtype=np.int64)
            holds: Any = np.isin(value.values, members)
        else:
            spread, sets = np.broadcast_arrays(value.values, group.values)
            holds = np.array([int(one) in members for one, members in zip(spread, sets, strict=True)], dtype=bool)
        return _split(np.logical_and(value.known, group.known), holds)

    return run


def _in_tuple(item: _Number, literals: npt.NDArray[np.int64]) -> _Rails:
    def run(facts: _Facts) -> tuple[Mask, Mask]:
        value = item(facts)
        return _split(value.known, np.isin(value.values, literals))

    return run


def _plain(literal: Literal) -> Any:
    return literal.type.members.index(str(literal.value)) if literal.type.kind == "enum" else literal.value


def _number(node: Node) -> _Number:
    match node:
        case Literal():
            constant = Column(np.asarray(_plain(node), dtype=_dtype(node.type.kind)), _YES)
            return lambda facts: constant
        case Ref(path=path):
            return lambda facts: facts[path]
        case Negate(x=x):
            return _apply(np.negative, [_number(x)])
        case Arith(op=op, left=left, right=right):
            return _apply(_UFUNC[op], [_number(left), _number(right)])
        case Extreme(op="abs", args=args):
            return _apply(np.absolute, list(map(_number, args)))
        case Extreme(op=op, args=args):
            return _apply(_UFUNC[op], list(map(_number, args)))
        case _:
            raise TypeError(f"not a value: {node!r}")


def _apply(ufunc: np.ufunc, parts: list[_Number]) -> _Number:
    def run(facts: _Facts) -> Column:
        columns = [part(facts) for part in parts]
        if len(columns) == 1:
            return Column(ufunc(columns[0].values), columns[0].known)
        found = columns[0]
        for other in columns[1:]:
            found = Column(ufunc(found.values, other.values), np.logical_and(found.known, other.known))
        return found

    return run
