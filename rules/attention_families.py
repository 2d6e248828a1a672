"""Cache groups of models with full, sliding, latent and linear attention, by their configuration's keys."""

from __future__ import annotations

from collections.abc import Sequence

from hitproof.rules.group_layouts import (
    Row,
    boundary,
    full_kv,
    recurrent_state,
    routing_index,
    shared_constants,
    tail,
)
from hitproof.rules.model_config import ModelConfig
from hitproof.spec.profile import Constant, Group

__all__ = ["interleaved", "latent_with_index", "layer_kinds", "linear_hybrid", "plain", "sliding"]

_ALIGNMENT = 512
_PAGE_TOKENS = 16
_LATENT_PAGE_TOKENS = 64
_ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1}
# What an absent key means to the library that reads these configurations; published checkpoints rely on it.
_PERIOD = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}
_HEADS = {"gemma3": (4, 256), "gemma3_text": (4, 256)}

Derived = tuple[dict[str, Constant], list[Group]]


def plain(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Full attention in every layer, unless the configuration switches a window on (Qwen2)."""
    kinds = layer_kinds(config, layers, ("full_attention", "sliding_attention"))
    if kinds is None and config.flag("use_sliding_window", default=False):
        first = config.integer("max_window_layers", least=0)
        kinds = tuple("full_attention" if layer < first else "sliding_attention" for layer in range(layers))
    return _windowed(config, kinds or ("full_attention",) * layers, kv_dtype)


def sliding(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """One window for all layers, or none where `sliding_window` is null (Mistral)."""
    window = config.optional_integer("sliding_window")
    kind = "full_attention" if window is None else "sliding_attention"
    return _windowed(config, (kind,) * layers, kv_dtype)


def interleaved(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Sliding layers with a full one at the end of every period (Gemma 2 and 3, gpt-oss)."""
    if config.values.get("use_bidirectional_attention") not in (None, False):
        config.refuse("use_bidirectional_attention", "is set: later tokens change earlier rows, no prefix is reusable")
    kinds = layer_kinds(config, layers, ("full_attention", "sliding_attention"))
    if kinds is None:
        period = config.integer("sliding_window_pattern", default=_PERIOD[config.text("model_type")])
        kinds = tuple("sliding_attention" if (layer + 1) % period else "full_attention" for layer in range(layers))
    return _windowed(config, kinds, kv_dtype)


def latent_with_index(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """One latent row a token, and an index key a token that selects among them (DeepSeek V3.2)."""
    layer_kinds(config, layers, ("deepseek_sparse_attention",))
    rank, rotary = config.integer("kv_lora_rank"), config.integer("qk_rope_head_dim")
    size, dtype = _element(config, kv_dtype)
    latent = Row(
        (rank + rotary) * size,
        f"({rank} latent + {rotary} rotary) x {size} B {dtype}",
        _LATENT_PAGE_TOKENS,
        _ALIGNMENT,
        scaled=size == 1,
    )
    every = range(layers)
    key = index_key(config, _LATENT_PAGE_TOKENS, _ALIGNMENT)
    index = routing_index("index", every, key, ratio=1, top_k=config.integer("index_topk"), kv="full")
    return shared_constants(), [full_kv("full", every, latent, has_v=False), index]


def linear_hybrid(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Gated delta layers with a full one at the end of every interval (Qwen3-Next).

    The recurrent state is kept in fp32, the convolution's last inputs in the model's type.
    """
    kinds = layer_kinds(config, layers, ("full_attention", "linear_attention"))
    if kinds is None:
        interval = config.integer("full_attention_interval", default=4)
        kinds = tuple("linear_attention" if (layer + 1) % interval else "full_attention" for layer in range(layers))
    full, linear = _where(kinds, "full_attention"), _where(kinds, "linear_attention")
    groups = [full_kv("full", full, _key_value(config, kv_dtype), has_v=True)] if full else []
    if linear:
        groups.append(recurrent_state("linear", linear, _delta_state(config, kv_dtype)))
    return shared_constants(recurrent=bool(linear)), groups


def layer_kinds(config: ModelConfig, layers: int, allowed: Sequence[str]) -> tuple[str, ...] | None:
    """The stated `layer_types`, None where there are none.

    Raises:
        ProfileError: Their number is not that of the layers, or an entry is not `allowed`.
    """
    if not config.has("layer_types"):
        return None
    stated = config.entries("layer_types")
    if len(stated) != layers:
        config.refuse("layer_types", "does not name every layer", got=len(stated), expected=layers)
    kinds = []
    for layer, kind in enumerate(stated):
        if not isinstance(kind, str) or kind not in allowed:
            config.refuse(f"layer_types[{layer}]", "is no known kind of layer", got=kind, expected=", ".join(allowed))
        kinds.append(kind)
    return tuple(kinds)


def index_key(config: ModelConfig, page_rows: int, alignment: int) -> Row:
    """An fp8 index key with one 4-byte scale for each 128 values, as vLLM stores it."""
    width = config.integer("index_head_dim")
    scales = 4 * -(-width // 128)
    return Row(width + scales, f"{width} fp8 + {scales} scale", page_rows, alignment, scaled=True)


def _windowed(config: ModelConfig, kinds: Sequence[str], kv_dtype: str | None) -> Derived:
    row = _key_value(config, kv_dtype)
    full, windowed = _where(kinds, "full_attention"), _where(kinds, "sliding_attention")
    groups = [full_kv("full", full, row, has_v=True)] if full else []
    if not windowed:
        return shared_constants(), groups
    window = config.integer("sliding_window")
    groups += [tail(windowed, row, window=window, has_v=True), boundary(windowed, window=window)]
    return shared_constants(window=window, windowed_layers=len(windowed)), groups


def _where(kinds: Sequence[str], kind: str) -> list[int]:
    return [layer for layer, stated in enumerate(kinds) if stated == kind]


def _key_value(config: ModelConfig, kv_dtype: str | None) -> Row:
    heads, width = _heads(config)
    size, dtype = _element(config, kv_dtype)
    how = f"2 (K, V) x {heads} heads x {width} x {size} B {dtype}"
    return Row(2 * heads * width * size, how, _PAGE_TOKENS, _ALIGNMENT, scaled=size == 1)


def _heads(config: ModelConfig) -> tuple[int, int]:
    model_type = config.text("model_type")
    if model_type not in ("llama", "mistral", "qwen2"):
        heads, width = _HEADS.get(model_type, (None, None))
        return config.integer("num_key_value_heads", default=heads), config.integer("head_dim", default=width)
    queries = config.integer("num_attention_heads")
    heads = config.integer("num_key_value_heads", default=queries)
    if config.has("head_dim"):
        return heads, config.integer("head_dim")
    width, rest = divmod(config.integer("hidden_size"), queries)
    if rest:
        config.refuse("hidden_size", "is no multiple of num_attention_heads", expected=f"a multiple of {queries}")
    return heads, width


def _element(config: ModelConfig, kv_dtype: str | None) -> tuple[int, str]:
    dtype = kv_dtype or _stated_dtype(config)
    if dtype not in _ELEMENT_BYTES:
        config.refuse("dtype", "is no element type of a cache", got=dtype, expected=", ".join(sorted(_ELEMENT_BYTES)))
    return _ELEMENT_BYTES[dtype], dtype


def _stated_dtype(config: ModelConfig) -> str:
    place: ModelConfig | None = config
    while place is not None:
        for key in ("dtype", "torch_dtype"):
            if place.has(key):
                return place.text(key)
        place = place.outer
    config.missing("dtype", hint="state the element type of the cache")


def _delta_state(config: ModelConfig, kv_dtype: str | None) -> Row:
    keys, key_width = config.integer("linear_num_key_heads"), config.integer("linear_key_head_dim")
    values, value_width = config.integer("linear_num_value_heads"), config.integer("linear_value_head_dim")
    past = config.integer("linear_conv_kernel_dim") - 1
    channels = 2 * keys * key_width + values * value_width
    size, dtype = _element(config, kv_dtype)
    state = 4 * values * key_width * value_width + past * channels * size
    how = f"{values} x {key_width} x {value_width} x 4 B float32 + {past} x {channels:,} convolution x {size} B {dtype}"
    return Row(state, how, 1, _ALIGNMENT)
