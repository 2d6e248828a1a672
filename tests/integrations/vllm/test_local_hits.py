"""A whole vLLM on a CPU: local hits of every group pass the rulebook, and planted faults do not."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.integrations.vllm.comparing import CLOSE, FAR, furthest, reused, same_tokens
from tests.integrations.vllm.conftest import Served

pytestmark = pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed: make integration-vllm")

FAULTS = (
    "stale entries",
    "stale window entries",
    "stale weights",
    "torn",
    "torn window",
    "torn behind a boundary",
    "foreign adapter",
    "other layout",
)


@pytest.mark.parametrize("turn", ["first time", "second time", "same batch"])
def test_what_is_served_is_what_would_be_computed(served: Served, turn: str) -> None:
    """With the gate, tokens and log-probabilities are those of an engine without a prefix cache."""
    expected, gated = served("serve_local", "off")[turn], served("serve_local", "gated")[turn]
    assert same_tokens(expected, gated)
    assert furthest(expected, gated) < CLOSE


def test_good_hits_are_reused_in_full(served: Served) -> None:
    """Of prompts that were served before, the gate lets through as much as vLLM finds, and that is most of it."""
    plain, gated = served("serve_local", "plain")["second time"], served("serve_local", "gated")["second time"]
    assert reused(plain) == reused(gated)
    assert sum(reused(gated)) > 2000


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_changes_what_plain_vllm_answers(served: Served, fault: str) -> None:
    """Without the gate the bad blocks are used, and the answer is another; else nothing was planted."""
    expected, plain = served("serve_local", "off")[fault], served("serve_local", "plain")[fault]
    assert all(reused(plain))
    assert furthest(expected, plain) > FAR


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refused_and_computed_anew(served: Served, fault: str) -> None:
    """With the gate less is reused, and the answer is as if nothing had been cached."""
    expected, plain, gated = (served("serve_local", mode)[fault] for mode in ("off", "plain", "gated"))
    assert sum(reused(gated)) < sum(reused(plain))
    assert same_tokens(expected, gated)
    assert furthest(expected, gated) < CLOSE


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_computed_anew_is_reused_again(served: Served, fault: str) -> None:
    """The bad blocks are gone for good: the next request hits what took their place."""
    expected = served("serve_local", "off")[f"{fault}, again"]
    plain, gated = (served("serve_local", mode)[f"{fault}, again"] for mode in ("plain", "gated"))
    assert reused(plain) == reused(gated)
    assert furthest(expected, gated) < CLOSE
    assert furthest(expected, plain) > FAR


def test_a_shorter_hit_is_taken_where_one_is_whole(served: Served) -> None:
    """A torn block costs what lies behind it, down to the last boundary at which every group can go on."""
    first, second = reused(served("serve_local", "gated")["torn behind a boundary"])
    assert (first, second) == (192, 192)


def test_rates_are_kept_apart_in_the_metrics_of_vllm(served: Served) -> None:
    """What the index claimed and what was reused are two series beside vLLM's own, and the gate counts the same."""
    told = served("serve_local", "gated")
    metrics, counters = told["metrics"], told["counters"]
    for part in ("touched", "logical", "effective", "recomputed"):
        assert counters[part] == metrics[f"vllm:hitproof_tokens {part}"]
    assert metrics["vllm:prefix_cache_hits"] == counters["effective"] < counters["logical"]


def test_nothing_happens_without_the_flag(served: Served) -> None:
    """The package is installed in both engines, but an engine without the flag has no series and tells nothing."""
    plain = served("serve_local", "plain")
    assert not any("hitproof" in name for name in plain["metrics"])
    assert "hitproof gates" not in plain["printed"]
    assert "hitproof gates" in served("serve_local", "gated")["printed"]
