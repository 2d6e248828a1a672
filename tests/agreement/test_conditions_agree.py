"""Every target of the condition language gives the same answer on random conditions and states."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitproof.spec.condition import bind, parse_condition, text
from tests.agreement.four_targets import answers
from tests.strategies import CONSTANTS, SCOPE, conditions, costs, numbers, states

RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=2_000, suppress_health_check=RELAXED)
@given(conditions(), states())
def test_all_targets_agree_on_conditions(expression: str, state: dict[str, object]) -> None:
    """Interpreter, both kinds of Python, columns and Z3 say the same: true, false or unknown."""
    node = bind(parse_condition(expression, SCOPE, allow_known="any"), CONSTANTS)
    found = answers(node, state)
    assert len(set(map(repr, found.values()))) == 1, f"{text(node)} -> {found}"


@settings(max_examples=500, suppress_health_check=RELAXED)
@given(st.one_of(numbers("tokens"), numbers("bytes")), states())
def test_all_targets_agree_on_integers(expression: str, state: dict[str, object]) -> None:
    """The same integer, or unknown, everywhere."""
    node = bind(parse_condition(expression, SCOPE, expect="number"), CONSTANTS)
    found = answers(node, state)
    assert len(set(map(repr, found.values()))) == 1, f"{text(node)} -> {found}"


@settings(max_examples=300, suppress_health_check=RELAXED)
@given(costs(), states())
def test_all_targets_agree_on_costs(expression: str, state: dict[str, object]) -> None:
    """The same cost, or unknown, everywhere: binary fractions of this size are exact in floats."""
    node = bind(parse_condition(expression, SCOPE, expect="cost"), CONSTANTS)
    found = answers(node, state)
    assert len(set(found.values())) == 1, f"{text(node)} -> {found}"
