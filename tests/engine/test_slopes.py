"""Slopes told from shapes agree with values, and are denied where in doubt."""

from __future__ import annotations

import pytest

from hitproof.engine.slopes import never_falls, never_rises
from hitproof.spec.condition import Scope, interpret, parse_condition
from hitproof.spec.facts import Fact, declare_fact

FACTS: dict[str, Fact] = {
    path: declare_fact(path, text, {})
    for path, text in {
        "length": "tokens",
        "request.length": "tokens",
        "runtime.rate": "us/tokens",
        "runtime.base": "us",
    }.items()
}
SCOPE = Scope(FACTS)


@pytest.mark.parametrize(
    ("text", "rises", "falls"),
    [
        ("(request.length - length) * runtime.rate", False, True),
        ("runtime.rate * (request.length - length) + runtime.base", False, True),
        ("length * runtime.rate", True, False),
        ("runtime.base - length * runtime.rate", False, True),
        ("max(runtime.base, length * runtime.rate)", True, False),
        ("min(runtime.base, (request.length - length) * runtime.rate)", False, True),
        ("runtime.base", True, True),
        ("-(length * runtime.rate)", False, True),
    ],
)
def test_slopes_are_those_of_the_values(text: str, rises: bool, falls: bool) -> None:
    """What is said to never rise does not, over a sweep of lengths; likewise for falling."""
    node = parse_condition(text, SCOPE, expect="cost")
    assert (rises, falls) == (never_falls(node, "length"), never_rises(node, "length"))
    values = [
        interpret(node, {"length": n, "request.length": 50, "runtime.rate": 2.0, "runtime.base": 30.0})
        for n in range(40)
    ]
    if rises:
        assert values == sorted(values)
    if falls:
        assert values == sorted(values, reverse=True)


def test_a_remainder_is_never_trusted() -> None:
    """Modulo goes up and down; nothing is claimed of it."""
    node = parse_condition("(length % 7) * runtime.rate", SCOPE, expect="cost")
    assert not never_falls(node, "length")
    assert not never_rises(node, "length")
