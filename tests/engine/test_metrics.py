"""Hit counters keep apart what a hash claims and what was reused, and their parts always sum to the whole."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine import HitCounters
from hitproof.spec.decision import Decision, Verdict
from hitproof.spec.errors import InternalError

REUSING = ("reuse", "repair", "rebuild")


@st.composite
def decisions(draw: st.DrawFn) -> tuple[Decision, int]:
    """A decision and the tokens of its request; only verdicts that reuse have a usable length."""
    verdict: Verdict = draw(st.sampled_from(get_args(Verdict)))
    tokens = draw(st.integers(1, 10_000))
    logical = 0 if verdict == "miss" else draw(st.integers(0, tokens - 1))
    usable = draw(st.integers(0, logical)) if verdict in REUSING else 0
    return Decision(verdict, logical, usable), tokens


def test_effective_reuse_counts_clean_hits_alone() -> None:
    """A clean hit is effective, a repaired one recovered, and what matched beyond is recomputed."""
    counters = HitCounters()
    counters.record(Decision("reuse", 800, 700), 1000)
    counters.record(Decision("repair", 500, 400), 1000)
    counters.record(Decision("rebuild", 300, 300), 1000)
    counters.record(Decision("recompute", 200, 0), 1000)
    counters.record(Decision("miss", 0, 0), 1000)
    expected = {
        "logical_rate": 1800 / 5000,
        "effective_rate": 700 / 5000,
        "recovered_rate": 700 / 5000,
        "recomputed_rate": 400 / 5000,
    }
    assert expected == counters.rates()
    assert {"reuse": 1, "repair": 1, "rebuild": 1, "recompute": 1, "miss": 1} == dict(counters.requests)


def test_nothing_counted_gives_rates_of_zero() -> None:
    """No request, no rate, and no division by nothing."""
    assert {0.0} == set(HitCounters().rates().values())


@given(st.lists(decisions(), max_size=20))
def test_the_parts_sum_to_the_logical_hits(given_: list[tuple[Decision, int]]) -> None:
    """Effective, recovered and recomputed are the logical hits, whatever was decided."""
    counters = HitCounters()
    for decision, tokens in given_:
        counters.record(decision, tokens)
    counters.check_integrity()
    assert counters.logical == counters.effective + counters.recovered + counters.recomputed


def test_counters_that_do_not_add_up_are_loud() -> None:
    """A sum that was tampered with is an error of our own."""
    counters = HitCounters()
    counters.record(Decision("reuse", 10, 10), 20)
    counters.effective += 1
    with pytest.raises(InternalError, match="do not add up"):
        counters.check_integrity()
