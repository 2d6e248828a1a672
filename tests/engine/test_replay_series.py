"""What a replay counts over time, by depth and by option adds up to its totals, whatever the order of arrival."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.replay import replay
from hitproof.engine.replay.series import MAX_BINS, PARTS, WIDTHS_MS, HitLengths, TimeBins
from hitproof.engine.trace import TraceRequest, synthesize
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook

RATES = {
    "logical": "logical_hit_rate",
    "effective": "effective_reuse_rate",
    "recovered": "recovered_rate",
    "recomputed": "recomputed_rate",
}
TIMES = st.lists(st.one_of(st.integers(0, 2**40), st.integers(0, 50_000)), min_size=1, max_size=60)


def counted(times: list[int]) -> TimeBins:
    """Bins of requests that touch as many blocks as their place in the list tells."""
    bins = TimeBins()
    for place, time in enumerate(times):
        sums = bins.at(time)
        sums[0] += 1
        sums[1] += place
    return bins


class TestTimeBins:
    """Bins that widen as time goes on."""

    def test_each_width_is_a_multiple_of_the_one_before(self) -> None:
        """Otherwise two bins could not become one."""
        assert sorted(set(WIDTHS_MS)) == list(WIDTHS_MS)
        assert all(wide % narrow == 0 for narrow, wide in pairwise(WIDTHS_MS))

    @given(times=TIMES)
    def test_sums_are_those_of_the_requests_of_each_bin(self, times: list[int]) -> None:
        """Counting after the fact, at the final width, gives the same bins."""
        line = counted(times).timeline()
        width = line.width_ms
        requests, touched = Counter(time // width * width for time in times), Counter[int]()
        for place, time in enumerate(times):
            touched[time // width * width] += place
        assert sorted(requests) == list(line.start_ms)
        assert [requests[start] for start in line.start_ms] == list(line.requests)
        assert [touched[start] for start in line.start_ms] == list(line.blocks["touched"])

    @given(times=TIMES)
    def test_the_width_is_the_least_that_fits(self, times: list[int]) -> None:
        """So the order of arrival does not matter."""
        found = counted(times).width_ms
        widths = list(WIDTHS_MS)
        while widths[-1] < found:
            widths.append(2 * widths[-1])
        fitting = [width for width in widths if max(times) // width - min(times) // width < MAX_BINS]
        assert fitting[0] == found == counted(times[::-1]).width_ms

    def test_nothing_counted_is_an_empty_line(self) -> None:
        """An empty trace has no bins and no sums."""
        line = TimeBins().timeline()
        assert ((), (), [0] * 9) == (line.start_ms, line.requests, TimeBins().totals())
        assert dict.fromkeys(PARTS, ()) == line.blocks == line.tokens


class TestHitLengths:
    """Lengths in bins that double."""

    @given(pairs=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), max_size=40))
    def test_every_request_lies_in_the_bin_of_its_length(self, pairs: list[tuple[int, int]]) -> None:
        """A bin holds the lengths from its own edge up to the next one; 0 has a bin of its own."""
        lengths = HitLengths()
        for logical, usable in pairs:
            lengths.count(logical, usable)
        told = lengths.as_dict()
        edges = told["from_tokens"]
        assert 0 == edges[0]
        assert all(above == 2 * below for below, above in pairwise(edges[1:]))
        for side, name in enumerate(("logical", "usable")):
            for edge, requests in zip(edges, told[name], strict=True):
                after = 2 * edge if edge else 1
                assert requests == sum(edge <= pair[side] < after for pair in pairs)
            assert len(pairs) == sum(told[name])


@pytest.fixture(scope="module")
def reports() -> list[dict[str, Any]]:
    """Replays of a synthetic workload that pass through every tier, under each retention."""
    rules = load_rulebook("mixed_attention")
    bound = bind_rulebook(rules, load_profile("deepseek-v4-flash"))
    requests = list(synthesize(400, 11))
    tiers: dict[str, Any] = {"capacity": 300, "host_blocks": 500, "disk_blocks": 700}
    return [replay(requests, bound, retention=mode, **tiers).as_dict() for mode in rules.policy.retention]


def test_the_timeline_sums_to_the_rates(reports: list[dict[str, Any]]) -> None:
    """Requests, touches and each rate are the sums over all bins."""
    for one in reports:
        line = one["timeline"]
        assert one["requests"] == sum(line["requests"])
        for unit, whole in (("blocks", one["block_touches"]), ("tokens", one["token_touches"])):
            assert whole == sum(line[unit]["touched"])
            for part, rate in RATES.items():
                assert sum(line[unit][part]) / whole == one[rate][unit]
        assert len(line["start_ms"]) > 10


def test_the_depths_count_every_request(reports: list[dict[str, Any]]) -> None:
    """Both histograms hold each request once; a miss matched nothing."""
    for one in reports:
        lengths = one["hit_lengths"]
        assert one["requests"] == sum(lengths["logical"]) == sum(lengths["usable"])
        assert one["decisions"].get("miss", 0) == lengths["logical"][0]
        idle = sum(one["decisions"].get(verdict, 0) for verdict in ("miss", "recompute", "refuse"))
        assert idle == lengths["usable"][0]


def test_the_options_sum_to_the_levels(reports: list[dict[str, Any]]) -> None:
    """What each option cost adds up to the price of its level, dearest first."""
    used = set()
    for one in reports:
        for level in ("in_place", "intra_layer"):
            paid = sum(share["cost_us"] for share in one["recovery"] if share["level"] == level)
            assert one["recovery_cost_us"][level] == pytest.approx(paid)
        prices = [share["cost_us"] for share in one["recovery"]]
        assert sorted(prices, reverse=True) == prices
        used |= {(share["level"], share["option"], bool(share["group"])) for share in one["recovery"]}
    assert {level for level, _, _ in used} == {"in_place", "intra_layer"}
    assert ("intra_layer", "warm_up", False) in used


def test_a_prompt_without_a_whole_token_costs_nothing() -> None:
    """Three bytes of a trace that counts bytes are no token: nothing to compute, and the price stays a number."""
    bound = bind_rulebook(load_rulebook("mixed_attention"), load_profile("gemma-3-27b"))
    requests = [TraceRequest(0, 0, 1, (1,), 256), TraceRequest(5, 300, 1, (1, 2), 256)]
    told = replay(requests, bound, capacity=None).as_dict()
    assert 300 * 40.0 == told["prefill_us"]
