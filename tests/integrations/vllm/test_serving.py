"""vLLM as `vllm serve` runs it: engine and worker in processes of their own, with nothing but the flag."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.integrations.vllm.comparing import CLOSE, FAR, furthest, reused, same_tokens
from tests.integrations.vllm.conftest import Served

pytestmark = pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed: make integration-vllm")


def test_the_flag_alone_gates_an_engine_in_other_processes(served: Served) -> None:
    """Entry points do the rest: the second turn is reused, and all answers are those of an engine without a cache."""
    expected, gated = served("serve_async", "off", "async"), served("serve_async", "gated", "async")
    assert [288, 416, 256, 96, 64, 512, 544, 0] == reused(gated["second"])
    for turn in ("first", "second", "other weights"):
        assert same_tokens(expected[turn], gated[turn])
        assert furthest(expected[turn], gated[turn]) < CLOSE


def test_weights_that_change_in_a_worker_are_noticed_in_the_scheduler(served: Served) -> None:
    """Plain vLLM goes on with rows of the old weights; the gate refuses them, without anybody resetting the cache."""
    expected, plain, gated = (
        served("serve_async", mode, "async")["other weights"] for mode in ("off", "plain", "gated")
    )
    assert furthest(expected, plain) > FAR
    assert 0 == sum(reused(gated)) < sum(reused(plain))


def test_rates_reach_the_metrics_of_the_server(served: Served) -> None:
    """The stat logger's entry point counts what came from the engine's process."""
    metrics = served("serve_async", "gated", "async")["metrics"]
    logical, effective = (metrics[f"vllm:hitproof_tokens_total {part}"] for part in ("logical", "effective"))
    assert 0 < effective == metrics["vllm:prefix_cache_hits_total"] < logical
    assert metrics["vllm:hitproof_tokens_total recomputed"] == logical - effective
