"""Facts are declared with a type and a domain, and admit only values of both."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.spec.errors import HitproofError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.facts import COUNTER, IDENTITY, TOKEN_SET, TOKENS, admit, declare_fact, parse_fact_type
from tests.strategies import ENUMS


@pytest.mark.parametrize(
    ("text", "kind", "lo", "hi"),
    [
        ("tokens", "int", 0, 2**40),
        ("bytes", "int", 0, 2**50),
        ("blocks", "int", 0, 2**32),
        ("layers", "int", 0, 2**32),
        ("count", "int", 0, 2**32),
        ("counter", "counter", 0, 2**40),
        ("address", "int", 0, 2**61),
        ("us", "real", 0, 1e12),
        ("us/(tokens*layers)", "real", 0, 1e12),
        ("bool", "bool", None, None),
        ("identity", "identity", None, None),
        ("set of  tokens", "set", None, None),
        ("form", "enum", None, None),
    ],
)
def test_every_type_has_its_default_domain(text: str, kind: str, lo: Any, hi: Any) -> None:
    """Domains keep all arithmetic inside 64 bits."""
    fact = declare_fact("x", text, ENUMS)
    assert (kind, lo, hi) == (fact.type.kind, fact.lo, fact.hi)


def test_types_are_equal_by_meaning() -> None:
    """An address is a number of bytes; an enum knows its members."""
    assert parse_fact_type("address", ENUMS) == parse_fact_type("bytes", ENUMS)
    assert parse_fact_type("tier", ENUMS).members == ("device", "host", "disk")
    assert (TOKENS, TOKEN_SET, COUNTER, IDENTITY) == tuple(
        parse_fact_type(text, ENUMS) for text in ("tokens", "set of tokens", "counter", "identity")
    )


def test_types_print_as_they_are_written() -> None:
    """Messages show types in the words of rule files."""
    for text in ("bool", "identity", "counter", "count", "set of tokens", "form", "tokens", "us/tokens"):
        assert text == str(parse_fact_type(text, ENUMS))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("token", ReferenceNameError),
        ("Bool", ReferenceNameError),
        ("set of bytes", ReferenceNameError),
        ("us/foo", UnitError),
        ("", ReferenceNameError),
        ("tokens/", UnitError),
    ],
)
def test_unknown_types_are_refused(text: str, error: type[HitproofError]) -> None:
    """A single word is a wrong name, a product a wrong unit."""
    with pytest.raises(error):
        parse_fact_type(text, ENUMS)


def test_a_misspelt_type_is_answered_with_the_closest() -> None:
    """`token` was meant to be `tokens`."""
    with pytest.raises(ReferenceNameError, match="did you mean tokens"):
        parse_fact_type("token", ENUMS)


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("tokens", [5, 4]),
        ("tokens", [0]),
        ("tokens", [0, 1, 2]),
        ("tokens", [0, 1.5]),
        ("tokens", [False, True]),
        ("tokens", [0, 2**62]),
        ("us", [0, float("nan")]),
        ("us", ["a", "b"]),
        ("bool", [0, 1]),
        ("form", [0, 1]),
        ("identity", [0, 1]),
        ("set of tokens", [0, 1]),
    ],
)
def test_bad_domains_are_refused(text: str, domain: Any) -> None:
    """Two ordered bounds of the fact's own kind, no larger than 2**61."""
    with pytest.raises(SchemaError):
        declare_fact("x", text, ENUMS, domain=domain)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("tokens", 0, 0),
        ("tokens", -1, None),
        ("tokens", 2**40, 2**40),
        ("tokens", 2**40 + 1, None),
        ("tokens", True, None),
        ("tokens", 1.0, None),
        ("tokens", "1", None),
        ("tokens", None, None),
        ("us", 1, 1.0),
        ("us", 0.5, 0.5),
        ("us", -0.5, None),
        ("us", True, None),
        ("us", float("nan"), None),
        ("us", float("inf"), None),
        ("us", 10**400, None),
        ("bool", False, False),
        ("bool", 0, None),
        ("form", "full", "full"),
        ("form", "gone", None),
        ("form", 0, None),
        ("identity", "", ""),
        ("identity", 0, 0),
        ("identity", 0.0, None),
        ("identity", b"x", None),
        ("identity", False, None),
        ("set of tokens", frozenset(), frozenset()),
        ("set of tokens", {1}, None),
        ("set of tokens", frozenset({"1"}), None),
        ("counter", 2**40, 2**40),
        ("counter", -1, None),
    ],
)
def test_values_out_of_type_or_domain_are_unknown(text: str, value: Any, expected: Any) -> None:
    """Admission gives the value or None, and reals as floats."""
    found = admit(declare_fact("x", text, ENUMS), value)
    assert (expected, type(expected)) == (found, type(found))
