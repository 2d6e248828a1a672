"""The weights of a model's layers, as the repairs that begin from kept inputs take them.

Inputs are kept behind the norm of their layer, so no path has that norm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hitproof.kernels.index_rebuild import TokenIndexer
from hitproof.kernels.jobs import RepairFault
from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.recompress import Compressor
from hitproof.kernels.recompress.inputs import LayerWeights
from hitproof.kernels.rotary import Rotary
from hitproof.kernels.tail_fill import CachePath

__all__ = ["cache_path", "compressor_weights", "index_weights"]


def cache_path(model: Any, layer: int) -> CachePath:
    """How one layer's input becomes the rows that it caches.

    Raises:
        RepairFault: Nothing here knows layers of this model.
    """
    kind = model.config.model_type
    known = _PATHS.get(kind)
    if known is None:
        raise RepairFault("failed", f"nothing here knows how a layer of '{kind}' makes its rows")
    return known(model, layer)


def compressor_weights(model: Any, layer: int) -> LayerWeights:
    """What makes entries and state of a layer that compresses, as in DeepSeek-V4.

    Raises:
        RepairFault: The layer does not compress.
    """
    return _pooling(_compressor(model, layer))


def index_weights(model: Any, layer: int) -> TokenIndexer | LayerWeights:
    """What makes a layer's index keys: one a token in DeepSeek-V3.2, one an entry in DeepSeek-V4.

    Raises:
        RepairFault: The layer has no index.
    """
    attention = model.model.layers[layer].self_attn
    indexer = getattr(attention, "indexer", None)
    if indexer is None:
        own = getattr(_compressor(model, layer), "indexer", None)
        if own is None:
            raise RepairFault("failed", f"layer {layer} has no index")
        return _pooling(own)
    return TokenIndexer(
        key=_linear(indexer.wk),
        norm_weight=indexer.k_norm.weight.detach(),
        norm_bias=indexer.k_norm.bias.detach(),
        norm_epsilon=indexer.k_norm.eps,
        rotary=Rotary(model.model.rotary_emb.inv_freq, float(model.model.rotary_emb.attention_scaling)),
    )


def _compressor(model: Any, layer: int) -> Any:
    module = getattr(model.model.layers[layer].self_attn, "compressor", None)
    if module is None:
        raise RepairFault("failed", f"layer {layer} does not compress")
    return module


def _pooling(module: Any) -> LayerWeights:
    compressor = Compressor(
        position_bias=module.position_bias.detach(),
        norm=_llama_norm(module.kv_norm),
        rotary=Rotary(module.rotary_emb.compress_inv_freq, pairing="interleaved", place="trailing"),
        overlap=module.position_bias.shape[1] == 2 * module.head_dim,
    )
    return LayerWeights(compressor, _linear(module.kv_proj), _linear(module.gate_proj))


def _linear(module: Any) -> Linear:
    return Linear(module.weight.detach(), None if module.bias is None else module.bias.detach())


def _llama_norm(module: Any) -> Norm:
    """As Llama's, whose code DeepSeek's norms share."""
    return Norm(module.weight.detach(), module.variance_epsilon, rounds_first=True)


def _gemma_norm(module: Any) -> Norm:
    """As Gemma's and Qwen3-Next's, which keep the weight as its distance from one."""
    return Norm(module.weight.detach().float(), module.eps, plus_one=True)


def _by_heads(model: Any, attention: Any, key_norm: Norm | None = None, rotary: Rotary | None = None) -> CachePath:
    """Keys and values of a projection each, by heads."""
    heads = model.config.num_key_value_heads
    return CachePath(
        None, _linear(attention.k_proj), _linear(attention.v_proj), heads, key_norm=key_norm, rotary=rotary
    )


def _gemma_3(model: Any, layer: int) -> CachePath:
    attention, kind = model.model.layers[layer].self_attn, model.config.layer_types[layer]
    return _by_heads(model, attention, _gemma_norm(attention.k_norm), _turning(model, f"{kind}_"))


def _gpt_oss(model: Any, layer: int) -> CachePath:
    return _by_heads(model, model.model.layers[layer].self_attn, rotary=_turning(model))


def _qwen3_next(model: Any, layer: int) -> CachePath:
    attention = model.model.layers[layer].self_attn
    return _by_heads(model, attention, _gemma_norm(attention.k_norm), _turning(model))


def _nemotron_h(model: Any, layer: int) -> CachePath:
    """Its attention has no positions."""
    return _by_heads(model, model.model.layers[layer].mixer)


def _deepseek_v32(model: Any, layer: int) -> CachePath:
    attention = model.model.layers[layer].self_attn
    turning = model.model.rotary_emb
    return CachePath(
        None,
        _linear(attention.kv_a_proj_with_mqa),
        None,
        1,
        key_norm=_llama_norm(attention.kv_a_layernorm),
        rotary=Rotary(turning.inv_freq, float(turning.attention_scaling), "interleaved_to_half", "trailing"),
    )


def _deepseek_v4(model: Any, layer: int) -> CachePath:
    """The rows of its window, which serve as keys and as values."""
    attention, turning = model.model.layers[layer].self_attn, model.model.rotary_emb
    kind = attention.rope_layer_type
    frequencies, scale = getattr(turning, f"{kind}_inv_freq"), float(getattr(turning, f"{kind}_attention_scaling"))
    return CachePath(
        None,
        _linear(attention.kv_proj),
        None,
        1,
        key_norm=_llama_norm(attention.kv_norm),
        rotary=Rotary(frequencies, scale, "interleaved", "trailing"),
    )


def _turning(model: Any, kind: str = "") -> Rotary:
    turning = model.model.rotary_emb
    return Rotary(getattr(turning, f"{kind}inv_freq"), float(getattr(turning, f"{kind}attention_scaling")))


_PATHS: Mapping[str, Callable[[Any, int], CachePath]] = {
    "deepseek_v32": _deepseek_v32,
    "deepseek_v4": _deepseek_v4,
    "gemma3_text": _gemma_3,
    "gpt_oss": _gpt_oss,
    "nemotron_h": _nemotron_h,
    "qwen3_next": _qwen3_next,
}
