"""A replay caches what the retention says, decides by the rules alone, and its rates add up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitproof.engine.replay import ReplayReport, markdown_table, replay, replay_table
from hitproof.engine.trace import TraceRequest, read_trace, synthesize
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import UsageError

V4, GEMMA, QWEN = MODELS = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
MODES = ("full", "periodic", "zero", "until_reallocated")
TRACE = Path(__file__).parents[2].parent / "shared" / "data" / "traces" / "mooncake-conversation"
PARTS = ("effective_reuse_rate", "recovered_rate", "recomputed_rate")
TIERED: dict[str, Any] = {"capacity": 300, "host_blocks": 500, "disk_blocks": 700}


@cache
def model(name: str) -> BoundRulebook:
    """The shipped rulebook, bound to a shipped profile."""
    return bind_rulebook(load_rulebook("mixed_attention"), load_profile(name))


@cache
def drawn(requests: int = 400) -> tuple[TraceRequest, ...]:
    """A synthetic workload."""
    return tuple(synthesize(requests, 11))


def prompt(*ids: int, extra: int = 100) -> TraceRequest:
    """A prompt of whole blocks, and of a last block that is filled by `extra` tokens, if any."""
    blocks = (*ids, 1000 + ids[-1]) if extra else ids
    return TraceRequest(0, 512 * len(ids) + extra, 1, blocks)


def outcome(
    requests: Sequence[TraceRequest], name: str, mode: str, *, capacity: int | None = None, **settings: Any
) -> tuple[float, float, float]:
    """Blocks of the last request: reused as they lay, recovered, and computed again although they were known."""
    reports = [
        replay(one, model(name), capacity=capacity, retention=mode, **settings).as_dict()
        for one in (requests, requests[:-1])
    ]
    found = [[round(one[part]["blocks"] * one["block_touches"]) for part in PARTS] for one in reports]
    now, before = found
    return (now[0] - before[0], now[1] - before[1], now[2] - before[2])


def figures(report: ReplayReport) -> dict[str, Any]:
    """All of a report but the wall time."""
    return {name: value for name, value in report.as_dict().items() if name != "seconds"}


class TestBlocks:
    """What counts as a hit, and how much of it can be used."""

    @pytest.mark.parametrize("name", MODELS)
    def test_at_least_one_token_is_computed(self, name: str) -> None:
        """A prompt of three whole blocks that is known entirely resumes after two."""
        assert (2, 0, 1) == outcome([prompt(1, 2, 3, extra=0)] * 2, name, "full")

    @pytest.mark.parametrize("name", MODELS)
    def test_a_partly_filled_block_is_a_logical_hit_without_a_boundary(self, name: str) -> None:
        """The same prompt again: four blocks are known, three end in a boundary."""
        assert (3, 0, 1) == outcome([prompt(1, 2, 3)] * 2, name, "full")

    def test_a_block_known_in_part_gives_no_boundary_to_a_longer_prompt(self) -> None:
        """Its id is known, its end was never computed; once it was, it counts."""
        short, long = TraceRequest(0, 700, 1, (1, 2)), TraceRequest(0, 1_600, 1, (1, 2, 3, 4))
        assert (1, 0, 1) == outcome([short, long], QWEN, "full")
        assert (3, 0, 1) == outcome([short, long, long], QWEN, "full")

    def test_a_hole_ends_the_hit(self) -> None:
        """Known blocks behind an unknown one are not a prefix."""
        assert (1, 0, 0) == outcome([prompt(1, 2, 3), prompt(1, 9, 3)], V4, "full")

    def test_tokens_are_counted_beside_blocks(self) -> None:
        """Two prompts of 1,636 tokens: the second claims 1,636, reuses 1,536, computes 100 again."""
        report = replay([prompt(1, 2, 3)] * 2, model(V4), capacity=None).as_dict()
        assert (8, 3_272) == (report["block_touches"], report["token_touches"])
        assert [1_636 / 3_272, 1_536 / 3_272, 0.0, 100 / 3_272] == [
            report[name]["tokens"] for name in ("logical_hit_rate", *PARTS)
        ]

    def test_an_empty_trace_has_no_rates(self) -> None:
        """Nothing touched is no division by zero."""
        report = replay([], model(V4), capacity=None).as_dict()
        assert (0, 0.0, {}) == (report["requests"], report["logical_hit_rate"]["blocks"], report["decisions"])


class TestRetention:
    """Small traces, worked out by hand."""

    @pytest.mark.parametrize(("mode", "expected"), [("full", (5, 0, 0)), ("periodic", (4, 0, 1)), ("zero", (0, 0, 5))])
    def test_v4_resumes_where_a_window_was_kept(self, mode: str, expected: tuple[int, int, int]) -> None:
        """Six blocks, period 4: windows at 4 and 6. A prompt that shares five of them resumes at 5, 4 or nowhere."""
        requests = [prompt(1, 2, 3, 4, 5, 6), prompt(1, 2, 3, 4, 5, 7)]
        assert expected == outcome(requests, V4, mode, period=4)

    @pytest.mark.parametrize("name", [GEMMA, QWEN])
    @pytest.mark.parametrize(("mode", "expected"), [("full", (5, 0, 0)), ("periodic", (4, 0, 1)), ("zero", (0, 0, 5))])
    def test_other_models_do_so_too(self, name: str, mode: str, expected: tuple[int, int, int]) -> None:
        """A window of two blocks and a recurrent state follow the same policy."""
        requests = [prompt(1, 2, 3, 4, 5, 6), prompt(1, 2, 3, 4, 5, 7)]
        assert expected == outcome(requests, name, mode, period=4)

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("mode", ["periodic", "until_reallocated"])
    def test_the_last_boundary_of_a_request_is_kept(self, name: str, mode: str) -> None:
        """The next turn of a conversation resumes where the one before it ended."""
        assert (3, 0, 0) == outcome([prompt(1, 2, 3), prompt(1, 2, 3, 4)], name, mode)

    @pytest.mark.parametrize("name", MODELS)
    def test_until_reallocated_keeps_no_other(self, name: str) -> None:
        """A prompt that leaves the path earlier finds no state, and these are too short for a warm-up."""
        assert (0, 0, 2) == outcome([prompt(1, 2, 3), prompt(1, 2, 4)], name, "until_reallocated")

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize(("mode", "expected"), [("full", (0, 4, 0)), ("until_reallocated", (0, 0, 4))])
    def test_until_reallocated_loses_what_leaves_the_device(
        self, name: str, mode: str, expected: tuple[int, int, int]
    ) -> None:
        """Five other blocks push the prompt to the host: `full` brings it back, the other has lost its state."""
        requests = [prompt(1, 2, 3, 4), prompt(5, 6, 7, 8), prompt(1, 2, 3, 4, 9)]
        assert expected == outcome(requests, name, mode, capacity=5, host_blocks=99)

    def test_until_reallocated_keeps_what_stays(self) -> None:
        """The oldest blocks went to the host, the last one with the state did not: the others are promoted."""
        requests = [prompt(1, 2, 3, 4), prompt(5, 6), prompt(1, 2, 3, 4, 9)]
        assert (0, 4, 0) == outcome(requests, V4, "until_reallocated", capacity=5, host_blocks=99)

    @pytest.mark.parametrize(("blocks", "expected"), [(10, (0, 0, 10)), (11, (0, 11, 0)), (12, (0, 12, 0))])
    def test_v4_without_windows_warms_up_where_that_is_cheaper(
        self, blocks: int, expected: tuple[int, int, int]
    ) -> None:
        """A warm-up passes 5,461 tokens and the 8 of an unfinished entry: it needs more history than that."""
        ids = range(blocks)
        assert expected == outcome([prompt(*ids), prompt(*ids, 99)], V4, "zero")

    def test_a_warm_up_is_priced_once(self) -> None:
        """Three groups need it; 5,461 + 8 tokens at 40 us are paid."""
        ids = range(12)
        report = replay([prompt(*ids), prompt(*ids, 99)], model(V4), capacity=None, retention="zero").as_dict()
        assert {"in_place": 0.0, "intra_layer": 5_469 * 40.0, "full_recompute": 0.0} == report["recovery_cost_us"]
        assert (12 * 512 + 100 + 612) * 40.0 == report["prefill_us"]

    def test_a_window_of_two_blocks_needs_both(self) -> None:
        """Gemma's rows for boundary 3 reach into block 2; boundary 2 would need rows of block 1."""
        first = prompt(1, 2, 3)
        assert (3, 0, 0) == outcome([first, prompt(1, 2, 3, 4)], GEMMA, "periodic", period=99)
        assert (0, 0, 2) == outcome([first, prompt(1, 2, 4)], GEMMA, "periodic", period=99)


class TestTiers:
    """Evictions are demotions, and coming back has a price."""

    @pytest.mark.parametrize(("tier", "price"), [("host_blocks", 0.00004), ("disk_blocks", 0.0002)])
    def test_qwen_pays_for_its_rows_and_one_state(self, tier: str, price: float) -> None:
        """1,536 rows of 24,576 bytes and a state of 77,266,944 bytes, each with one launch."""
        requests = [prompt(1, 2, 3), prompt(4, 5, 6), prompt(1, 2, 3, 9)]
        lower: dict[str, Any] = {tier: 99}
        report = replay(requests, model(QWEN), capacity=4, **lower).as_dict()
        paid = (1_536 * 24_576 + 77_266_944) * price + 20
        assert paid == pytest.approx(report["recovery_cost_us"]["in_place"])
        assert {"miss": 2, "repair": 1} == report["decisions"]

    def test_an_unwanted_window_is_not_brought_back(self) -> None:
        """V4 promotes 3 runs, one window of 127 rows and two states, and maps the index to its new rows."""
        requests = [prompt(1, 2, 3), prompt(4, 5, 6), prompt(1, 2, 3, 9)]
        report = replay(requests, model(V4), capacity=4, host_blocks=99).as_dict()
        entries = 384 * 12_264 + 384 * 2_772 + 12 * 11_680
        states = 1_204_224 + 301_056
        paid = (entries + 127 * 25_112 + states) * 0.00004 + 6 * 10 + 384 * 2_772 * 0.0000005 + 10
        assert paid == pytest.approx(report["recovery_cost_us"]["in_place"])

    def test_what_leaves_the_last_tier_is_lost(self) -> None:
        """Without lower tiers nothing is recovered."""
        requests = [prompt(1, 2, 3), prompt(4, 5, 6), prompt(1, 2, 3, 9)]
        assert (0, 0, 0) == outcome(requests, V4, "full", capacity=4)

    def test_what_was_promoted_is_on_the_device(self) -> None:
        """The same prompt once more is clean."""
        requests = [prompt(1, 2, 3), prompt(4, 5, 6), prompt(1, 2, 3, 9), prompt(1, 2, 3, 9)]
        assert (4, 0, 1) == outcome(requests, V4, "full", capacity=5, host_blocks=99)

    def test_rates_can_be_replaced(self) -> None:
        """Where prefill costs almost nothing, nothing is worth a copy."""
        requests = [prompt(1, 2, 3), prompt(4, 5, 6), prompt(1, 2, 3, 9)]
        cheap = {"prefill_us_per_token": 0.001}
        assert (0, 0, 3) == outcome(requests, V4, "full", capacity=4, host_blocks=99, runtime=cheap)


class TestRates:
    """What holds for every workload."""

    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("rate", [0.0, 0.05])
    def test_the_parts_sum_to_the_logical_rate(self, name: str, mode: str, rate: float) -> None:
        """Effective, recovered and recomputed are all that was logically hit, in blocks and in tokens."""
        report = replay(drawn(), model(name), retention=mode, version_change_rate=rate, seed=3, **TIERED).as_dict()
        for unit in ("blocks", "tokens"):
            assert report["logical_hit_rate"][unit] == pytest.approx(sum(report[part][unit] for part in PARTS))
            assert all(report[part][unit] >= 0 for part in PARTS)
        assert len(drawn()) == sum(report["decisions"].values()) == report["requests"]

    @pytest.mark.parametrize("name", MODELS)
    def test_the_logical_rate_depends_on_the_blocks_alone(self, name: str) -> None:
        """Neither the model nor the retention changes what a hash-only cache would claim."""
        logical = [replay(drawn(), model(name), retention=mode, **TIERED).as_dict() for mode in MODES]
        usual = replay(drawn(), model(V4), **TIERED).as_dict()
        assert all(usual["logical_hit_rate"] == one["logical_hit_rate"] for one in logical)

    @pytest.mark.parametrize("name", MODELS)
    def test_more_kept_state_never_costs_more(self, name: str) -> None:
        """`full` keeps what `periodic` keeps, that one what `until_reallocated` keeps, and `zero` nothing.

        It is the price that falls, not always the length: a kept window further back can beat a warm-up.
        """
        prices, reused = [], []
        order: tuple[str, ...] = ("full", "periodic", "until_reallocated", "zero")
        for mode in order:
            report = replay(drawn(), model(name), retention=mode, **TIERED).as_dict()
            costs = report["recovery_cost_us"]
            prices.append(costs["in_place"] + costs["intra_layer"] + report["prefill_us"])
            reused.append(sum(report[part]["tokens"] for part in PARTS[:2]))
        assert sorted(prices) == prices
        assert reused[0] >= max(reused[1:])

    @settings(max_examples=40)
    @given(data=st.data())
    def test_random_trees_of_prompts_keep_every_promise(self, data: st.DataObject) -> None:
        """Any small workload, tiers and retention: the parts sum, and no request reuses its whole prompt."""
        paths = st.lists(st.integers(1, 3), min_size=1, max_size=14)
        requests = []
        for path in data.draw(st.lists(paths, min_size=1, max_size=12)):
            ids = [hash(tuple(path[: place + 1])) % 2**61 for place in range(len(path))]
            requests.append(TraceRequest(0, 512 * len(ids) - data.draw(st.integers(0, 511)), 1, tuple(ids)))
        report = replay(
            requests,
            model(data.draw(st.sampled_from(MODELS))),
            capacity=data.draw(st.integers(0, 30) | st.none()),
            host_blocks=data.draw(st.integers(0, 20)),
            disk_blocks=data.draw(st.integers(0, 20)),
            retention=data.draw(st.sampled_from(MODES)),
            period=data.draw(st.integers(1, 5)),
            version_change_rate=data.draw(st.sampled_from((0.0, 0.3))),
        ).as_dict()
        for unit in ("blocks", "tokens"):
            assert report["logical_hit_rate"][unit] == pytest.approx(sum(report[part][unit] for part in PARTS))
        assert all(report[part]["tokens"] >= 0 for part in PARTS)
        assert sum(report[part]["tokens"] for part in PARTS[:2]) < 1


class TestInjected:
    """Version changes are drawn, counted and named as what they are."""

    def test_the_same_seed_gives_the_same_figures(self) -> None:
        """Only the wall time differs between two runs."""
        runs = [figures(replay(drawn(), model(V4), version_change_rate=0.02, seed=5, **TIERED)) for _ in range(2)]
        assert runs[0] == runs[1]
        assert 0 < runs[0]["injected"] == sum(runs[0]["injected_by_fact"].values())

    def test_another_seed_draws_other_changes(self) -> None:
        """The seed decides which requests meet a change, and of which version."""
        first, second = (
            figures(replay(drawn(), model(V4), version_change_rate=0.02, seed=seed, **TIERED)) for seed in (5, 6)
        )
        assert first["decisions"] != second["decisions"]

    def test_nothing_is_injected_unless_asked(self) -> None:
        """The usual replay has no made-up event in it."""
        report = replay(drawn(), model(V4), **TIERED).as_dict()
        assert (0, {}) == (report["injected"], report["injected_by_fact"])

    def test_changes_that_a_model_cannot_notice_are_not_drawn(self) -> None:
        """Qwen has neither window, compressor nor index: only the kernel's version can change."""
        report = replay(drawn(), model(QWEN), version_change_rate=1.0, **TIERED).as_dict()
        assert {"kernel.version": len(drawn())} == report["injected_by_fact"]

    def test_a_kernel_change_is_mended_once(self) -> None:
        """A changed layout version is mended in place; what was mended is not mended again."""
        bound, requests = model(QWEN), [prompt(1, 2, 3), prompt(1, 2, 3, 4), prompt(1, 2, 3, 4, 5)]
        rate, seed = 0.5, next(seed for seed in range(99) if _changes(seed, 3) == [False, True, False])
        report = replay(requests, bound, capacity=None, version_change_rate=rate, seed=seed).as_dict()
        assert {"miss": 1, "repair": 1, "reuse": 1} == report["decisions"]


def _changes(seed: int, requests: int) -> list[bool]:
    """Which of the first requests meet a change, at a rate of one half and with one version to change."""
    source = Random(seed)
    drawn_changes = []
    for _ in range(requests):
        drawn_changes.append(source.random() < 0.5)
        if drawn_changes[-1]:
            source.choice(["kernel.version"])
    return drawn_changes


class TestSettings:
    """What cannot be used is refused at once."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"retention": "some"},
            {"period": 0},
            {"capacity": -1},
            {"version_change_rate": 1.5},
            {"version_change_rate": True},
            {"runtime": {"speed": 1}},
            {"request": {"user": "x"}},
        ],
    )
    def test_a_setting_out_of_range_is_refused(self, wrong: dict[str, Any]) -> None:
        """Unknown modes and facts, and numbers that mean nothing."""
        with pytest.raises(UsageError):
            replay([prompt(1)], model(V4), **{"capacity": None, **wrong})

    def test_blocks_of_two_sizes_are_refused(self) -> None:
        """Ids of different block sizes cannot share a cache."""
        with pytest.raises(UsageError, match="differ in size"):
            replay([prompt(1), TraceRequest(0, 10, 1, (1,), 256)], model(V4), capacity=None)

    def test_settings_are_in_the_report(self) -> None:
        """A figure without its settings says nothing."""
        told = replay([prompt(1)], model(V4), capacity=7, disk_blocks=9, period=3, seed=2).as_dict()["settings"]
        assert (V4, 512, 7, 0, 9, "full", 3, 2) == tuple(
            told[name]
            for name in [
                "model",
                "block_tokens",
                "capacity",
                "host_blocks",
                "disk_blocks",
                "retention",
                "period",
                "seed",
            ]
        )


class TestTable:
    """Many replays side by side."""

    def test_a_row_for_each_combination(self) -> None:
        """Two models, two capacities and two policies make eight rows below the heading."""
        reports = list(
            replay_table(drawn(50), [model(V4), model(QWEN)], [(None, 0, 0), (100, 200, 0)], ("full", "zero"))
        )
        lines = markdown_table(reports).splitlines()
        assert 2 + 8 == len(lines) == 2 + len(reports)
        assert all(11 == line.count(" | ") + 1 for line in lines)
        assert lines[2].startswith("| deepseek-v4-flash | unlimited | - | - | full |")


@pytest.mark.skipif(not TRACE.is_dir(), reason="the public traces are not beside this repository")
class TestPublishedTrace:
    """The Mooncake conversation trace."""

    @pytest.mark.parametrize(("capacity", "percent"), [(None, 36.64), (1_000, 4.45), (10_000, 21.12), (50_000, 35.46)])
    def test_logical_hits_are_those_measured_apart_from_this_code(self, capacity: int | None, percent: float) -> None:
        """Block hit rates of a plain LRU of that many blocks, as its data sheet has them."""
        requests = read_trace(TRACE / "conversation_trace.jsonl")
        report = replay(requests, model(QWEN), capacity=capacity, retention="zero").as_dict()
        assert (12_031, 288_500) == (report["requests"], report["block_touches"])
        assert percent == round(100 * report["logical_hit_rate"]["blocks"], 2)

    def test_v4_with_all_windows_reuses_all_but_the_last_block(self) -> None:
        """With an unlimited device and every window kept, only prompts known to their end lose a block."""
        requests = read_trace(TRACE / "conversation_trace.jsonl")
        report = replay(requests, model(V4), capacity=None).as_dict()
        assert (36.6, 0.0) == (
            round(100 * report["effective_reuse_rate"]["blocks"], 2),
            report["recovered_rate"]["blocks"],
        )
        assert {"miss": 1, "reuse": 12_030} == report["decisions"]
