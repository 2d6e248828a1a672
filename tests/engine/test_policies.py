"""Simulated serving: times add up, nobody is lost, and the policies differ where they should."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.engine.replay import evaluate_policy
from hitproof.engine.replay.policy_report import percentile
from hitproof.engine.trace import TraceRequest, synthesize
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.errors import UsageError
from tests.engine.state_cases import engine_of

V4, GEMMA, QWEN = "deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b"
POLICIES = ("state_aware", "short_first", "most_reuse", "always_load", "always_recompute", "longest_hit")
UNIT = 512


def prompt(at_ms: int, *ids: int, tokens: int | None = None) -> TraceRequest:
    """A request that arrives at a time; a block is 512 tokens."""
    return TraceRequest(at_ms, UNIT * len(ids) if tokens is None else tokens, 0, ids, UNIT)


def run(
    requests: list[TraceRequest], policy: str = "state_aware", name: str = QWEN, **settings_: Any
) -> dict[str, Any]:
    """The figures of a policy; a token takes 10 us."""
    given_: dict[str, Any] = {"capacity": 1000, "runtime": {"prefill_us_per_token": 10.0}, **settings_}
    return evaluate_policy(requests, engine_of(name).bound, policy, **given_).as_dict()


def test_an_idle_process_takes_the_time_of_the_prefill() -> None:
    """Four blocks of 512 tokens at 10 us."""
    report = run([prompt(0, 1, 2, 3, 4)])
    assert 20_480.0 == report["ttft_us"]["p50"]
    assert {"miss": 1} == report["decisions"]


def test_what_was_computed_before_is_not_computed_again() -> None:
    """The second prompt is one block longer; the state at the end of the first one is kept."""
    report = run([prompt(0, 1, 2, 3, 4), prompt(1000, 1, 2, 3, 4, 5)])
    assert [5_120.0, 20_480.0] == [report["ttft_us"]["p50"], report["ttft_us"]["p99"]]
    assert report["rates"]["effective"] == pytest.approx(4 / 9)


def test_a_prefix_that_is_still_computed_is_no_hit() -> None:
    """Both prompts arrive at once and two lanes are free: each is computed in full."""
    report = run([prompt(0, 1, 2, 3, 4), prompt(0, 1, 2, 3, 4, 5)], lanes=2)
    assert 0.0 == report["rates"]["logical"]


def test_a_lane_serves_one_after_the_other() -> None:
    """The second waits for the first; with two lanes it does not."""
    both = [prompt(0, 1, 2), prompt(0, 3, 4)]
    assert [10_240.0, 20_480.0] == [run(both)["ttft_us"][name] for name in ("p50", "p99")]
    assert [10_240.0, 10_240.0] == [run(both, lanes=2)["ttft_us"][name] for name in ("p50", "p99")]


def test_demoted_blocks_come_back_over_the_path() -> None:
    """Room for four blocks on the device: the first prompt has gone to the host when it is asked for again."""
    story = [prompt(0, 1, 2, 3, 4), prompt(1000, 5, 6, 7, 8), prompt(2000, 1, 2, 3, 4, tokens=4 * UNIT + 100)]
    tiers: dict[str, Any] = {"capacity": 6, "host_blocks": 100}
    loaded = run(story, "always_load", **tiers)
    assert loaded["bytes"]["host"] > 0 and loaded["rates"]["recovered"] > 0
    cold = run(story, "always_recompute", **tiers)
    assert 0 == cold["bytes"]["host"]
    assert cold["prefill_us"] > loaded["prefill_us"]


def from_disk(**rates: float) -> tuple[list[TraceRequest], dict[str, Any]]:
    """Four blocks that two later prompts have pushed to the disk are asked for again, beside two new ones."""
    story = [prompt(0, 1, 2, 3, 4), prompt(1000, 5, 6, 7, 8), prompt(2000, 9, 10, 11, 12)]
    story += [prompt(3000, 1, 2, 3, 4, tokens=4 * UNIT + 100), prompt(3000, 13, 14)]
    tiers = {"capacity": 8, "host_blocks": 2, "disk_blocks": 100, "runtime": {"prefill_us_per_token": 10.0, **rates}}
    return story, tiers


def test_a_load_that_costs_more_than_it_saves_is_left_out() -> None:
    """From a slow disk always-load pays, the state-aware policy computes."""
    story, tiers = from_disk(disk_us_per_byte=0.01)
    blind, aware = (run(story, policy, **tiers) for policy in ("always_load", "state_aware"))
    assert blind["bytes"]["disk"] > 0 == aware["bytes"]["disk"]
    assert aware["ttft_us"]["p99"] < blind["ttft_us"]["p99"]


def test_what_fits_no_pool_is_turned_away_and_the_rest_is_served() -> None:
    """Five blocks do not fit a device of four."""
    report = run([prompt(0, 1, 2, 3, 4, 5), prompt(10, 6, 7)], capacity=4)
    assert (1, 1) == (report["requests"], report["refused"])


def test_a_request_waits_for_room_that_others_were_promised() -> None:
    """Two prompts of three blocks, a device of four, two lanes: the second starts when the first has ended."""
    report = run([prompt(0, 1, 2, 3), prompt(0, 4, 5, 6)], capacity=4, lanes=2)
    assert report["deferrals"] > 0
    assert [15_360.0, 30_720.0] == [report["ttft_us"]["p50"], report["ttft_us"]["p99"]]


def test_blocks_of_a_cached_prefix_are_promised_too() -> None:
    """A device of eight blocks: a request that reuses six of its eight leaves no room for one of six beside it."""
    story = [prompt(0, 1, 2, 3, 4, 5, 6), prompt(1000, 1, 2, 3, 4, 5, 6, 7, 8), prompt(1000, 11, 12, 13, 14, 15, 16)]
    report = run(story, "most_reuse", capacity=8, lanes=2)
    assert report["deferrals"] > 0


def test_an_asynchronous_load_leaves_the_lane_to_others() -> None:
    """While the bytes of one request travel, the other one is computed."""
    story, tiers = from_disk(disk_us_per_byte=0.0003)
    aware, blind = (run(story, policy, **tiers) for policy in ("state_aware", "always_load"))
    assert 1 == aware["executions"]["asynchronous"]
    assert blind["bytes"] == aware["bytes"]
    assert aware["ttft_us"]["mean"] < blind["ttft_us"]["mean"]


@pytest.mark.parametrize(
    ("policy", "edits"),
    [
        (
            "state_aware",
            {
                ("pools", "staging", "id"): "buffer",
                ("admission", "staging_has_room", "require"): "demand.buffer <= runtime.staging_bytes",
            },
        ),
        ("longest_hit", {("runtime", "disk_backlog_us"): None, ("runtime", "host_backlog_us"): None}),
    ],
)
def test_names_of_pools_and_of_load_are_the_rulebook_s(policy: str, edits: dict[Any, object]) -> None:
    """A buffer of another name is given back as early; a load that no rule reads need not be declared."""
    source = read_source("mixed_attention")
    for path, value in edits.items():
        source, _ = source.edited(path, value)
    other = bind_rulebook(resolve(source), load_profile(QWEN))
    story, tiers = from_disk(disk_us_per_byte=0.0003)
    usual, renamed = (evaluate_policy(story, bound, policy, **tiers) for bound in (engine_of(QWEN).bound, other))
    assert usual.bytes["disk"] > 0
    assert (usual.ttft_us, usual.executions) == (renamed.ttft_us, renamed.executions)


def test_a_path_without_a_price_is_told() -> None:
    """What is copied down must have one."""
    with pytest.raises(UsageError, match="what a byte to the host costs is not known"):
        run([prompt(0, 1)], host_blocks=10, runtime={"host_us_per_byte": None})


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_nobody_is_lost(data: st.DataObject) -> None:
    """Any small workload, model, policy, tiers and lanes: all are served or turned away, and the parts sum."""
    requests = list(synthesize(60, seed=data.draw(st.integers(0, 99))))
    lanes = data.draw(st.integers(1, 3))
    report = run(
        requests,
        data.draw(st.sampled_from(POLICIES)),
        data.draw(st.sampled_from((V4, GEMMA, QWEN))),
        capacity=data.draw(st.sampled_from((20, 200, 5000))),
        host_blocks=data.draw(st.sampled_from((0, 50, None))),
        disk_blocks=data.draw(st.sampled_from((0, 100))),
        lanes=lanes,
        pace=data.draw(st.sampled_from((0.5, 20.0))),
    )
    assert len(requests) == report["requests"] + report["refused"]
    rates = report["rates"]
    assert rates["logical"] == pytest.approx(rates["effective"] + rates["recovered"] + rates["recomputed"])
    assert 0 <= report["busy"] <= 1 + 1e-9
    assert report["ttft_us"]["p50"] <= report["ttft_us"]["p90"] <= report["ttft_us"]["p99"]


@pytest.mark.parametrize(
    ("settings_", "message"),
    [({"lanes": 0}, "lanes"), ({"pace": 0}, "pace"), ({"policy": "mine"}, "policy")],
)
def test_settings_that_cannot_be_used_are_refused(settings_: dict[str, Any], message: str) -> None:
    """With a typed error that names them."""
    with pytest.raises(UsageError, match=message):
        run([prompt(0, 1)], **settings_)


@given(st.lists(st.floats(0, 1e9), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values: list[float], share: int) -> None:
    """Nearest rank: the least such value."""
    rising = sorted(values)
    found = percentile(rising, share)
    assert found in rising
    assert sum(one <= found for one in rising) * 100 >= share * len(rising)
    below = [one for one in rising if one < found]
    assert not below or sum(one <= below[-1] for one in rising) * 100 < share * len(rising)
