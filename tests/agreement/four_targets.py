"""One expression and one state, evaluated by every target of the condition language."""

from __future__ import annotations

from typing import Any

import numpy as np
import z3

from hitproof.spec.condition import (
    Column,
    Node,
    column_of,
    columns,
    compile_python,
    interpret,
    number_columns,
    refs,
    type_of,
)
from hitproof.spec.facts import Fact, admit
from hitproof.verification.encode import EnumSorts, Z3Facts, encode, encode_number
from tests.strategies import FACTS, VALID, admitted

CONTEXT = z3.Context()
ENUM_SORTS = EnumSorts(CONTEXT)


def answers(node: Node, state: dict[str, object]) -> dict[str, Any]:
    """The answer of each target by its name: True, False, a number, or None for unknown."""
    return {
        "interpreter": interpret(node, state),
        "python": compile_python(node)(state),
        "trusted python": compile_python(node, trusted=True)(admitted(state)),
        "columns": by_columns(node, state, raw=False),
        "raw columns": by_columns(node, state, raw=True),
        "z3": by_z3(node, state),
    }


def by_columns(node: Node, state: dict[str, object], *, raw: bool) -> Any:
    """The last of three candidates is the state; the others are the valid one and one without any fact."""
    given = {ref.path: _column(ref.fact, ref.path, state, raw) for ref in refs(node) if ref.path in state}
    if type_of(node).kind == "bool":
        true, false = columns(node)(given, 3)
        return True if true[2] else False if false[2] else None
    column = number_columns(node)(given, 3)
    return column.values[2].item() if column.known[2] else None


def _column(fact: Fact, path: str, state: dict[str, object], raw: bool) -> Column:
    value = state[path]
    if raw and fact.type.is_number and type(value) is int and -(2**63) <= value < 2**63:
        return Column(np.array([VALID[path], 0, value], dtype=np.int64), np.array([True, False, True]))
    if raw and fact.type.kind == "real" and type(value) is float:
        return Column(np.array([VALID[path], 0, value], dtype=np.float64), np.array([True, False, True]))
    if raw:
        return column_of(fact, [value])
    return column_of(fact, [VALID[path], None, value])


def by_z3(node: Node, state: dict[str, object]) -> Any:
    """The terms with the state's values put in; simplifying them must decide."""
    names = Z3Facts(ENUM_SORTS, FACTS)
    boolean = type_of(node).kind == "bool"
    if boolean:
        dual = encode(node, names)
        terms = [dual.T, dual.F]
    else:
        terms = list(encode_number(node, names))
    pairs = [pair for path in names.paths for pair in _values(names, path, state.get(path))]
    first, second = (z3.simplify(z3.substitute(term, *pairs)) for term in terms)
    if boolean:
        assert z3.is_true(first) or z3.is_false(first), first
        assert z3.is_true(second) or z3.is_false(second), second
        assert not (z3.is_true(first) and z3.is_true(second)), "surely true and surely false at once"
        return True if z3.is_true(first) else False if z3.is_true(second) else None
    assert z3.is_true(second) or z3.is_false(second), second
    if not z3.is_true(second):
        return None
    return first.as_long() if z3.is_int_value(first) else float(first.as_fraction())


def _values(names: Z3Facts, path: str, value: object) -> list[tuple[Any, Any]]:
    fact, flag = FACTS[path], names.flag(path)
    # A number outside its domain is handed over as it is: the encoding itself must find it unknown.
    outside = fact.type.kind in ("int", "counter") and type(value) is int
    if admit(fact, value) is None and not outside:
        return [(flag, z3.BoolVal(False, ctx=CONTEXT))]
    return [(flag, z3.BoolVal(True, ctx=CONTEXT)), (names(path).value, _term(fact, value))]


def _term(fact: Fact, value: Any) -> Any:
    match fact.type.kind:
        case "bool":
            return z3.BoolVal(value, ctx=CONTEXT)
        case "enum":
            return ENUM_SORTS.member(fact.type, value)
        case "real":
            top, bottom = float(value).as_integer_ratio()
            return z3.RealVal(f"{top}/{bottom}", ctx=CONTEXT)
        case "identity":
            return z3.IntVal(value if isinstance(value, int) else -1 - int.from_bytes(value.encode()), ctx=CONTEXT)
        case "set":
            term: Any = z3.K(z3.IntSort(CONTEXT), z3.BoolVal(False, ctx=CONTEXT))
            for item in value:
                term = z3.Store(term, z3.IntVal(item, ctx=CONTEXT), z3.BoolVal(True, ctx=CONTEXT))
            return term
        case _:
            return z3.IntVal(value, ctx=CONTEXT)
