"""A whole vLLM on a CPU: pages of a shared folder are judged before they reach the cache."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.integrations.vllm.comparing import CLOSE, FAR, furthest, reused, same_tokens
from tests.integrations.vllm.conftest import Served

pytestmark = pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed: make integration-vllm")

# By fault, the checks that must refuse it.
FAULTS = {
    "torn": "fingerprint_matches",
    "foreign prompt": "tokens_match",
    "other layout": "layout_matches",
    "foreign adapter": "same_adapter",
    "stale weights": "same_weights",
}


@pytest.mark.parametrize("turn", ["clean", "clean, again"])
def test_good_pages_are_loaded_into_every_group(served: Served, turn: str) -> None:
    """With an empty cache and a full folder, prompts are served from pages, and the answers stay the same."""
    expected, gated = served("serve_pages", "off")[turn], served("serve_pages", "gated")[turn]
    assert [288, 416, 256, 96, 64, 512, 544, 0] == reused(gated)
    assert same_tokens(expected, gated)
    assert furthest(expected, gated) < CLOSE


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_page_changes_the_answer_of_who_trusts_it(served: Served, fault: str) -> None:
    """A connector that takes pages for what their names say answers something else."""
    expected, trusting = served("serve_pages", "off")[fault], served("serve_pages", "trusting")[fault]
    assert all(reused(trusting))
    assert furthest(expected, trusting) > FAR


@pytest.mark.parametrize("fault", [*FAULTS, "cut"])
def test_a_bad_page_is_refused_and_its_tokens_computed(served: Served, fault: str) -> None:
    """The load fails through vLLM's own channel, and the answer is as if there were no pages."""
    expected, gated = served("serve_pages", "off")[fault], served("serve_pages", "gated")[fault]
    assert 0 == reused(gated)[0]
    assert same_tokens(expected, gated)
    assert furthest(expected, gated) < CLOSE


@pytest.mark.parametrize("fault", [*FAULTS, "cut"])
def test_good_pages_take_the_place_of_refused_ones(served: Served, fault: str) -> None:
    """Refused pages leave the folder, what was computed is saved, and the next engine finds it."""
    expected, gated = served("serve_pages", "off")[f"{fault}, again"], served("serve_pages", "gated")[f"{fault}, again"]
    assert all(reused(gated))
    assert furthest(expected, gated) < CLOSE


@pytest.mark.parametrize(("fault", "check"), FAULTS.items())
def test_the_log_says_which_check_refused_a_page(served: Served, fault: str, check: str) -> None:
    """Each kind of fault is refused by the rule that is there for it."""
    refusals = [line for line in served("serve_pages", "gated")["printed"].splitlines() if "refused page" in line]
    assert any(f"/{check}" in line for line in refusals), fault


def test_what_pages_claimed_and_what_they_brought_are_kept_apart(served: Served) -> None:
    """Both are series of the server's own, and vLLM's count of external hits is the claim."""
    metrics = served("serve_pages", "gated")["metrics"]
    logical, effective = (metrics[f"vllm:hitproof_page_tokens {part}"] for part in ("logical", "effective"))
    assert 0 < effective < logical == metrics["vllm:external_prefix_cache_hits"]
    assert 0 < metrics["vllm:hitproof_refused_pages"]
