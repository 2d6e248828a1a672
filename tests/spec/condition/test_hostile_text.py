"""Text from strangers is refused before it can do harm: one typed error, whatever comes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.spec.condition import Node, Scope, parse_condition, text
from hitproof.spec.errors import ConditionError, Position
from tests.strategies import FACTS, SCOPE


def parse(expression: Any, **options: Any) -> Node:
    """Parse in the shared scope at a known place."""
    return parse_condition(expression, SCOPE, where=Position("rules.yaml", 10, 20), rule="tail/covers", **options)


def _parse_or_refuse(expression: str) -> None:
    for expect in ("bool", "number", "cost", "any", "applies"):
        try:
            node = parse(expression, expect=expect)
        except ConditionError:
            continue
        assert isinstance(text(node), str)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "\n",
        "(",
        ")",
        "()",
        "((",
        "a) or (b",
        "length ==",
        "== 0",
        "length = 0",
        "length := 0",
        "1 2",
        "length / 2 == 0",
        "2 ** 99 == length",
        "1 << 9 == length",
        "'a' == length",
        'f"{length}"',
        "[1][0] == 1",
        "{1} == 1",
        "lambda: 1",
        "length if kv.ready else 0",
        "await length",
        "length is 0",
        "None == length",
        "length == None",
        "self.__class__ == 0",
        "__import__(length)",
        "self . start == 0",
        "self.start.real == 0",
        "needs.from == 0",
        "self.is == 0",
        "# kv.ready",
        "kv.ready # yes",
        "kv.ready; kv.ready",
        "kv.ready,",
        "*length",
        "length\\\n== 0",
        "@length",
        "~length == 0",
        "+length == 0",
        "0x == length",
        "0x1for length",
        "010 == length",
        "1j == length",
        "1.e == runtime.wait",
        "1_ == length",
        "0b11 == length",
        "5in self.marks",
        "\u0661 == length",
        "\uff4cength == 0",
        "\ufb01 == 0",
        "l\u0435ngth == 0",
        "\ufeffkv.ready",
        "kv.ready\x00",
        "\x0ckv.ready",
        "\ud800",
        "kv.ready\u2028",
        "length \u2264 5",
        "length == \u2212 1",
        "\u202ekv.ready",
    ],
)
def test_what_is_not_in_the_language_is_refused(expression: str) -> None:
    """One typed error, with the rule and the line."""
    with pytest.raises(ConditionError) as caught:
        parse(expression)
    assert caught.value.rule == "tail/covers"
    assert caught.value.where.line >= 10
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "expression",
    [
        "-" * 1990 + "1",
        "- " * 900 + "1 == 0",
        "not " * 400 + "kv.ready",
        "(" * 900 + "1" + ")" * 900,
        "min(" * 400 + "1" + ",1)" * 200,
        "1" + "+1" * 900,
        "length" + "+length" * 200 + " == 0",
        "1<" * 900 + "1",
        "length in (" + "1," * 900 + ")",
        "a" + ".a" * 900,
        "(" * 45 + "kv.ready" + ")" * 45,
        "x" * 2001,
        "implies(" * 45 + "kv.ready" + ", kv.ready)" * 45,
        "not (" * 41 + "kv.ready" + ")" * 41,
    ],
)
def test_depth_and_size_are_capped(expression: str) -> None:
    """Never a RecursionError or MemoryError, whatever the shape."""
    with pytest.raises(ConditionError):
        parse(expression)


@pytest.mark.parametrize("value", [None, True, 0, 1.5, b"kv.ready", ["kv.ready"], {"kv.ready": None}, object()])
def test_what_is_no_text_is_refused(value: Any) -> None:
    """YAML gives nulls, numbers and lists where a text was forgotten."""
    with pytest.raises(ConditionError, match="must be a text"):
        parse(value)


def test_macros_cannot_blow_up_an_expression() -> None:
    """Needs that use needs double at each step; the cap is on the result."""
    macros: dict[str, Node] = {"needs.x0": parse("length", expect="number")}
    with pytest.raises(ConditionError, match="too large once its needs"):
        for step in range(30):
            scope = Scope(SCOPE.facts, macros, SCOPE.constants)
            both = f"max(needs.x{step}, needs.x{step})"
            macros[f"needs.x{step + 1}"] = parse_condition(both, scope, expect="number")


@settings(max_examples=500)
@given(st.text(max_size=60))
def test_any_text_gives_a_tree_or_a_condition_error(expression: str) -> None:
    """Nothing else comes out of arbitrary characters."""
    _parse_or_refuse(expression)


@settings(max_examples=1_000)
@given(
    st.lists(
        st.sampled_from(
            [
                *FACTS,
                *"()+-*%<>,",
                "//",
                "==",
                "!=",
                "and",
                "or",
                "not",
                "in",
                "min",
                "max",
                "abs",
                "known",
                "implies",
                "0",
                "4",
                "0.5",
                "True",
                "full",
                "home",
                "\n",
                "is",
                "if",
                ".",
                "9" * 30,
                "=",
                "None",
            ]
        ),
        max_size=25,
    )
)
def test_any_words_give_a_tree_or_a_condition_error(words: list[str]) -> None:
    """Nothing else comes out of words of the language in any order."""
    _parse_or_refuse(" ".join(words))
