"""DeepSeek-V4 and DeepSeek-V3.2 with tiny random weights: their own code and caches, and their layers' inputs kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers

from hitproof.kernels.index_rebuild import TokenIndexer
from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.recompress import Compressor
from hitproof.kernels.rotary import Rotary

__all__ = [
    "compressor_of",
    "indexer_of",
    "keeping_inputs",
    "new_cache",
    "projections_of",
    "random_tokens",
    "run",
    "stable_choice",
    "tiny_v32",
    "tiny_v4",
]

VOCABULARY = 97
WINDOW = 16


def tiny_v4(dtype: torch.dtype = torch.float32, seed: int = 0, top_k: int = 6) -> Any:
    """A DeepSeek-V4 of four layers: window only, ratio 4, ratio 128, ratio 4."""
    csa, hca = "compressed_sparse_attention", "heavily_compressed_attention"
    config = transformers.DeepseekV4Config(
        vocab_size=VOCABULARY,
        hidden_size=48,
        moe_intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        head_dim=32,
        q_lora_rank=24,
        num_experts_per_tok=2,
        n_routed_experts=4,
        layer_types=["sliding_attention", csa, hca, csa],
        mlp_layer_types=["moe"] * 4,
        partial_rotary_factor=0.25,
        sliding_window=WINDOW,
        o_groups=2,
        o_lora_rank=16,
        index_n_heads=3,
        index_head_dim=16,
        index_topk=top_k,
        hc_mult=2,
        hc_sinkhorn_iters=3,
        max_position_embeddings=4096,
        pad_token_id=0,
    )
    return _random(transformers.DeepseekV4ForCausalLM._from_config(config, attn_implementation="eager"), dtype, seed)


def tiny_v32(dtype: torch.dtype = torch.float32, seed: int = 0, top_k: int = 12) -> Any:
    """A DeepSeek-V3.2 of three layers, the first of them dense."""
    config = transformers.DeepseekV32Config(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=64,
        moe_intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
        kv_lora_rank=24,
        q_lora_rank=24,
        qk_rope_head_dim=8,
        v_head_dim=12,
        qk_nope_head_dim=12,
        index_topk=top_k,
        index_head_dim=16,
        index_n_heads=3,
        first_k_dense_replace=1,
        max_position_embeddings=4096,
        pad_token_id=0,
    )
    return _random(transformers.DeepseekV32ForCausalLM._from_config(config, attn_implementation="eager"), dtype, seed)


def new_cache(model: Any) -> Any:
    """An empty cache of the model's own kind."""
    return transformers.DynamicCache(config=model.config)


def random_tokens(count: int, seed: int) -> torch.Tensor:
    """[1, count] tokens."""
    return torch.randint(1, VOCABULARY, (1, count), generator=torch.Generator().manual_seed(seed))


def run(model: Any, tokens: torch.Tensor, cache: Any) -> torch.Tensor:
    """Logits [T, vocabulary] of tokens behind what the cache holds."""
    with torch.no_grad(), stable_choice():
        return model(tokens, cache=cache, use_cache=True).logits[0]


@contextmanager
def stable_choice() -> Iterator[None]:
    """While open, `Tensor.topk` breaks ties by place.

    The models' indexers choose with it, after a ReLU that makes many scores zero. As the library has it, a valid cache
    and a cold run may choose differently among equals, and differ by more than any fault that is looked for.
    """
    original = torch.Tensor.topk

    def stable(scores: torch.Tensor, k: int, dim: int = -1, **_: Any) -> Any:
        ordered = scores.sort(dim=dim, descending=True, stable=True)
        return torch.return_types.topk((ordered.values.narrow(dim, 0, k), ordered.indices.narrow(dim, 0, k)))

    torch.Tensor.topk = stable
    try:
        yield
    finally:
        torch.Tensor.topk = original


@contextmanager
def keeping_inputs(model: Any) -> Iterator[dict[int, list[torch.Tensor]]]:
    """While open, every pass appends [T, X], what each layer's attention was given, to its layer's list."""
    kept: dict[int, list[torch.Tensor]] = {index: [] for index in range(len(model.model.layers))}
    hooks = [
        layer.input_layernorm.register_forward_hook(
            lambda _module, _args, out, index=index: kept[index].append(out[0].detach().clone())
        )
        for index, layer in enumerate(model.model.layers)
    ]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def compressor_of(module: Any) -> Compressor:
    """The pooling weights of one of DeepSeek-V4's three modules that compress."""
    return Compressor(
        position_bias=module.position_bias.detach(),
        norm=Norm(module.kv_norm.weight.detach(), module.kv_norm.variance_epsilon),
        rotary=Rotary(module.rotary_emb.compress_inv_freq, pairing="interleaved", place="trailing"),
        overlap=module.position_bias.shape[1] == 2 * module.head_dim,
    )


def projections_of(module: Any) -> tuple[Linear, Linear]:
    """Value and gate projection of such a module."""
    return Linear(module.kv_proj.weight.detach()), Linear(module.gate_proj.weight.detach())


def indexer_of(model: Any, layer: int) -> TokenIndexer:
    """The key path of one of DeepSeek-V3.2's indexers."""
    module = model.model.layers[layer].self_attn.indexer
    return TokenIndexer(
        key=Linear(module.wk.weight.detach()),
        norm_weight=module.k_norm.weight.detach(),
        norm_bias=module.k_norm.bias.detach(),
        norm_epsilon=module.k_norm.eps,
        rotary=Rotary(model.model.rotary_emb.inv_freq),
    )


def _random(model: Any, dtype: torch.dtype, seed: int) -> Any:
    """Random numbers in every weight: fresh norms and biases are ones and zeros, and would hide faults."""
    model = model.to(dtype).eval()
    model.set_experts_implementation("eager")
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=draw, dtype=torch.float64).to(dtype)
            if "position_bias" in name:
                weight.copy_(noise)
            elif weight.dim() == 1:
                weight.add_(0.2 * noise)
            else:
                weight.copy_(1.2 * noise / weight.shape[-1] ** 0.5)
    return model
