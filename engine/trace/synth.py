"""Synthetic chat requests whose statistics follow a published hour of real traffic."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from hitproof.engine.trace.line_format import TraceRequest
from hitproof.spec.errors import UsageError

__all__ = ["CONVERSATION", "TraceStatistics", "synthesize"]

BLOCK_TOKENS = 512
MAX_REQUESTS = 10_000_000
SEARCH_REACH = 2_000

Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """What a workload is drawn to follow.

    Attributes:
        arrival_gap_ms: Mean time between two arrivals.
        arrival_step_ms: Arrivals carry times that are multiples of this.
        input_tokens: Quantiles of the prompt's length, as (share, tokens).
        output_mean: Mean length of the answer in tokens.
        deep_share: Share of requests whose hit is deeper than the first block.
        hit_depth: Quantiles of those requests' depth, as (share, blocks).
        reuse_ms: Quantiles of the time since the request that is continued, as (share, milliseconds); drawn
            before those that reach back too far are dropped.
    """

    arrival_gap_ms: float
    arrival_step_ms: int
    input_tokens: Curve
    output_mean: float
    deep_share: float
    hit_depth: Curve
    reuse_ms: Curve


# Measured on the public Mooncake conversation trace (github.com/kvcache-ai/Mooncake, Apache-2.0, folder
# FAST25-release; 12,031 requests in 3,537 s, times in steps of 3 s) with an unlimited cache; a first touch is
# a miss. Only such summary figures are carried, no rows. One figure is not the measured one: the reuse
# intervals are drawn longer (measured over all touches: 114, 519 and 1,578 s), because a draw that reaches
# back before the first request is dropped, and because block 0, shared by all, adds its own short intervals.
CONVERSATION = TraceStatistics(
    arrival_gap_ms=294.0,
    arrival_step_ms=3_000,
    input_tokens=(
        (0.0, 891), (0.1, 964), (0.25, 2_306), (0.5, 6_909), (0.75, 15_368), (0.9, 27_367), (0.95, 39_552),
        (0.99, 85_401), (1.0, 126_195),
    ),
    output_mean=343.0,
    deep_share=0.387,
    hit_depth=(
        (0.0, 2), (0.1, 2), (0.25, 5), (0.5, 12), (0.75, 26), (0.9, 49), (0.95, 69), (0.99, 150), (1.0, 240),
    ),
    reuse_ms=(
        (0.0, 3_000), (0.1, 45_000), (0.5, 170_000), (0.9, 680_000), (0.99, 2_000_000), (1.0, 3_400_000),
    ),
)  # fmt: skip


def synthesize(requests: int, seed: int, *, statistics: TraceStatistics = CONVERSATION) -> Iterator[TraceRequest]:
    """Draws a workload; the same arguments give the same requests.

    One shared block opens every request. A request either starts a conversation or continues one: it shares a
    drawn number of blocks with a request of about a drawn time ago. Reuse intervals cannot exceed the time
    that has passed, so the long ones show only in workloads of about an hour (12,000 requests).

    Args:
        requests: How many requests to draw, at least 1.
        seed: Seed of the draw.
        statistics: What the workload follows.

    Returns:
        An iterator over the requests in order of arrival, blocks of 512 tokens, ids in order of first sight.

    Raises:
        UsageError: A number is not a whole number in range (raised at once).
    """
    if type(requests) is not int or not 1 <= requests <= MAX_REQUESTS:
        raise UsageError(
            "the number of requests cannot be used",
            got=requests,
            expected=f"a whole number from 1 to {MAX_REQUESTS}",
        )
    if type(seed) is not int or seed < 0:
        raise UsageError("the seed cannot be used", got=seed, expected="a whole number of at least 0")
    return _draw(requests, random.Random(seed), statistics)


def _draw(requests: int, source: random.Random, statistics: TraceStatistics) -> Iterator[TraceRequest]:
    uniform = source.random
    past = _Past()
    clock, fresh, owed = 0.0, 1, 0
    for _ in range(requests):
        now = int(clock) // statistics.arrival_step_ms * statistics.arrival_step_ms
        clock += _exponential(statistics.arrival_gap_ms, uniform())
        rank = uniform()
        tokens = round(_quantile(statistics.input_tokens, rank))
        blocks = -(-tokens // BLOCK_TOKENS)
        prefix: tuple[int, ...] = (0,)
        # Longer requests continue more often; the factor's mean over all ranks is 1.
        owed += uniform() < statistics.deep_share * (0.4 + 1.2 * rank)
        depth = min(_depth(statistics, rank, uniform()), blocks - 1)
        ago = _quantile(statistics.reuse_ms, uniform())
        if owed and depth > 1 and ago <= now:
            found = past.take(depth, now - ago, uniform())
            if found:
                prefix = found
                owed -= 1
        new = blocks - len(prefix)
        path = (*prefix, *range(fresh, fresh + new))
        fresh += new
        past.add(now, path, tokens // BLOCK_TOKENS)
        answer = int(_exponential(statistics.output_mean, uniform())) + 1
        yield TraceRequest(now, tokens, answer, path, BLOCK_TOKENS)


class _Past:
    """The requests so far, by time of arrival."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._paths: list[tuple[int, ...]] = []
        self._full: list[int] = []
        self._continued: list[bool] = []

    def add(self, time: int, path: tuple[int, ...], full_blocks: int) -> None:
        self._times.append(time)
        self._paths.append(path)
        self._full.append(full_blocks)
        self._continued.append(False)

    def take(self, depth: int, time: float, uniform: float) -> tuple[int, ...] | None:
        """The first `depth` blocks of a request near `time`; one that nothing has continued comes first.

        Such a request was read last when it arrived, so the time since then is the one drawn.
        """
        first = bisect_left(self._times, time)
        after = bisect_right(self._times, self._times[first]) if first < len(self._times) else first
        start = first + int(uniform * (after - first))
        second_best: int | None = None
        for step in range(SEARCH_REACH):
            for at in (start - step, start + step + 1):
                if 0 <= at < len(self._full) and self._full[at] >= depth:
                    if not self._continued[at]:
                        self._continued[at] = True
                        return self._paths[at][:depth]
                    second_best = at if second_best is None else second_best
        return None if second_best is None else self._paths[second_best][:depth]


def _depth(statistics: TraceStatistics, rank: float, noise: float) -> int:
    # The rank among continuing requests, moved a little, and less towards the ends.
    among = rank * (0.4 + 0.6 * rank)
    return round(_quantile(statistics.hit_depth, among + (noise - 0.5) * min(among, 1.0 - among)))


def _exponential(mean: float, uniform: float) -> float:
    return -mean * math.log(1.0 - uniform)


def _quantile(curve: Curve, share: float) -> float:
    at = max(1, bisect_left(curve, (share,)))
    (low, start), (high, end) = curve[at - 1], curve[at]
    return math.exp(math.log(start) + (math.log(end) - math.log(start)) * (share - low) / (high - low))
