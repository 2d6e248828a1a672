"""Binding puts constants in place, folds what is decided, and keeps every number inside 64 bits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from hitproof.spec.condition import (
    Literal,
    Node,
    bind,
    bind_constant,
    check_bounds,
    interpret,
    interval,
    parse_condition,
    reads,
    text,
)
from hitproof.spec.errors import BindError, Position
from hitproof.spec.facts import BOOL
from tests.strategies import CONSTANTS, SCOPE, conditions, numbers, states


def parse(expression: str, expect: str = "bool") -> Node:
    """Parse in the shared scope; `known` stands anywhere."""
    return parse_condition(expression, SCOPE, expect=expect, allow_known="any")


@pytest.mark.parametrize(
    ("expression", "bound"),
    [
        ("length % group.ratio == 0", "length % 4 == 0"),
        ("length <= group.window * 2 - 1", "length <= 255"),
        ("group.window == 128 and kv.ready", "kv.ready"),
        ("group.window == 127 and kv.ready", "False"),
        ("group.window == 128 or kv.ready", "True"),
        ("implies(group.has_v, kv.ready)", "kv.ready"),
        ("implies(not group.has_v, kv.ready)", "True"),
        ("not group.has_v or not kv.ready", "not kv.ready"),
        ("known(group.window) and kv.ready", "kv.ready"),
        ("min(group.window, group.ratio, 9) <= length", "4 <= length"),
        ("group.ratio in (4, 128) and kv.ready", "kv.ready"),
        ("-group.window // 3 + length > 0", "-43 + length > 0"),
        ("known(length) and length * 0 == 0", "known(length) and length * 0 == 0"),
    ],
)
def test_constants_are_folded(expression: str, bound: str) -> None:
    """What constants decide is gone; what may be unknown is not folded away."""
    assert bound == text(bind(parse(expression), CONSTANTS))


def test_a_quotient_that_is_always_0_is_folded_where_its_fact_is_never_unknown() -> None:
    """Below the divisor for every value of its domain, and known wherever it is read; else it stays."""
    beyond = f"length // {2**41} * 4 <= self.end"
    folded = bind(parse(beyond), CONSTANTS, never_unknown=frozenset({"length"}))
    assert "0 <= self.end" == text(folded)
    assert beyond == text(bind(parse(beyond), CONSTANTS))
    within = "length // 4 * 4 <= self.end"
    assert within == text(bind(parse(within), CONSTANTS, never_unknown=frozenset({"length"})))


@settings(max_examples=300)
@given(conditions(), states())
def test_folding_keeps_the_meaning(expression: str, state: dict[str, object]) -> None:
    """The bound tree answers as the free tree does where the constants are given as facts."""
    node = parse(expression)
    bound = bind(node, CONSTANTS)
    assert interpret(node, state | CONSTANTS) is interpret(bound, state)
    assert not any(path.startswith("group.") for path in reads(bound))


def test_a_missing_constant_is_named() -> None:
    """The error says which fact the profile lacks, for which rule and where."""
    with pytest.raises(BindError) as caught:
        bind(parse("length % group.ratio == 0"), {}, where=Position("r.yaml", 2, 3), rule="tail/a")
    error = caught.value
    assert ("r.yaml:2:3", "tail/a", "group.ratio in tokens") == (str(error.where), error.rule, error.expected)
    assert "group.ratio" in error.message


def test_a_decided_condition_reads_no_further_constant() -> None:
    """`known` of a constant guards what follows it."""
    node = parse("implies(known(group.ratio), length % group.ratio == 0)")
    assert Literal(True, BOOL) == bind(node, {})
    assert "length % 4 == 0" == text(bind(node, {"group.ratio": 4}))


def test_other_scopes_can_be_constant_too() -> None:
    """Any given path is folded; `scopes` says which must be given."""
    node = parse("kv.generation == 3")
    assert Literal(True, BOOL) == bind(node, {"kv.generation": 3})
    with pytest.raises(BindError, match=r"kv\.generation"):
        bind(node, {}, scopes=("group.", "kv."))


def test_identities_and_sets_are_never_constants() -> None:
    """A profile has no value for them."""
    for expression, given_constants in (
        ("self.weights == request.weights", {"self.weights": "w"}),
        ("length in self.marks", {"self.marks": frozenset({1})}),
    ):
        with pytest.raises(BindError, match="cannot be a constant"):
            bind(parse(expression), given_constants)


def test_applies_must_be_decided_by_constants() -> None:
    """What depends on a segment cannot say whether a rule exists."""
    with pytest.raises(BindError, match="constants of the profile only"):
        bind_constant(parse("kv.ready"), CONSTANTS)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("length", (0, 1_000_000)),
        ("-length", (-1_000_000, 0)),
        ("abs(self.shift)", (0, 50)),
        ("abs(self.shift - 100)", (50, 150)),
        ("min(self.shift, 7)", (-50, 7)),
        ("max(self.shift, 7)", (7, 50)),
        ("self.shift * -3", (-150, 150)),
        ("self.shift // 4", (-13, 12)),
        ("self.shift % 4", (0, 3)),
        ("length % 4", (0, 3)),
        ("(length % 4) % 128", (0, 3)),
        ("length - self.shift", (-50, 1_000_050)),
    ],
)
def test_ranges_of_expressions(expression: str, expected: tuple[int, int]) -> None:
    """Both ends are reached or close to it."""
    assert expected == interval(parse(expression, "number"))


@settings(max_examples=300)
@given(numbers("tokens"), states())
def test_values_stay_inside_their_range(expression: str, state: dict[str, object]) -> None:
    """No known value leaves the interval that was worked out."""
    node = bind(parse(expression, "number"), CONSTANTS)
    lo, hi = interval(node)
    value = interpret(node, state)
    assert value is None or lo <= value <= hi


def test_two_to_the_62_is_the_edge() -> None:
    """2 x 2**61 still fits, one more does not."""
    check_bounds(parse("self.address * 2 > 0"))
    for expression in ("self.address * 2 + 1 > 0", "-self.address * 2 - 1 > 0", "self.address * 3 % 2 == 0"):
        with pytest.raises(BindError, match="too large"):
            check_bounds(parse(expression))
