"""Prices in whole ticks."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from hitproof.spec.price import NO_LIMIT, TICKS, UNKNOWN_PRICE, microseconds, ticks

PRICES = st.floats(-1e12, 1e15, allow_nan=False)


@given(PRICES)
def test_a_price_is_kept_to_the_nearest_tick(price: float) -> None:
    """At most half a tick is lost, or what a float of that size cannot tell; below 0 all is lost."""
    assert abs(microseconds(ticks(price)) - max(0.0, price)) <= max(0.5 / TICKS, abs(price) * 2**-52)


@given(PRICES)
def test_a_price_survives_being_told(price: float) -> None:
    """What a plan tells in microseconds is the same number of ticks again."""
    told = microseconds(ticks(min(price, 1e9)))
    assert told == microseconds(ticks(told))


@given(st.lists(PRICES, max_size=4))
def test_the_order_of_a_sum_does_not_matter(prices: list[float]) -> None:
    """As it may with floats."""
    assert 1 >= len({sum(ticks(price) for price in order) for order in permutations(prices)})


def test_the_unknown_is_dearer_than_all_that_is_known() -> None:
    """Sums of very many very large prices stay below it, and sums of unknown ones below no limit."""
    assert UNKNOWN_PRICE == ticks(None)
    assert 10**9 * ticks(1e40) < UNKNOWN_PRICE
    assert 10**9 * UNKNOWN_PRICE < NO_LIMIT
    assert float("inf") == microseconds(UNKNOWN_PRICE) == microseconds(UNKNOWN_PRICE + 5)
