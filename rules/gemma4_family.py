"""Cache groups of Gemma 4: sliding and full layers of different row sizes, and layers that share an earlier one's."""

from __future__ import annotations

from hitproof.rules.cache_rows import Derived, key_value, layer_kinds, where
from hitproof.rules.group_layouts import boundary, full_kv, shared_constants, tail
from hitproof.rules.model_config import ModelConfig

__all__ = ["shared_rows"]

_SLIDING = "sliding_attention"
_FULL = "full_attention"
# What an absent key means to the library that reads these configurations; published checkpoints rely on it.
_PERIOD = 6
_FULL_WIDTH = 512
_AHEAD = {"gemma4_unified": "vision", "gemma4_unified_text": "vision"}


def shared_rows(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Derive the groups; the last `num_kv_shared_layers` layers write nothing and read an earlier layer of their kind.

    Which earlier layer is read does not matter here: the rows of all owners are held. A sharing layer's window counts
    for the receptive field as any other's does.
    """
    kinds = layer_kinds(config, layers, (_FULL, _SLIDING))
    if kinds is None:
        kinds = tuple(_SLIDING if (layer + 1) % _PERIOD else _FULL for layer in range(layers))
    # The library makes the last layer full, whatever is stated.
    kinds = (*kinds[:-1], _FULL)
    owners = layers - config.integer("num_kv_shared_layers", least=0, most=layers - 1, default=0)
    lone = set(kinds[owners:]) - set(kinds[:owners])
    if lone:
        config.refuse(
            "num_kv_shared_layers",
            "leaves a sharing layer without an earlier layer of its kind",
            got=layers - owners,
            expected=f"an owner that is a {min(lone)} layer",
        )
    media_ahead = _media_ahead(config)
    groups = []
    full, windowed = where(kinds, _FULL), where(kinds, _SLIDING)
    if full:
        row = key_value(config, kv_dtype, heads=_full_heads(config), width=_full_width(config))
        groups.append(
            full_kv("full", [one for one in full if one < owners], row, has_v=True, consumers=_from(full, owners))
        )
    if not windowed:
        return shared_constants(media_ahead=media_ahead), groups
    window = config.integer("sliding_window")
    own, consumers = [one for one in windowed if one < owners], _from(windowed, owners)
    row = key_value(config, kv_dtype, heads=config.integer("num_key_value_heads"), width=config.integer("head_dim"))
    groups += [
        tail(own, row, window=window, has_v=True, consumers=consumers),
        boundary(own, window=window, consumers=consumers),
    ]
    return shared_constants(window=window, windowed_layers=len(windowed), media_ahead=media_ahead), groups


def _from(layers: list[int], first: int) -> list[int]:
    return [layer for layer in layers if layer >= first]


def _full_heads(config: ModelConfig) -> int:
    """Full layers have heads of their own number only where their values reuse the key projection."""
    if config.flag("attention_k_eq_v", default=False) and config.has("num_global_key_value_heads"):
        return config.integer("num_global_key_value_heads")
    return config.integer("num_key_value_heads")


def _full_width(config: ModelConfig) -> int:
    return config.integer("global_head_dim", default=_FULL_WIDTH)


def _media_ahead(config: ModelConfig) -> bool:
    """Whether tokens of a picture attend to later ones; text that does leaves no prefix to reuse."""
    value = config.values.get("use_bidirectional_attention")
    if value is None:
        value = _AHEAD.get(config.text("model_type"), False)
    if value is False or value == "vision":
        return value == "vision"
    config.refuse(
        "use_bidirectional_attention",
        "lets later tokens change earlier rows, so that no prefix is reusable",
        got=value,
        expected="vision, or nothing",
    )
