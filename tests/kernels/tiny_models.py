"""Real models with tiny random weights: their own code, their own caches, and the inputs of their layers kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.rotary import Rotary, frequencies, stretched, yarn
from hitproof.kernels.tail_fill import CachePath

__all__ = ["MODELS", "WINDOW", "cache_path", "keeping_inputs", "logits", "random_tokens", "tiny"]

WINDOW = 24
VOCABULARY = 97
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 8192,
}


@dataclass(frozen=True)
class Tiny:
    """How one model is made, and how its layers write their rows."""

    config: Callable[[], Any]
    model: str
    path: Callable[[Any, int], CachePath]


def tiny(name: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
    """A model with random weights everywhere: fresh norms and biases are ones and zeros, and would hide faults."""
    made = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        # What the library draws itself, such as gpt-oss's sinks, is the same in every process too.
        torch.manual_seed(seed)
        # Experts one by one: their grouped kernel knows no float64.
        model = getattr(transformers, made.model)._from_config(
            made.config(), attn_implementation="eager", experts_implementation="eager"
        )
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.3 if parameter.dim() == 1 else 1.0 / parameter.shape[-1] ** 0.5
            noise = spread * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            # Norms with weights near one and biases near zero, as trained models have them. Speeds of turning are no
            # parameters, and stay in float32 as in a model that is loaded.
            parameter.data = (parameter * (parameter.dim() == 1) + noise).to(dtype)
    return model


def random_tokens(count: int, seed: int) -> torch.Tensor:
    """[1, count] tokens."""
    return torch.randint(3, VOCABULARY, (1, count), generator=torch.Generator().manual_seed(seed))


@contextmanager
def keeping_inputs(model: Any) -> Iterator[dict[int, list[torch.Tensor]]]:
    """While open, every pass appends [T, N], what came in at the norm before attention, to its layer's list."""
    kept: dict[int, list[torch.Tensor]] = {index: [] for index in range(len(model.model.layers))}
    hooks = [
        layer.input_layernorm.register_forward_pre_hook(
            lambda _module, args, index=index: kept[index].append(args[0][0].detach().clone())
        )
        for index, layer in enumerate(model.model.layers)
    ]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def logits(model: Any, tokens: torch.Tensor, cache: Any) -> torch.Tensor:
    """[T, vocabulary], continuing what the cache holds."""
    with torch.no_grad():
        return model(tokens, cache=cache, use_cache=True).logits[0]


def cache_path(name: str, model: Any, layer: int) -> CachePath:
    """The weights of one layer, as `tail_fill` takes them."""
    return MODELS[name].path(model, layer)


def _linear(module: Any) -> Linear:
    return Linear(module.weight.detach(), None if module.bias is None else module.bias.detach())


def _norm(module: Any) -> Norm:
    """The norm as Llama has it, whose code most models share."""
    return Norm(module.weight.detach(), module.variance_epsilon, rounds_first=True)


def _gemma_norm(module: Any) -> Norm:
    """Gemma's, whose code reads the weight as float32."""
    return Norm(module.weight.detach().to(torch.float32), module.eps, plus_one=True)


def _gemma(model: Any, index: int) -> CachePath:
    layer, config = model.model.layers[index], model.config
    rope = config.rope_parameters[config.layer_types[index]]
    turning = frequencies(config.head_dim, rope["rope_theta"])
    if rope["rope_type"] == "linear":
        turning = stretched(turning, rope["factor"])
    attention = layer.self_attn
    return CachePath(
        _gemma_norm(layer.input_layernorm),
        _linear(attention.k_proj),
        _linear(attention.v_proj),
        config.num_key_value_heads,
        key_norm=_gemma_norm(attention.k_norm),
        rotary=Rotary(turning),
    )


def _gpt_oss(model: Any, index: int) -> CachePath:
    layer, config = model.model.layers[index], model.config
    rope = config.rope_parameters
    turning, scale = yarn(
        config.head_dim,
        rope["rope_theta"],
        factor=rope["factor"],
        trained=rope["original_max_position_embeddings"],
        fast=rope["beta_fast"],
        slow=rope["beta_slow"],
        truncate=rope["truncate"],
    )
    attention = layer.self_attn
    return CachePath(
        Norm(layer.input_layernorm.weight.detach(), config.rms_norm_eps),
        _linear(attention.k_proj),
        _linear(attention.v_proj),
        config.num_key_value_heads,
        rotary=Rotary(turning, scale),
    )


def _qwen(model: Any, index: int) -> CachePath:
    layer, config = model.model.layers[index], model.config
    attention = layer.self_attn
    return CachePath(
        _norm(layer.input_layernorm),
        _linear(attention.k_proj),
        _linear(attention.v_proj),
        config.num_key_value_heads,
        key_norm=_norm(attention.k_norm),
        rotary=Rotary(frequencies(config.head_dim, config.rope_parameters["rope_theta"])),
    )


def _llama4(model: Any, index: int) -> CachePath:
    layer, config = model.model.layers[index], model.config
    attention = layer.self_attn
    turned = bool(config.no_rope_layers[index])
    turning = frequencies(config.head_dim, config.rope_parameters["rope_theta"])
    return CachePath(
        Norm(layer.input_layernorm.weight.detach(), config.rms_norm_eps, rounds_first=True),
        _linear(attention.k_proj),
        _linear(attention.v_proj),
        config.num_key_value_heads,
        key_norm=Norm(None, config.rms_norm_eps) if turned else None,
        rotary=Rotary(turning, pairing="interleaved") if turned else None,
        norm_after_rotary=turned,
    )


def _deepseek_v3(model: Any, index: int) -> CachePath:
    layer, config = model.model.layers[index], model.config
    attention = layer.self_attn
    turning = frequencies(config.qk_rope_head_dim, config.rope_parameters["rope_theta"])
    return CachePath(
        _norm(layer.input_layernorm),
        _linear(attention.kv_a_proj_with_mqa),
        None,
        1,
        key_norm=_norm(attention.kv_a_layernorm),
        rotary=Rotary(turning, pairing="interleaved_to_half", place="trailing"),
    )


def _gemma_config() -> Any:
    """Five local layers and a global one, whose positions are stretched as in the large models."""
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
    }
    return transformers.Gemma3TextConfig(**SIZES, sliding_window=WINDOW, query_pre_attn_scalar=16, rope_parameters=rope)


def _gpt_oss_config() -> Any:
    sizes = {**SIZES, "max_position_embeddings": 131_072}
    return transformers.GptOssConfig(**sizes, sliding_window=WINDOW, num_local_experts=4, num_experts_per_tok=2)


def _llama4_config() -> Any:
    return transformers.Llama4TextConfig(
        **SIZES, intermediate_size_mlp=64, num_local_experts=2, num_experts_per_tok=1, attention_chunk_size=WINDOW
    )


def _deepseek_v3_config() -> Any:
    sizes = {name: size for name, size in SIZES.items() if name not in ("head_dim", "num_key_value_heads")}
    return transformers.DeepseekV3Config(
        **sizes,
        num_key_value_heads=4,
        kv_lora_rank=24,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=16,
        q_lora_rank=32,
        first_k_dense_replace=SIZES["num_hidden_layers"],
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
    )


MODELS = {
    "gemma3": Tiny(_gemma_config, "Gemma3ForCausalLM", _gemma),
    "gpt_oss": Tiny(_gpt_oss_config, "GptOssForCausalLM", _gpt_oss),
    "qwen3": Tiny(lambda: transformers.Qwen3Config(**SIZES), "Qwen3ForCausalLM", _qwen),
    "llama4": Tiny(_llama4_config, "Llama4ForCausalLM", _llama4),
    "deepseek_v3": Tiny(_deepseek_v3_config, "DeepseekV3ForCausalLM", _deepseek_v3),
}
