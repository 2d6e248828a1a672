"""Cache groups of models whose linear-attention layers keep a state beside full or latent layers."""

from __future__ import annotations

from collections.abc import Sequence

from hitproof.rules.attention_families import heads_of
from hitproof.rules.cache_rows import ALIGNMENT, Derived, element, key_value, latent, layer_kinds, where
from hitproof.rules.group_layouts import Row, full_kv, recurrent_state, shared_constants
from hitproof.rules.model_config import ModelConfig

__all__ = ["delta_beside_latent", "gated_delta", "lightning", "state_space"]


def gated_delta(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Gated delta layers with a full one at the end of every interval (Qwen3-Next).

    The recurrent state is kept in fp32, the convolution's last inputs in the model's type.
    """
    kinds = layer_kinds(config, layers, ("full_attention", "linear_attention"))
    if kinds is None:
        interval = config.integer("full_attention_interval", default=4)
        kinds = tuple("linear_attention" if (layer + 1) % interval else "full_attention" for layer in range(layers))
    full, linear = where(kinds, "full_attention"), where(kinds, "linear_attention")
    row = None
    if full:
        heads, width = config.integer("num_key_value_heads"), config.integer("head_dim")
        row = key_value(config, kv_dtype, heads=heads, width=width)
    state = _gated_delta_state(config, kv_dtype) if linear else None
    return _hybrid(full, row, linear, state, has_v=True)


def delta_beside_latent(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Kimi Delta Attention layers beside latent ones; the published lists count layers from 1 (Kimi-Linear).

    Each head keeps a square state in fp32, and the last inputs of one short convolution each for queries, keys and
    values in the model's type.
    """
    section = config.section("linear_attn_config")
    full = _counted_from_one(section, "full_attn_layers", layers)
    linear = [layer for layer in range(layers) if layer not in full]
    if section.has("kda_layers") and _counted_from_one(section, "kda_layers", layers) != linear:
        section.refuse(
            "kda_layers", "and full_attn_layers do not name every layer once", expected=f"layers 1 to {layers}"
        )
    state = None
    if linear:
        heads, width = section.integer("num_heads"), section.integer("head_dim")
        past = section.integer("short_conv_kernel_size") - 1
        size, dtype = element(config, kv_dtype)
        channels = 3 * heads * width
        how = f"{heads} x {width} x {width} x 4 B float32 + {past} x {channels:,} convolution x {size} B {dtype}"
        state = Row(4 * heads * width * width + past * channels * size, how, 1, ALIGNMENT)
    return _hybrid(full, latent(config, kv_dtype) if full else None, linear, state, has_v=False)


def lightning(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Lightning attention layers, each head with a square state in fp32, beside full ones (MiniMax-Text-01 and M1)."""
    names = {0: "linear_attention", 1: "full_attention"}
    kinds = layer_kinds(config, layers, tuple(names.values()))
    if kinds is None:
        if not config.has("attn_type_list"):
            config.missing("attn_type_list", hint="layer_types, the kind of each layer, serves too")
        stated = config.entries("attn_type_list")
        if len(stated) != layers:
            config.refuse("attn_type_list", "does not name every layer", got=len(stated), expected=layers)
        for layer, kind in enumerate(stated):
            if isinstance(kind, bool) or not isinstance(kind, int) or kind not in names:
                config.refuse(f"attn_type_list[{layer}]", "is no known kind of layer", got=kind, expected="0 or 1")
        kinds = tuple(names[kind] for kind in stated if isinstance(kind, int))
    heads, width = heads_of(config)
    queries = config.integer("num_attention_heads")
    state = Row(4 * queries * width * width, f"{queries} x {width} x {width} x 4 B float32", 1, ALIGNMENT)
    row = key_value(config, kv_dtype, heads=heads, width=width)
    return _hybrid(where(kinds, "full_attention"), row, where(kinds, "linear_attention"), state, has_v=True)


def state_space(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Mamba-2 layers, each head with a state, beside full ones and layers that keep nothing (Nemotron-H).

    The state's type is `mamba_ssm_cache_dtype`, the convolution's last inputs are in the model's type.

    Source: arXiv 2504.03624 for the architecture, transformers for the shapes.
    """
    kinds = _block_kinds(config, layers)
    full, linear = where(kinds, "full_attention"), where(kinds, "linear_attention")
    row = None
    if full:
        row = key_value(config, kv_dtype, heads=config.integer("num_key_value_heads"), width=config.integer("head_dim"))
    return _hybrid(full, row, linear, _mamba_state(config, kv_dtype) if linear else None, has_v=True)


def _hybrid(full: Sequence[int], row: Row | None, linear: Sequence[int], state: Row | None, *, has_v: bool) -> Derived:
    groups = [] if row is None or not full else [full_kv("full", full, row, has_v=has_v)]
    if state is not None and linear:
        groups.append(recurrent_state("linear", linear, state))
    return shared_constants(recurrent=bool(linear)), groups


def _counted_from_one(section: ModelConfig, key: str, layers: int) -> list[int]:
    found = set()
    for place, layer in enumerate(section.entries(key)):
        if isinstance(layer, bool) or not isinstance(layer, int) or not 1 <= layer <= layers:
            section.refuse(f"{key}[{place}]", "is no layer, counted from 1", got=layer, expected=f"1 to {layers}")
        if layer - 1 in found:
            section.refuse(f"{key}[{place}]", "names a layer twice", got=layer)
        found.add(layer - 1)
    return sorted(found)


def _block_kinds(config: ModelConfig, layers: int) -> Sequence[str]:
    """Kinds of blocks by their list, in which older files say mamba and attention, or by the pattern of letters."""
    names = {"M": "linear_attention", "*": "full_attention", "E": "moe", "-": "mlp"}
    older = {"mamba": "linear_attention", "attention": "full_attention"}
    key = next((key for key in ("layers_block_type", "layer_types") if config.has(key)), "")
    if key:
        stated = [older.get(str(kind), kind) for kind in config.entries(key)]
    elif config.has("hybrid_override_pattern"):
        key = "hybrid_override_pattern"
        stated = [names.get(letter, letter) for letter in config.text(key)]
    else:
        config.missing("layers_block_type", hint="hybrid_override_pattern, a letter a block, serves too")
    if len(stated) != layers:
        config.refuse(key, "does not name every layer", got=len(stated), expected=layers)
    kinds = []
    for layer, kind in enumerate(stated):
        if not isinstance(kind, str) or kind not in names.values():
            known = ", ".join([*names, *names.values(), *older])
            config.refuse(f"{key}[{layer}]", "is no known kind of block", got=kind, expected=known)
        kinds.append(kind)
    return kinds


def _mamba_state(config: ModelConfig, kv_dtype: str | None) -> Row:
    heads, width = config.integer("mamba_num_heads"), config.integer("mamba_head_dim")
    size_of_state, past = config.integer("ssm_state_size"), config.integer("conv_kernel") - 1
    channels = heads * width + 2 * config.integer("n_groups") * size_of_state
    size, dtype = element(config, kv_dtype)
    kept = config.text("mamba_ssm_cache_dtype") if config.has("mamba_ssm_cache_dtype") else "float32"
    state_size, state_dtype = element(config, kept)
    how = (
        f"{heads} x {width} x {size_of_state} x {state_size} B {state_dtype} + "
        f"{past} x {channels:,} convolution x {size} B {dtype}"
    )
    return Row(heads * width * size_of_state * state_size + past * channels * size, how, 1, ALIGNMENT)


def _gated_delta_state(config: ModelConfig, kv_dtype: str | None) -> Row:
    keys, key_width = config.integer("linear_num_key_heads"), config.integer("linear_key_head_dim")
    values, value_width = config.integer("linear_num_value_heads"), config.integer("linear_value_head_dim")
    past = config.integer("linear_conv_kernel_dim") - 1
    channels = 2 * keys * key_width + values * value_width
    size, dtype = element(config, kv_dtype)
    state = 4 * values * key_width * value_width + past * channels * size
    how = f"{values} x {key_width} x {value_width} x 4 B float32 + {past} x {channels:,} convolution x {size} B {dtype}"
    return Row(state, how, 1, ALIGNMENT)
