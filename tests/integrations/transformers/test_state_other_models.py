"""Models beside the six: what is derived for them holds too, and what no cache of the library is like is refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers.state import StateMap, profile_of  # noqa: E402
from hitproof.integrations.transformers.tiny import random_tokens  # noqa: E402
from hitproof.spec.errors import ProfileError  # noqa: E402
from tests.integrations.transformers.live import copied, error  # noqa: E402

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}
LLAMA4 = {"intermediate_size_mlp": 64, "num_local_experts": 2, "num_experts_per_tok": 1, "attention_chunk_size": 16}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {"head_dim": 16, "sliding_window": 16}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", {}),
    "llama4": ("Llama4TextConfig", "Llama4ForCausalLM", {"head_dim": 16, **LLAMA4}),
    "mistral": ("MistralConfig", "MistralForCausalLM", {"head_dim": 12, "sliding_window": 16}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", {}),
}


def model_of(config: Any, kind: str) -> Any:
    """A model of the library with its own random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return getattr(transformers, kind)._from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize("name", MODELS)
def test_another_model_continues_from_its_rows(name: str) -> None:
    """Full, sliding and chunked layers, inside the window, at its edges, and far behind it."""
    config, kind, more = MODELS[name]
    model = model_of(getattr(transformers, config)(**SIZES, **more), kind)
    state, tokens = StateMap(model, profile_of(model.config, dtype=torch.float32)), random_tokens(70, 5)
    for length in (7, 15, 16, 17, 32, 50):
        past = state.fresh()
        with torch.no_grad():
            cold = model(tokens, cache=state.fresh(), use_cache=True).logits[0, length:]
            model(tokens[:, :length], cache=past, use_cache=True)
            got = model(tokens[:, length:], cache=copied(state, past), use_cache=True).logits[0]
        assert error(got, cold) <= 1e-5


def test_an_unknown_kind_of_model_is_refused() -> None:
    """No profile is guessed."""
    with pytest.raises(ProfileError):
        profile_of(transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32), dtype=torch.float32)


def test_the_configurations_own_type_counts_where_none_is_given() -> None:
    """And a configuration without one is refused by the key."""
    config = transformers.LlamaConfig(**SIZES)
    with pytest.raises(ProfileError) as caught:
        profile_of(config)
    assert "dtype" in str(caught.value)
    config.dtype = torch.float16
    assert profile_of(config) == profile_of(config, dtype=torch.float16)
