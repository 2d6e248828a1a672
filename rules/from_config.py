"""Profiles derived from a Hugging Face `config.json`; what cannot be derived is refused, never guessed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from hitproof.rules.attention_families import interleaved, latent_with_index, latent_with_plain_index, plain, sliding
from hitproof.rules.cache_rows import Derived, element
from hitproof.rules.deciding_keys import refuse_unread
from hitproof.rules.deepseek_v4_family import compressed, compressed_plain
from hitproof.rules.gemma4_family import shared_rows
from hitproof.rules.group_layouts import inputs, manifest
from hitproof.rules.llama4_family import chunked
from hitproof.rules.model_config import ModelConfig, read_config
from hitproof.rules.nsa_family import selected_blocks
from hitproof.rules.recurrent_families import delta_beside_latent, gated_delta, lightning, state_space
from hitproof.spec.errors import HitproofError, Position, ProfileError
from hitproof.spec.profile import MAX_LAYERS, Profile

__all__ = ["KNOWN_MODEL_TYPES", "Rows", "profile_from_config", "profile_from_config_file"]

Rows = Literal["served", "plain"]
"""How rows lie: as serving frameworks pack them, or as the model's own library keeps them."""

_Derive = Callable[[ModelConfig, int, str | None], Derived]


@dataclass(frozen=True, slots=True)
class _Family:
    """How groups follow from a configuration, which of the deciding keys that reads, and where plain rows differ."""

    derive: _Derive
    reads: frozenset[str]
    plain: _Derive


def _family(derive: _Derive, *reads: str, plain: _Derive | None = None) -> _Family:
    return _Family(derive, frozenset(reads), plain or derive)


_INTERLEAVED = _family(
    interleaved,
    "layer_types",
    "sliding_window",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "use_bidirectional_attention",
)
_PLAIN = _family(plain, "layer_types", "sliding_window", "use_sliding_window", "max_window_layers")
_GEMMA4 = _family(
    shared_rows,
    "layer_types",
    "sliding_window",
    "num_kv_shared_layers",
    "attention_k_eq_v",
    "global_head_dim",
    "num_global_key_value_heads",
    "use_bidirectional_attention",
)
_LLAMA4 = _family(chunked, "layer_types", "attention_chunk_size", "no_rope_layers", "no_rope_layer_interval")
_LIGHTNING = _family(lightning, "layer_types", "attn_type_list")

_FAMILIES: Mapping[str, _Family] = {
    "deepseek_v32": _family(
        latent_with_index, "layer_types", "kv_lora_rank", "index_topk", plain=latent_with_plain_index
    ),
    "deepseek_v4": _family(
        compressed,
        "layer_types",
        "sliding_window",
        "compress_ratios",
        "compress_rates",
        "index_topk",
        plain=compressed_plain,
    ),
    "gemma2": _INTERLEAVED,
    "gemma3": _INTERLEAVED,
    "gemma3_text": _INTERLEAVED,
    "gemma4": _GEMMA4,
    "gemma4_text": _GEMMA4,
    "gemma4_unified": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
    "gpt_oss": _INTERLEAVED,
    "kimi_linear": _family(delta_beside_latent, "linear_attn_config", "kv_lora_rank"),
    "llama": _family(plain, "layer_types"),
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "minimax": _LIGHTNING,
    "minimax_m1": _LIGHTNING,
    "minimax_text_01": _LIGHTNING,
    "mistral": _family(sliding, "sliding_window"),
    "nemotron_h": _family(state_space, "layer_types", "layers_block_type", "hybrid_override_pattern"),
    "nsa": _family(selected_blocks, "block_counts", "window_size"),
    "qwen2": _PLAIN,
    "qwen3_next": _family(gated_delta, "layer_types", "full_attention_interval"),
}
KNOWN_MODEL_TYPES: tuple[str, ...] = tuple(sorted(_FAMILIES))


def profile_from_config_file(
    path: Path, *, name: str | None = None, kv_dtype: str | None = None, rows: Rows = "served"
) -> Profile:
    """Read a `config.json` and derive its profile; see `profile_from_config`.

    Raises:
        HitproofError: The file cannot be read, or the profile cannot be derived.
    """
    return profile_from_config(read_config(path), name=name, file=str(path), kv_dtype=kv_dtype, rows=rows)


def profile_from_config(
    config: Mapping[str, object],
    *,
    name: str | None = None,
    file: str,
    kv_dtype: str | None = None,
    rows: Rows = "served",
) -> Profile:
    """Derive a model's cache groups from its configuration.

    Args:
        config: The parsed `config.json`; a `text_config` inside is followed.
        name: The profile's name in kebab case; without one, the model type.
        file: Name used in errors and as the profile's source.
        kv_dtype: Element type of uncompressed keys and values; without one, the configuration's `dtype`.
        rows: `served` for rows as serving frameworks pack them, `plain` for one element type in every row and no
            scales, as the library that runs the model keeps them. Recurrent and compressor states are the same in both.

    Raises:
        ProfileError: The model type is not known, a key is missing, a value cannot be expressed, or a key that
            decides what the cache holds is not read for this type. The message names the key by its path.
    """
    text = ModelConfig(config, file=file).text_model()
    model_type = text.text("model_type")
    family = _FAMILIES.get(model_type)
    if family is None:
        close = difflib.get_close_matches(model_type, KNOWN_MODEL_TYPES, n=1)
        text.refuse(
            "model_type",
            "is a model type whose cache groups are not known",
            got=model_type,
            expected=", ".join(KNOWN_MODEL_TYPES),
            hint=f"did you mean {close[0]}?" if close else "write the profile by hand",
        )
    refuse_unread(text, family.reads)
    layers = text.integer("num_hidden_layers", most=MAX_LAYERS)
    try:
        constants, groups = (family.derive if rows == "served" else family.plain)(text, layers, kv_dtype)
        extra = [manifest(layers)]
        if text.has("hidden_size"):
            size, dtype = (2, "bfloat16") if rows == "served" else element(text, kv_dtype)
            extra.append(inputs(layers, text.integer("hidden_size"), size, dtype))
        return Profile.model_validate(
            {
                "profile": name or re.sub(r"[^a-z0-9]+", "-", model_type),
                "title": f"{model_type} of {layers} layers, derived from its configuration",
                "layers": layers,
                "sources": [file[-200:]],
                "constants": constants,
                "groups": [group.model_dump() for group in (*groups, *extra)],
            }
        )
    except HitproofError:
        raise
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ProfileError(
            f"the derived profile is not valid at {place}: {first['msg']}", where=Position(file)
        ) from error
