"""Axes of the page enclose what is drawn, and figures are written for people."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.cli.page.axis import Scale, log_ticks, round_ticks, time_ticks
from hitproof.cli.page.figures import bytes_text, clock_for, power, rate, seconds_for
from hitproof.cli.page.markup import shortened

POSITIVE = st.floats(min_value=1e-9, max_value=1e15, allow_nan=False)


class TestAxes:
    """Ticks are round and enclose what is drawn."""

    @given(largest=POSITIVE, wanted=st.integers(2, 10))
    def test_round_ticks_enclose_the_largest_value(self, largest: float, wanted: int) -> None:
        """From 0 in equal steps of 1, 2, 2.5 or 5 times a power of ten, none of them to spare."""
        ticks = round_ticks(largest, wanted)
        assert 0 == ticks[0]
        assert ticks[-2] < largest * (1 + 1e-6)
        assert ticks[-1] >= largest * (1 - 1e-6)
        assert 2 <= len(ticks) <= wanted + 2
        lead = float(f"{ticks[1]:.6e}".partition("e")[0])
        assert any(lead == pytest.approx(round_lead) for round_lead in (1, 2, 2.5, 5))

    @given(span=st.integers(1, 2**40))
    def test_time_ticks_lie_within_the_span(self, span: int) -> None:
        """From 0 on, at most as many as fit, told in a unit of which the span has some."""
        clock = clock_for(span)
        ticks = time_ticks(span, clock, 8)
        assert 0 == ticks[0]
        assert ticks[-1] <= span * (1 + 1e-9)
        assert len(ticks) <= 10
        assert all(low < high for low, high in pairwise(ticks))
        assert clock.unit == "ms" or span >= 3 * clock.unit_ms

    @given(values=st.tuples(POSITIVE, POSITIVE))
    def test_logarithmic_ticks_enclose_both_values(self, values: tuple[float, float]) -> None:
        """At least two, rising, none to spare at either end."""
        least, largest = sorted(values)
        ticks = log_ticks(least, largest)
        assert len(ticks) >= 2
        assert ticks[0] <= least * (1 + 1e-6)
        assert ticks[1] >= least * (1 - 1e-6)
        assert ticks[-1] >= largest * (1 - 1e-6)
        assert all(low < high for low, high in pairwise(ticks))

    def test_a_scale_without_length_stays_at_its_start(self) -> None:
        """Nothing to draw is no division by zero."""
        assert (10.0, 15.0) == (Scale(0, 10, 20)(0), Scale(2, 10, 20)(1))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (lambda: bytes_text(0), "0\xa0B"),
        (lambda: bytes_text(1_500), "1.50\xa0kB"),
        (lambda: bytes_text(410 * 10**9), "410\xa0GB"),
        (lambda: power(512), "512"),
        (lambda: power(1 << 17), "128k"),
        (lambda: power(1 << 20), "1M"),
        (lambda: rate(0.0000005), "0.0000005"),
        (lambda: rate(40.0), "40"),
        (lambda: rate(None), "unknown"),
        (lambda: seconds_for([2e6])(31_000), "0.031"),
        (lambda: seconds_for([2e9])(31_000), "0.0"),
        (lambda: seconds_for([])(float("inf")), "unknown"),
        (lambda: shortened("a" * 50, 11), "aaaaaa\N{HORIZONTAL ELLIPSIS}aaaa"),
    ],
)
def test_figures_are_written_for_people(written: Callable[[], str], expected: str) -> None:
    """Units that fit, no exponents where digits do, and long names cut in the middle."""
    assert expected == written()
