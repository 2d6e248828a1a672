"""Cache groups of models with full, sliding and latent attention, by their configuration's keys."""

from __future__ import annotations

from collections.abc import Sequence

from hitproof.rules.cache_rows import (
    ALIGNMENT,
    LATENT_PAGE_TOKENS,
    Derived,
    index_key,
    key_value,
    latent,
    layer_kinds,
    plain_row,
    where,
)
from hitproof.rules.group_layouts import Row, boundary, full_kv, routing_index, shared_constants, tail
from hitproof.rules.model_config import ModelConfig

__all__ = ["heads_of", "interleaved", "latent_with_index", "latent_with_plain_index", "plain", "sliding"]

# What an absent key means to the library that reads these configurations; published checkpoints rely on it.
_PERIOD = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}
_HEADS = {"gemma3": (4, 256), "gemma3_text": (4, 256)}


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
    """Sliding layers with a full one at the end of every period (Gemma 2 and 3, gpt-oss).

    Gemma 3 with a vision part lets the tokens of one picture attend to each other, later ones too.
    """
    if config.values.get("use_bidirectional_attention") not in (None, False):
        config.refuse("use_bidirectional_attention", "is set: later tokens change earlier rows, no prefix is reusable")
    kinds = layer_kinds(config, layers, ("full_attention", "sliding_attention"))
    if kinds is None:
        stated = "sliding_window_pattern" if config.has("sliding_window_pattern") else "_sliding_window_pattern"
        period = config.integer(stated, default=_PERIOD[config.text("model_type")])
        kinds = tuple("sliding_attention" if (layer + 1) % period else "full_attention" for layer in range(layers))
    pictures = config.outer is not None and config.outer.has("vision_config")
    return _windowed(config, kinds, kv_dtype, media_ahead=pictures)


def latent_with_index(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """One latent row a token, and an index key a token that selects among them (DeepSeek V3.2)."""
    return _indexed(config, layers, kv_dtype, index_key(config, LATENT_PAGE_TOKENS, ALIGNMENT))


def latent_with_plain_index(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """The same groups with index keys in the cache's element type, as transformers keeps them."""
    width = config.integer("index_head_dim")
    key = plain_row(config, kv_dtype, width=width, page_rows=LATENT_PAGE_TOKENS, alignment=ALIGNMENT)
    return _indexed(config, layers, kv_dtype, key)


def _indexed(config: ModelConfig, layers: int, kv_dtype: str | None, key: Row) -> Derived:
    layer_kinds(config, layers, ("deepseek_sparse_attention", "indexed_attention"))
    every = range(layers)
    index = routing_index("index", every, key, ratio=1, top_k=config.integer("index_topk"), kv="full")
    return shared_constants(), [full_kv("full", every, latent(config, kv_dtype), has_v=False), index]


def heads_of(config: ModelConfig) -> tuple[int, int]:
    """Key-value heads and the width of one; where keys are absent, what the library takes for them."""
    queries = config.integer("num_attention_heads")
    heads = config.integer("num_key_value_heads", default=queries)
    if config.has("head_dim"):
        return heads, config.integer("head_dim")
    width, rest = divmod(config.integer("hidden_size"), queries)
    if rest:
        config.refuse("hidden_size", "is no multiple of num_attention_heads", expected=f"a multiple of {queries}")
    return heads, width


def _windowed(config: ModelConfig, kinds: Sequence[str], kv_dtype: str | None, *, media_ahead: bool = False) -> Derived:
    heads, width = _heads(config)
    row = key_value(config, kv_dtype, heads=heads, width=width)
    full, windowed = where(kinds, "full_attention"), where(kinds, "sliding_attention")
    groups = [full_kv("full", full, row, has_v=True)] if full else []
    if not windowed:
        return shared_constants(media_ahead=media_ahead), groups
    window = config.integer("sliding_window")
    groups += [tail(windowed, row, window=window, has_v=True), boundary(windowed, window=window)]
    return shared_constants(window=window, windowed_layers=len(windowed), media_ahead=media_ahead), groups


def _heads(config: ModelConfig) -> tuple[int, int]:
    model_type = config.text("model_type")
    if model_type in ("llama", "mistral", "qwen2"):
        return heads_of(config)
    heads, width = _HEADS.get(model_type, (None, None))
    return config.integer("num_key_value_heads", default=heads), config.integer("head_dim", default=width)
