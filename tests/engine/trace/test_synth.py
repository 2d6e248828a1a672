"""Synthetic requests carry the statistics of the published conversation trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from hitproof.engine.trace import TraceRequest, read_trace, synthesize
from hitproof.spec.errors import UsageError

TRACE = Path(__file__).resolve().parents[4] / "shared/data/traces/mooncake-conversation/conversation_trace.jsonl"
SEEDS = (7, 11, 2026)


@dataclass
class Measured:
    """Statistics of a trace under an unlimited cache; a first touch is a miss."""

    requests: int = 0
    touches: int = 0
    hits: int = 0
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    intervals: list[int] = field(default_factory=list)

    def share(self) -> float:
        """Percent of requests with a hit deeper than one block."""
        return 100 * len(self.depths) / self.requests

    def hit_rate(self) -> float:
        """Percent of touched blocks inside a known prefix."""
        return 100 * self.hits / self.touches


def measure(requests: list[TraceRequest]) -> Measured:
    """Walks the requests once."""
    result, last = Measured(), dict[int, int]()
    for request in requests:
        depth = next((i for i, b in enumerate(request.hash_ids) if b not in last), len(request.hash_ids))
        result.requests += 1
        result.touches += len(request.hash_ids)
        result.hits += depth
        result.inputs.append(request.input_tokens)
        result.outputs.append(request.output_tokens)
        result.intervals += [request.timestamp_ms - last[block] for block in request.hash_ids[:depth]]
        if depth > 1:
            result.depths.append(depth)
        last.update(dict.fromkeys(request.hash_ids, request.timestamp_ms))
    return result


def quantile(values: list[int], share: float) -> int:
    """The value below which `share` of the others lie."""
    return sorted(values)[int(share * len(values))]


def assert_near(values: list[int], published: Mapping[float, float], band: float) -> None:
    """Each quantile lies within `band` of the published one, as a fraction of it."""
    for share, expected in published.items():
        assert pytest.approx(expected, rel=band) == quantile(values, share), f"quantile {share}"


INPUT = {0.1: 964, 0.5: 6_909, 0.9: 27_367, 0.99: 85_401}
DEPTH = {0.5: 12, 0.9: 49, 0.99: 150}
REUSE = {0.5: 114_000, 0.9: 519_000, 0.99: 1_578_000}


@pytest.mark.parametrize("seed", SEEDS)
def test_six_thousand_requests_follow_the_published_statistics(seed: int) -> None:
    """Lengths within 12 %, mean output 5 %, deep share and hit rate 3 points, depths 30 %.

    Half an hour cannot hold the hour's longest intervals: the median may be 30 % and p90 35 % off.
    """
    found = measure(list(synthesize(6_000, seed)))
    assert_near(found.inputs, INPUT, 0.12)
    assert pytest.approx(12_035, rel=0.07) == sum(found.inputs) / found.requests
    assert pytest.approx(343, rel=0.05) == sum(found.outputs) / found.requests
    assert pytest.approx(38.7, abs=3.0) == found.share()
    assert pytest.approx(36.6, abs=3.0) == found.hit_rate()
    assert_near(found.depths, DEPTH, 0.30)
    assert_near(found.intervals, {0.5: REUSE[0.5]}, 0.30)
    assert_near(found.intervals, {0.9: REUSE[0.9]}, 0.35)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_hour_follows_the_published_reuse_intervals(seed: int) -> None:
    """As many requests as the real hour has: intervals and depths within 20 %, hit rate 3 points."""
    found = measure(list(synthesize(12_031, seed)))
    assert_near(found.intervals, REUSE, 0.20)
    assert_near(found.depths, DEPTH, 0.20)
    assert pytest.approx(36.6, abs=3.0) == found.hit_rate()


@pytest.mark.skipif(not TRACE.exists(), reason="the public conversation trace is not beside the repository")
def test_the_published_statistics_are_those_of_the_trace() -> None:
    """The measure of this file gives the published figures on the real trace."""
    found = measure(list(read_trace(TRACE)))
    assert_near(found.inputs, INPUT, 0.001)
    assert_near(found.depths, DEPTH, 0.001)
    assert_near(found.intervals, REUSE, 0.001)
    assert pytest.approx(38.7, abs=0.05) == found.share()
    assert pytest.approx(36.6, abs=0.05) == found.hit_rate()
    assert pytest.approx(343, abs=0.5) == sum(found.outputs) / found.requests


def test_the_same_seed_gives_the_same_requests() -> None:
    """Two draws with one seed agree, another seed differs, and a longer draw begins like a shorter one."""
    first = list(synthesize(300, 7))
    assert first == list(synthesize(300, 7))
    assert first == list(synthesize(400, 7))[:300]
    assert first != list(synthesize(300, 8))


def test_every_request_is_well_formed() -> None:
    """One shared block opens all; ids fit the length, times never fall, ids come in order of first sight."""
    latest, top = 0, 0
    for request in synthesize(2_000, 7):
        assert 0 == request.hash_ids[0]
        assert -(-request.input_tokens // 512) == len(request.hash_ids) == len(set(request.hash_ids))
        assert latest <= request.timestamp_ms
        assert 0 == request.timestamp_ms % 3_000
        assert request.output_tokens >= 1
        fresh = [block for block in request.hash_ids if block > top]
        assert list(range(top + 1, top + 1 + len(fresh))) == fresh
        latest, top = request.timestamp_ms, top + len(fresh)


def test_equal_ids_mean_equal_prefixes() -> None:
    """A block is always preceded by the same block, and a partly filled one is never shared."""
    before: dict[int, int] = {}
    partial: set[int] = set()
    for request in synthesize(2_000, 7):
        path = request.hash_ids
        assert partial.isdisjoint(path)
        for parent, block in pairwise(path):
            assert parent == before.setdefault(block, parent)
        if request.input_tokens % 512:
            partial.add(path[-1])


@pytest.mark.parametrize(
    ("requests", "seed"), [(0, 1), (-5, 1), (True, 1), (2.0, 1), (10**9, 1), (5, -1), (5, None), (5, False)]
)
def test_wrong_numbers_are_refused_at_once(requests: object, seed: object) -> None:
    """The call itself raises, before anything is drawn."""
    with pytest.raises(UsageError):
        synthesize(requests, seed)  # type: ignore[arg-type]
