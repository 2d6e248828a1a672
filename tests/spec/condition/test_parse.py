"""Text becomes a typed tree, or an error that says where, what was got and what was expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.spec.condition import (
    And,
    Arith,
    Compare,
    Literal,
    Member,
    Node,
    Not,
    Or,
    Ref,
    Scope,
    parse_condition,
    reads,
    text,
    type_of,
)
from hitproof.spec.errors import ConditionError, Position, UnitError
from hitproof.spec.facts import BOOL, COST, COUNTER, TOKENS
from tests.strategies import FACTS, SCOPE, conditions, costs, numbers

HERE = Position("rules.yaml", 10, 20)


def parse(expression: Any, **options: Any) -> Node:
    """Parse in the shared scope at a known place."""
    return parse_condition(expression, SCOPE, where=HERE, rule="tail/covers", **options)


class TestTrees:
    """What the tree of an expression is."""

    def test_chains_become_conjunctions(self) -> None:
        """Every link is one comparison, so no target sees a chain."""
        start, end, length = (Ref(path, FACTS[path]) for path in ("self.start", "self.end", "length"))
        expected = And((Compare("<=", start, length), Compare("<", length, end)))
        assert expected == parse("self.start <= length < self.end")

    def test_nested_conjunctions_are_flat(self) -> None:
        """Brackets of the same operator leave no trace."""
        node = parse("self.pinned and (kv.ready and self.start <= length <= self.end)")
        assert isinstance(node, And) and len(node.terms) == 4

    def test_implies_is_a_disjunction(self) -> None:
        """`implies(a, b)` is `not a or b`."""
        assert parse("implies(self.pinned, kv.ready)") == parse("not self.pinned or kv.ready")

    def test_not_in_is_a_negated_membership(self) -> None:
        """There is one node for membership."""
        node = parse("length not in self.marks")
        assert isinstance(node, Not) and isinstance(node.x, Member)

    def test_literals_take_the_unit_of_their_neighbour(self) -> None:
        """`0` is tokens beside tokens, and a counter beside a counter."""
        node = parse("self.start == 0")
        assert isinstance(node, Compare) and node.right == Literal(0, TOKENS)
        node = parse("self.generation == 0")
        assert isinstance(node, Compare) and node.right == Literal(0, COUNTER)

    def test_aliases_are_folded_to_members(self) -> None:
        """`home` is written as what it stands for."""
        assert parse("self.form == home") == parse("self.form == windowed")

    def test_macros_are_put_in_place(self) -> None:
        """A need is its tree; it leaves no name behind."""
        first = parse("max(0, length - group.window + 1)", expect="number")
        scope = Scope(SCOPE.facts, {"needs.first": first}, SCOPE.constants)
        node = parse_condition("self.start <= needs.first", scope)
        assert node == parse("self.start <= max(0, length - group.window + 1)")
        assert {"self.start", "length", "group.window"} == reads(node)

    def test_a_dividend_takes_the_unit_of_its_divisor(self) -> None:
        """`4096 // group.ratio` counts ratios; `length // 4` stays tokens."""
        assert "count" == str(type_of(parse("4096 // group.ratio", expect="number")))
        assert TOKENS == type_of(parse("length // 4", expect="number"))

    def test_several_lines_are_one_expression(self) -> None:
        """A block scalar may break where it likes."""
        assert parse("self.start\n  <= length\n") == parse("self.start <= length")
        assert parse("self.start\r\n<= length") == parse("self.start <= length")

    @pytest.mark.parametrize(
        ("expression", "expect", "kind"),
        [
            ("length", TOKENS, TOKENS),
            ("0", TOKENS, TOKENS),
            ("home", FACTS["self.form"].type, FACTS["self.form"].type),
            ("kv.generation", COUNTER, COUNTER),
            ("self.generation + 1", COUNTER, COUNTER),
            ("0", COUNTER, COUNTER),
            ("self.start < 5", BOOL, BOOL),
            ("0", "cost", COST),
            ("self.marks", "any", FACTS["self.marks"].type),
            ("request.weights", FACTS["self.weights"].type, FACTS["self.weights"].type),
        ],
    )
    def test_effects_are_parsed_to_the_type_of_their_fact(self, expression: str, expect: Any, kind: Any) -> None:
        """Any fact type can be asked for."""
        assert kind == type_of(parse(expression, expect=expect))

    @settings(max_examples=300)
    @given(st.one_of(conditions(), numbers("tokens"), numbers("us")))
    def test_text_reads_back_to_the_same_tree(self, expression: str) -> None:
        """Printing and parsing are inverse."""
        node = parse(expression, expect="any", allow_known="any")
        assert node == parse(text(node), expect="any", allow_known="any")

    @given(costs())
    def test_costs_read_back_to_the_same_tree(self, expression: str) -> None:
        """Rates included."""
        node = parse(expression, expect="cost")
        assert node == parse(text(node), expect="cost")


class TestTypes:
    """What does not fit together."""

    @pytest.mark.parametrize(
        "expression",
        [
            "self.start == self.bytes",
            "self.start + self.bytes > 0",
            "length < runtime.wait",
            "length % group.layers == 0",
            "min(length, self.bytes) == 0",
            "length // group.ratio == length",
            "length * 4 // group.ratio in (length,)",
            "self.generation == length",
            "length // group.ratio in self.marks",
        ],
    )
    def test_different_units_never_meet(self, expression: str) -> None:
        """Addition, comparison, extremes, remainders and membership need one unit."""
        with pytest.raises(ConditionError) as caught:
            parse(expression)
        assert caught.value.got is not None

    @pytest.mark.parametrize(
        ("expression", "column", "got", "expected"),
        [
            ("self.start == self.bytes", 20, "tokens and bytes", "the same on both sides"),
            ("kv.ready and self.start == self.bytes", 33, "tokens and bytes", "the same on both sides"),
            ("kv.ready and 0 < self.start + self.bytes", 37, "tokens and bytes", "the same on both sides"),
        ],
    )
    def test_unit_errors_point_into_the_expression(self, expression: str, column: int, got: str, expected: str) -> None:
        """Position, rule, what was got and what was expected are all there."""
        with pytest.raises(UnitError) as caught:
            parse(expression)
        error = caught.value
        assert (Position("rules.yaml", 10, column), "tail/covers") == (error.where, error.rule)
        assert (got, expected) == (error.got, error.expected)

    def test_errors_in_later_lines_have_their_line_and_column(self) -> None:
        """The column of a later line counts from that line's beginning."""
        with pytest.raises(UnitError) as caught:
            parse("kv.ready\n  and self.start == self.bytes")
        assert Position("rules.yaml", 11, 7) == caught.value.where

    @pytest.mark.parametrize(
        ("expression", "part"),
        [
            ("self.pinned == True", "not compared"),
            ("self.pinned == kv.ready", "not compared"),
            ("(self.start < 1) == kv.ready", "not compared"),
            ("self.marks == self.marks", "membership"),
            ("self.form < full", "no order"),
            ("self.weights < request.weights", "no order"),
            ("self.form == device", "no member"),
            ("self.form == self.tier", "does not fit"),
            ("self.form == 1", "cannot stand here"),
            ("self.weights == 1", "cannot stand here"),
            ("self.start in (1, length)", "literals only"),
            ("self.start in ()", "empty"),
            ("self.start in (1)", "tuple of one"),
            ("self.start in length", "set fact or a tuple"),
            ("self.weights in (1, 2)", "looked up"),
            ("self.pinned in (True,)", "looked up"),
            ("runtime.wait in (1, 2)", "looked up"),
            ("1 in (1, 2) in self.marks", "chained"),
            ("self.start", "condition is expected"),
            ("5", "condition is expected"),
            ("self.pinned + 1 == 2", "number is expected"),
            ("self.form + 1 == 2", "number is expected"),
            ("self.start * self.end > 0", "constant once the profile"),
            ("length * length == 4", "constant once the profile"),
            ("length * runtime.rate < 5 * runtime.rate", "constant once the profile"),
            ("length % self.end == 0", "divisor must be constant"),
            ("length // self.end == 0", "divisor must be constant"),
            ("length % 0 == 0", "divisor must be positive"),
            ("length // -4 == 0", "divisor must be positive"),
            ("runtime.wait // 2 == 0", "integers only"),
            ("runtime.wait % 2 == 0", "integers only"),
            ("length + 0.5 == 1", "fractions"),
            ("length * 0.5 == 1", "fractions"),
            ("self.generation - 1 == 0", "counter"),
            ("self.generation + kv.generation == 0", "counter"),
            ("self.generation * 2 == 0", "counter"),
            ("-self.generation == 0", "counter"),
            ("max(self.generation, 0) == 0", "counter"),
            ("self.generation in (1, kv.generation)", "literals only"),
            ("min(length) == 0", "two or more"),
            ("min() == 0", "two or more"),
            ("abs(length, length) == 0", "one number"),
            ("known(5)", "one fact"),
            ("known(length + 1)", "one fact"),
            ("known()", "one fact"),
            ("known(length, length)", "one fact"),
            ("known(nothing)", "not known here"),
            ("implies(kv.ready)", "consequence"),
            ("round(length) == 0", "does not exist"),
            ("length(5)", "does not exist"),
            ("max(length, key=length) == 0", "not part of the language|does not exist"),
            ("self.nothing == 0", "not known here"),
            ("nothing", "not known here"),
            ("nothing == 0", "not known here"),
            ("self.form == nothing", "no member"),
            ("9223372036854775808 == length", "too large"),
            ("4611686018427387904 * 2 == length", "too large"),
            ("1e400 < runtime.wait", "too large"),
            ("(length, 1) == 0", "only stand after in"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, expression: str, part: str) -> None:
        """The message names the mistake; the error carries place and rule."""
        with pytest.raises(ConditionError, match=part) as caught:
            parse(expression)
        assert caught.value.rule == "tail/covers"
        assert caught.value.where.line == 10

    def test_a_misspelt_name_is_answered_with_the_closest(self) -> None:
        """The hint is a name of the scope."""
        with pytest.raises(ConditionError, match=r"did you mean self\.start"):
            parse("self.strat == 0")

    def test_only_costs_multiply_a_quantity_by_a_rate(self) -> None:
        """And they multiply by one rate only, and end in microseconds."""
        assert COST == type_of(parse("length * group.layers * runtime.rate", expect="cost"))
        for expression in (
            "length * runtime.rate",
            "length * runtime.rate * runtime.rate",
            "length",
            "kv.ready",
        ):
            with pytest.raises(ConditionError):
                parse(expression, expect="cost")

    def test_applies_reads_constants_only(self) -> None:
        """A condition on a segment cannot decide whether a rule exists."""
        assert parse("known(group.window) and group.window > 1", expect="applies")
        with pytest.raises(ConditionError, match="constants of the profile only"):
            parse("group.window > length", expect="applies")


class TestKnown:
    """Where `known` may stand."""

    @pytest.mark.parametrize(
        "expression",
        [
            "known(length)",
            "known(length) or kv.ready",
            "not not known(length)",
            "implies(kv.ready, known(length))",
            "not implies(known(length), kv.ready)",
            "not known(group.window)",
            "implies(known(group.window), kv.ready)",
        ],
    )
    def test_known_stands_in_positive_position(self, expression: str) -> None:
        """Two flips cancel, and constants of the profile are free."""
        assert parse(expression)

    @pytest.mark.parametrize(
        ("expression", "column"),
        [
            ("not known(length)", 24),
            ("implies(known(length), kv.ready)", 28),
            ("not (kv.ready and known(length))", 38),
            ("not implies(kv.ready, known(length))", 42),
            ("not not not known(length)", 32),
        ],
    )
    def test_known_under_a_negation_is_refused(self, expression: str, column: int) -> None:
        """Else something could be accepted because a fact is unknown."""
        with pytest.raises(ConditionError, match="negation") as caught:
            parse(expression)
        assert Position("rules.yaml", 10, column) == caught.value.where
        assert parse(expression, allow_known="any")

    def test_known_inside_a_need_counts_where_the_need_stands(self) -> None:
        """A name is no way around the rule."""
        macros = {"needs.seen": parse("known(length) or kv.ready")}
        scope = Scope(SCOPE.facts, macros, SCOPE.constants)
        assert parse_condition("needs.seen and kv.ready", scope)
        for expression in ("not needs.seen", "implies(needs.seen, kv.ready)"):
            with pytest.raises(ConditionError, match="negation"):
                parse_condition(expression, scope)

    def test_known_can_be_forbidden(self) -> None:
        """Some places take no `known` at all."""
        with pytest.raises(ConditionError, match="cannot stand here"):
            parse("known(length)", allow_known="never")


def test_an_unknown_expectation_is_an_error_of_the_caller() -> None:
    """Not of the text."""
    with pytest.raises(ValueError, match="expect must be"):
        parse("kv.ready", expect="truth")


def test_trees_are_values() -> None:
    """Equal text gives equal, hashable trees."""
    first, second = parse("self.start % 4 == 0 or kv.ready"), parse("self.start % 4 == 0 or kv.ready")
    assert first == second and hash(first) == hash(second)
    assert isinstance(first, Or) and isinstance(first.terms[0], Compare) and isinstance(first.terms[0].left, Arith)
