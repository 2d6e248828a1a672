"""Units multiply, divide, print and read back; what is no unit is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.spec.errors import Position, UnitError
from hitproof.spec.units import BASE_UNITS, DIMENSIONLESS, Unit, parse_unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tokens", "tokens"),
        ("us/(tokens*layers)", "us/(layers*tokens)"),
        ("us / tokens / layers", "us/(layers*tokens)"),
        ("bytes/tokens*tokens", "bytes"),
        ("tokens/tokens", "1"),
        ("1/us", "1/us"),
        ("(bytes)", "bytes"),
        ("tokens*tokens", "tokens*tokens"),
    ],
)
def test_units_print_in_one_normal_form(text: str, shown: str) -> None:
    """Order and brackets do not matter."""
    assert shown == str(parse_unit(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "token",
        "tokens/",
        "/tokens",
        "tokens bytes",
        "(tokens",
        "tokens)",
        "2*tokens",
        "tokens**2",
        "to kens",
        "\uff55s",
        "us\0",
        "(" * 50 + "us" + ")" * 50,
        "*".join(["us"] * 9),
        "us*" * 100 + "us",
    ],
)
def test_what_is_no_unit_is_refused_with_its_position(text: str) -> None:
    """The error carries the text, the place and the rule."""
    with pytest.raises(UnitError) as caught:
        parse_unit(text, where=Position("rules.yaml", 3, 9), rule="tail/start")
    assert ("rules.yaml:3:9", "tail/start") == (str(caught.value.where), caught.value.rule)


@given(st.dictionaries(st.sampled_from(BASE_UNITS), st.integers(-3, 3).filter(bool)))
def test_every_unit_reads_back_from_its_text(powers: dict[str, int]) -> None:
    """Printing loses nothing."""
    unit = Unit(tuple(sorted(powers.items())))
    assert unit == parse_unit(str(unit))
    assert unit / unit == DIMENSIONLESS
    assert unit * unit / unit == unit


@given(st.text(max_size=40))
def test_any_text_is_a_unit_or_a_unit_error(text: str) -> None:
    """No other error comes out."""
    try:
        parse_unit(text)
    except UnitError:
        return


def test_only_units_with_microseconds_are_time() -> None:
    """They decide which facts are real numbers."""
    assert parse_unit("us/tokens").is_time
    assert not parse_unit("bytes/tokens").is_time
