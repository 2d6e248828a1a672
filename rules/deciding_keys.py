"""Keys of a configuration that decide what a cache holds: a family reads them, or they are refused."""

from __future__ import annotations

from collections.abc import Mapping

from hitproof.rules.model_config import ModelConfig

__all__ = ["DECIDING_KEYS", "refuse_unread"]

_KINDS = "which kind of attention each layer has"
_WINDOW = "how many rows a layer keeps"
_SHARED = "which layers own no rows or keys and read those of another layer"
_SIZE = "how large a row is"

DECIDING_KEYS: Mapping[str, str] = {
    "_sliding_window_pattern": _KINDS,
    "attention_chunk_size": "where the history of local layers restarts",
    "attention_k_eq_v": _SIZE,
    "attn_type_list": _KINDS,
    "block_counts": "whether layers select blocks of rows, beside entries for each block",
    "compress_rates": "how many tokens an entry stands for",
    "compress_ratios": "how many tokens an entry stands for",
    "cross_attention_layers": _KINDS,
    "full_attention_interval": _KINDS,
    "global_head_dim": _SIZE,
    "hybrid_override_pattern": _KINDS,
    "index_skip_topk_offset": _SHARED,
    "index_source_layers": _SHARED,
    "index_topk": "whether layers keep index keys",
    "index_topk_freq": _SHARED,
    "index_topk_pattern": _SHARED,
    "kv_lora_rank": _SIZE,
    "kv_source_layers": _SHARED,
    "layer_types": _KINDS,
    "layers_block_type": _KINDS,
    "linear_attn_config": _KINDS,
    "max_window_layers": _KINDS,
    "no_rope_layer_interval": _KINDS,
    "no_rope_layers": _KINDS,
    "num_global_key_value_heads": _SIZE,
    "num_kv_shared_layers": _SHARED,
    "per_layer_config": _SIZE,
    "sliding_window": _WINDOW,
    "sliding_window_pattern": _KINDS,
    "use_bidirectional_attention": "whether later tokens change earlier rows",
    "use_sliding_window": _WINDOW,
    "window_size": _WINDOW,
}
"""What each of these keys decides. They come from public configurations of models with mixed attention."""

# Values that leave the model as it is without the key.
_IDLE = {"index_topk_freq": 1}
_OF_A_WINDOW = ("max_window_layers", "sliding_window")


def refuse_unread(config: ModelConfig, read: frozenset[str]) -> None:
    """Refuse a stated key that decides something and that the family at hand does not read.

    Null, false, 0 and empty values state nothing; neither does a window that `use_sliding_window` switches off.

    Args:
        config: The text model's part of the configuration.
        read: Keys that the family reads.

    Raises:
        ProfileError: There is such a key; the message says what it decides.
    """
    off = config.values.get("use_sliding_window") is False
    for key in sorted(DECIDING_KEYS.keys() - read):
        value = config.values.get(key)
        if not value or (value == _IDLE.get(key) and not isinstance(value, bool)) or (off and key in _OF_A_WINDOW):
            continue
        config.refuse(
            key,
            f"decides {DECIDING_KEYS[key]}, and is not read for models of type {config.text('model_type'):.80}",
            got=value,
            hint="write the profile by hand",
        )
