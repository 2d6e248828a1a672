"""Models of the library with tiny sizes and random weights: their own code and their own caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from hitproof.integrations.transformers.stable_topk import choosing_stably
from hitproof.integrations.transformers.state.profile import profile_of
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile

__all__ = ["NAMES", "TinyModel", "random_tokens", "tiny_model"]

_VOCABULARY = 97
_SIZES: dict[str, Any] = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}


@dataclass(frozen=True)
class TinyModel:
    """A model with what is known of its cache.

    Args:
        name: One of `NAMES`.
        model: The library's model, ready to run; every forward pass chooses stably among equals.
        profile: Its cache groups, derived from its configuration.
        vocabulary: Tokens are 0 to this number, less one; 0 to 2 pad, begin and end.
    """

    name: str
    model: Any
    profile: Profile
    vocabulary: int


def tiny_model(name: str, seed: int = 0, dtype: torch.dtype = torch.float32) -> TinyModel:
    """A model of one kind with random numbers in every weight; the same seed gives the same model.

    Args:
        name: One of `NAMES`.
        seed: Of the weights.
        dtype: Of the weights and of what the cache keeps.

    Raises:
        UsageError: There is no such kind here.
    """
    made = _KINDS.get(name)
    if made is None:
        raise UsageError("no tiny model of that name", got=name, expected=", ".join(NAMES))
    with torch.random.fork_rng(devices=[]):
        # What the library draws itself is the same in every process too.
        torch.manual_seed(seed)
        # Experts one by one: their grouped kernel does not know every type.
        model = getattr(transformers, made.model)._from_config(
            made.config(), attn_implementation="eager", experts_implementation="eager"
        )
    model = model.to(dtype).eval()
    _randomize(model, seed)
    model.generation_config.pad_token_id = 0
    choosing_stably(model)
    return TinyModel(name, model, profile_of(model.config, name=name, dtype=dtype), _VOCABULARY)


def random_tokens(count: int, seed: int, batch: int = 1) -> torch.Tensor:
    """int64 [batch, count]: tokens that neither pad, begin nor end."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(3, _VOCABULARY, (batch, count), generator=draw)


def _randomize(model: Any, seed: int) -> None:
    """Noise in every weight: fresh norms and biases are ones and zeros, and would hide faults."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=draw, dtype=torch.float64).to(weight.dtype)
            if "position_bias" in name:
                weight.copy_(noise)
            elif weight.dim() == 1:
                # Norms with weights near one and biases near zero, as trained models have them.
                weight.add_(0.25 * noise)
            else:
                weight.copy_(1.1 * noise / weight.shape[-1] ** 0.5)


@dataclass(frozen=True)
class _Kind:
    config: Callable[[], Any]
    model: str


def _deepseek_v4() -> Any:
    """A window alone, ratio 4 with an index that chooses, ratio 128, and ratio 4 again."""
    csa, hca = "compressed_sparse_attention", "heavily_compressed_attention"
    kinds = ["sliding_attention", csa, hca, csa]
    return transformers.DeepseekV4Config(
        **_without("intermediate_size", "num_key_value_heads", "head_dim"),
        **_EXPERTS,
        head_dim=32,
        num_hidden_layers=len(kinds),
        layer_types=kinds,
        mlp_layer_types=["moe"] * len(kinds),
        n_routed_experts=4,
        q_lora_rank=24,
        partial_rotary_factor=0.25,
        sliding_window=12,
        o_groups=2,
        o_lora_rank=16,
        index_n_heads=3,
        index_head_dim=16,
        index_topk=6,
        hc_mult=2,
        hc_sinkhorn_iters=3,
        num_nextn_predict_layers=0,
    )


def _deepseek_v32() -> Any:
    """Latent rows in three layers, each with an index that chooses among them."""
    return transformers.DeepseekV32Config(
        **_without("head_dim", "num_key_value_heads"),
        **_EXPERTS,
        num_hidden_layers=3,
        num_key_value_heads=4,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        kv_lora_rank=24,
        q_lora_rank=24,
        qk_rope_head_dim=8,
        qk_nope_head_dim=12,
        v_head_dim=12,
        index_topk=12,
        index_head_dim=16,
        index_n_heads=3,
        first_k_dense_replace=1,
    )


def _gemma_3() -> Any:
    """Five local layers and a global one, whose positions are stretched as in the large models."""
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
    }
    return transformers.Gemma3TextConfig(
        **_SIZES, num_hidden_layers=6, sliding_window=12, query_pre_attn_scalar=16, rope_parameters=rope
    )


def _gpt_oss() -> Any:
    """Local and global layers in turn, with sinks."""
    sizes = {**_SIZES, "max_position_embeddings": 131_072}
    return transformers.GptOssConfig(
        **sizes, num_hidden_layers=4, sliding_window=16, num_local_experts=4, num_experts_per_tok=2
    )


def _qwen3_next() -> Any:
    """Three gated delta layers and a full one."""
    return transformers.Qwen3NextConfig(
        **_SIZES,
        **_EXPERTS,
        num_hidden_layers=4,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        shared_expert_intermediate_size=32,
    )


def _nemotron_h() -> Any:
    """State-space layers, one of full attention, and two that keep nothing.

    The library holds time steps above `time_step_min` where tokens come together and not where they come one by one. A
    bound that no step falls below makes both the same function, so that one can be compared with the other.
    """
    blocks = ["linear_attention", "moe", "linear_attention", "full_attention", "mlp", "linear_attention"]
    return transformers.NemotronHConfig(
        **_SIZES,
        **_EXPERTS,
        layers_block_type=blocks,
        ssm_state_size=8,
        mamba_num_heads=4,
        mamba_head_dim=16,
        n_groups=2,
        chunk_size=16,
        time_step_min=1e-9,
        n_routed_experts=4,
        moe_shared_expert_intermediate_size=32,
    )


def _without(*names: str) -> dict[str, Any]:
    return {name: size for name, size in _SIZES.items() if name not in names}


_KINDS: Mapping[str, _Kind] = {
    "deepseek-v3.2": _Kind(_deepseek_v32, "DeepseekV32ForCausalLM"),
    "deepseek-v4": _Kind(_deepseek_v4, "DeepseekV4ForCausalLM"),
    "gemma-3": _Kind(_gemma_3, "Gemma3ForCausalLM"),
    "gpt-oss": _Kind(_gpt_oss, "GptOssForCausalLM"),
    "nemotron-h": _Kind(_nemotron_h, "NemotronHForCausalLM"),
    "qwen3-next": _Kind(_qwen3_next, "Qwen3NextForCausalLM"),
}
NAMES: tuple[str, ...] = tuple(_KINDS)
