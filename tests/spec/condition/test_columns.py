"""Columns: dtypes, broadcasting and overflow, where NumPy would be silently wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hitproof.spec.condition import (
    Column,
    Node,
    bind,
    column_of,
    columns,
    number_columns,
    parse_condition,
)
from hitproof.spec.errors import BindError
from tests.strategies import CONSTANTS, FACTS, SCOPE


def bound(expression: str, expect: str = "bool") -> Node:
    """Parse and bind in the shared scope."""
    return bind(parse_condition(expression, SCOPE, expect=expect, allow_known="any"), CONSTANTS)


def raw(values: list[Any], dtype: Any) -> Column:
    """A column with every value marked as known."""
    return Column(np.array(values, dtype=dtype), np.ones(len(values), dtype=bool))


def verdicts(node: Node, given: dict[str, Column], n: int) -> list[bool | None]:
    """Both masks as one list."""
    true, false = columns(node)(given, n)
    assert (true.dtype, true.shape, false.shape) == (np.dtype(bool), (n,), (n,))
    assert not (true & false).any()
    return [True if t else False if f else None for t, f in zip(true, false, strict=True)]


def test_a_column_of_one_is_shared_by_all_candidates() -> None:
    """Facts of one segment meet a column of lengths."""
    given = {"self.end": raw([9], np.int64), "length": raw([8, 9, 10], np.int64)}
    assert [True, True, False] == verdicts(bound("length <= self.end"), given, 3)


def test_one_set_serves_many_lengths_and_many_sets_serve_one_length() -> None:
    """Membership broadcasts both ways."""
    marks = [frozenset({1, 2}), None, frozenset()]
    many = {"self.marks": column_of(FACTS["self.marks"], marks), "length": raw([1], np.int64)}
    assert [True, None, False] == verdicts(bound("length in self.marks"), many, 3)
    one = {"self.marks": column_of(FACTS["self.marks"], marks[:1]), "length": raw([1, 5, 2], np.int64)}
    assert [True, False, True] == verdicts(bound("length in self.marks"), one, 3)


def test_a_set_with_a_member_beyond_64_bits_is_no_trouble() -> None:
    """No length can equal it."""
    marks = column_of(FACTS["self.marks"], [frozenset({2**70, 4})])
    given = {"self.marks": marks, "length": raw([4, 5], np.int64)}
    assert [True, False] == verdicts(bound("length in self.marks"), given, 2)


def test_unsigned_addresses_beyond_the_domain_are_unknown_not_negative() -> None:
    """2**63 in uint64 would become a negative int64."""
    given = {"self.address": raw([2**63 + 512, 512, 2**61], np.uint64)}
    assert [None, True, True] == verdicts(bound("self.address % 512 == 0"), given, 3)
    assert [None, True, True] == verdicts(bound("self.address > 0"), given, 3)


def test_unknown_lanes_cannot_overflow() -> None:
    """Whatever stands under an unknown value takes no part in the arithmetic."""
    given = {"self.bytes": raw([2**63 - 1, 5], np.int64), "length": raw([7, 7], np.int64)}
    with np.errstate(over="raise"):
        assert [None, True] == verdicts(bound("self.bytes * 3 + 1 > 0"), given, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.int64])
def test_narrow_integers_are_widened_before_arithmetic(dtype: Any) -> None:
    """100 x 3 fits no int8."""
    column = number_columns(bound("length * 3", "number"))({"length": raw([100], dtype)}, 2)
    assert [300, 300] == column.values.tolist()
    assert column.values.dtype == np.int64 and column.known.all()


@pytest.mark.parametrize(
    ("expression", "path", "values", "dtype"),
    [
        ("length == 1", "length", [1.0], np.float64),
        ("length == 1", "length", [True], np.bool_),
        ("self.pinned", "self.pinned", [1], np.int64),
        ("self.form == full", "self.form", ["full"], object),
        ("known(self.marks)", "self.marks", [1], np.int64),
    ],
)
def test_a_wrong_dtype_is_unknown(expression: str, path: str, values: list[Any], dtype: Any) -> None:
    """As a wrong Python type is."""
    expected = False if expression.startswith("known") else None
    assert [expected] == verdicts(bound(expression), {path: raw(values, dtype)}, 1)


def test_enums_are_indices_of_their_members() -> None:
    """An index without a member is unknown."""
    given = {"self.form": raw([0, 1, 3, -1], np.int8)}
    assert [True, False, None, None] == verdicts(bound("self.form == full"), given, 4)


def test_reals_without_a_number_are_unknown() -> None:
    """NaN and infinity are outside of every domain; integers are welcome."""
    given = {"runtime.wait": raw([0.5, np.nan, np.inf], np.float64)}
    assert [True, None, None] == verdicts(bound("runtime.wait < 1"), given, 3)
    assert [False] == verdicts(bound("runtime.wait < 1"), {"runtime.wait": raw([1], np.int64)}, 1)


def test_a_missing_column_and_no_candidates() -> None:
    """Both are answered: unknown, and nothing."""
    assert [None, None] == verdicts(bound("length == 1"), {}, 2)
    assert [] == verdicts(bound("length == 1"), {}, 0)
    assert [True, True] == verdicts(bound("True"), {}, 2)


def test_what_is_not_bound_is_refused() -> None:
    """A divisor that is still a name could be zero."""
    with pytest.raises(BindError, match="divisor"):
        columns(parse_condition("length % group.ratio == 0", SCOPE))
