"""Walks over trees: what is read, what replaces it, what must hold together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.spec.condition import (
    Known,
    Literal,
    Node,
    Ref,
    bind,
    conjuncts,
    interpret,
    parse_condition,
    reads,
    refs,
    substitute,
    text,
    walk,
)
from hitproof.spec.errors import ConditionError
from hitproof.spec.facts import BOOL
from tests.strategies import CONSTANTS, FACTS, SCOPE, conditions, states


def parse(expression: str, expect: str = "any") -> Node:
    """Parse in the shared scope; `known` stands anywhere."""
    return parse_condition(expression, SCOPE, expect=expect, allow_known="any")


def test_every_reading_counts() -> None:
    """The argument of `known` and the set after `in` are read too."""
    node = parse("known(self.start) and length in self.marks and length % group.ratio == 0")
    assert {"self.start", "length", "self.marks", "group.ratio"} == reads(node)
    assert ["self.start", "length", "self.marks", "group.ratio"] == [ref.path for ref in refs(node)]


def test_walk_is_top_down_and_left_to_right() -> None:
    """The first node is the tree itself."""
    node = parse("self.start + 1 < length")
    assert ["self.start + 1 < length", "self.start + 1", "self.start", "1", "length"] == list(map(text, walk(node)))


def test_conjuncts_are_the_terms_that_must_hold() -> None:
    """A condition without `and` is its own only term."""
    assert ["kv.ready", "self.pinned"] == list(map(text, conjuncts(parse("kv.ready and self.pinned"))))
    assert ["kv.ready or self.pinned"] == list(map(text, conjuncts(parse("kv.ready or self.pinned"))))


def test_substitution_is_simultaneous() -> None:
    """Exchanged facts do not catch each other."""
    node = parse("self.start < self.end")
    swapped = {
        "self.start": Ref("self.end", FACTS["self.end"]),
        "self.end": Ref("self.start", FACTS["self.start"]),
    }
    assert "self.end < self.start" == text(substitute(node, swapped))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("length", "known(length)"),
        ("length + self.end", "known(length) and known(self.end)"),
        ("7", "True"),
        ("length < 5", "known(length)"),
        ("kv.ready or self.pinned", "kv.ready or self.pinned or not (kv.ready or self.pinned)"),
    ],
)
def test_known_of_a_replaced_fact_asks_for_all_that_it_reads(expression: str, expected: str) -> None:
    """A number is known exactly when all its facts are."""
    node = Known(Ref("self.start", FACTS["self.start"]))
    assert expected == text(substitute(node, {"self.start": parse(expression)}))


def test_sets_are_replaced_by_sets_only() -> None:
    """Anything else has no members."""
    with pytest.raises(ConditionError):
        substitute(parse("length in self.marks"), {"self.marks": Literal(True, BOOL)})


@settings(max_examples=300)
@given(conditions(), states(), st.sampled_from(["length", "self.end + 1", "max(length, self.end) - 1", "5"]))
def test_substituting_is_evaluating_first(expression: str, state: dict[str, object], value: str) -> None:
    """Putting an expression in place equals giving its value, where that is inside the fact's domain."""
    new = parse(value, "number")
    amount = interpret(new, state)
    if amount is not None and not 0 <= amount <= 1_000_000:
        return
    node = bind(parse(expression), CONSTANTS)
    assert interpret(node, state | {"self.start": amount}) is interpret(substitute(node, {"self.start": new}), state)
