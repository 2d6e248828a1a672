"""Every target gives the answers of the golden table."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.spec.condition import Node, bind, bind_constant, parse_condition, text
from hitproof.spec.errors import BindError
from tests.agreement.four_targets import answers
from tests.agreement.golden_conditions import APPLIES, CONDITIONS, NUMBERS, UNBINDABLE
from tests.strategies import CONSTANTS, SCOPE


def parsed(expression: str) -> Node:
    """The expression as a condition, a number or a cost, whichever it is."""
    expect = "cost" if "runtime.rate" in expression else "any"
    return parse_condition(expression, SCOPE, expect=expect, allow_known="any")


def test_table_is_large_and_has_no_case_twice() -> None:
    """At least 150 conditions, each worked out once."""
    keys = [(expression, repr(facts)) for expression, facts, _ in [*CONDITIONS, *NUMBERS]]
    assert len(keys) == len(set(keys))
    assert len(CONDITIONS) >= 150


@pytest.mark.parametrize(("expression", "facts", "expected"), [*CONDITIONS, *NUMBERS])
def test_every_target_gives_the_answer_worked_out_by_hand(
    expression: str, facts: dict[str, object], expected: Any
) -> None:
    """Interpreter, generated Python (trusted or not), columns and Z3 match the table in value and in kind."""
    found = answers(bind(parsed(expression), CONSTANTS), facts)
    assert dict.fromkeys(found, expected) == found
    assert {type(expected)} == {type(value) for value in found.values()}


@pytest.mark.parametrize(("expression", "facts", "expected"), [*CONDITIONS, *NUMBERS])
def test_text_of_a_tree_parses_to_the_same_tree(expression: str, facts: dict[str, object], expected: Any) -> None:
    """Writing and reading an expression changes nothing."""
    node = parsed(expression)
    assert node == parsed(text(node))


@pytest.mark.parametrize(("expression", "constants", "expected"), APPLIES)
def test_what_is_absent_takes_no_part(expression: str, constants: dict[str, object], expected: bool) -> None:
    """`applies` decides on constants alone; a comparison with a missing one is false."""
    node = parse_condition(expression, SCOPE, expect="applies")
    assert expected is bind_constant(node, constants)


@pytest.mark.parametrize(("expression", "constants", "part"), UNBINDABLE)
def test_what_cannot_be_bound_is_refused(expression: str, constants: dict[str, object], part: str) -> None:
    """A missing or wrong constant, a divisor that is not positive and too wide a range are errors."""
    with pytest.raises(BindError, match=part) as caught:
        bind(parse_condition(expression, SCOPE), constants, rule="tail/covers")
    assert "tail/covers" == caught.value.rule
