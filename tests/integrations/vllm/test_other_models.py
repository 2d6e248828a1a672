"""A whole vLLM on a CPU with models of other kinds of attention than Gemma's."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.integrations.vllm.comparing import CLOSE, furthest, reused, same_tokens
from tests.integrations.vllm.conftest import Served

pytestmark = pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed: make integration-vllm")

# By model, its groups in the profile.
MODELS = {"gpt_oss": ["full_1", "window_0"], "llama": ["full_0"]}


@pytest.mark.parametrize("model", MODELS)
def test_what_is_reused_is_what_was_computed(served: Served, model: str) -> None:
    """Every whole block of a repeated prompt is reused, in every group, and answers stay the same."""
    told = served("serve_kinds", model)
    assert MODELS[model] == told["groups"]
    assert [288, 416, 256, 96, 64, 512, 544, 0] == reused(told["reused"])
    assert same_tokens(told["computed"], told["reused"])
    assert furthest(told["computed"], told["reused"]) < CLOSE


@pytest.mark.parametrize("model", MODELS)
def test_a_torn_block_is_computed_anew(served: Served, model: str) -> None:
    """As for Gemma: less is reused, down to the last boundary before it."""
    told = served("serve_kinds", model)
    assert reused(told["torn"])[0] <= 128
    assert furthest(told["torn, computed"], told["torn"]) < CLOSE
