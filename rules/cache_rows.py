"""Rows of caches by the keys of a configuration: element types, heads and widths, kinds of layers."""

from __future__ import annotations

from collections.abc import Sequence

from hitproof.rules.group_layouts import Row
from hitproof.rules.model_config import ModelConfig
from hitproof.spec.profile import Constant, Group

__all__ = [
    "ALIGNMENT",
    "Derived",
    "LATENT_PAGE_TOKENS",
    "element",
    "index_key",
    "key_value",
    "latent",
    "layer_kinds",
    "plain_row",
    "where",
]

ALIGNMENT = 512
"""Bytes that pages and addresses are multiples of where no kernel asks for another number."""

LATENT_PAGE_TOKENS = 64
_PAGE_TOKENS = 16
_ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1}

Derived = tuple[dict[str, Constant], list[Group]]
"""What a family derives: model-wide constants, and the groups that attention reads."""


def element(config: ModelConfig, kv_dtype: str | None) -> tuple[int, str]:
    """Bytes and name of a cache's element: `kv_dtype`, or what the configuration states.

    Raises:
        ProfileError: Nothing is stated, or no element type of a cache.
    """
    dtype = kv_dtype or _stated_dtype(config)
    if dtype not in _ELEMENT_BYTES:
        config.refuse("dtype", "is no element type of a cache", got=dtype, expected=", ".join(sorted(_ELEMENT_BYTES)))
    return _ELEMENT_BYTES[dtype], dtype


def key_value(config: ModelConfig, kv_dtype: str | None, *, heads: int, width: int) -> Row:
    """Keys and values of one token in one layer."""
    size, dtype = element(config, kv_dtype)
    how = f"2 (K, V) x {heads} {'heads' if heads > 1 else 'head'} x {width} x {size} B {dtype}"
    return Row(2 * heads * width * size, how, _PAGE_TOKENS, ALIGNMENT, scaled=size == 1)


def latent(config: ModelConfig, kv_dtype: str | None) -> Row:
    """One latent row a token, from which every head makes its keys and values, and one key shared by all heads."""
    rank, shared = config.integer("kv_lora_rank"), config.integer("qk_rope_head_dim")
    size, dtype = element(config, kv_dtype)
    kind = "unrotated" if config.flag("mla_use_nope", default=False) else "rotary"
    how = f"({rank} latent + {shared} {kind}) x {size} B {dtype}"
    return Row((rank + shared) * size, how, LATENT_PAGE_TOKENS, ALIGNMENT, scaled=size == 1)


def index_key(config: ModelConfig, page_rows: int, alignment: int) -> Row:
    """An fp8 index key with one 4-byte scale for each 128 values, as vLLM stores it."""
    width = config.integer("index_head_dim")
    scales = 4 * -(-width // 128)
    return Row(width + scales, f"{width} fp8 + {scales} scale", page_rows, alignment, scaled=True)


def plain_row(config: ModelConfig, kv_dtype: str | None, *, width: int, page_rows: int, alignment: int) -> Row:
    """So many values of the cache's element type and nothing else, as the library that runs the model keeps them."""
    size, dtype = element(config, kv_dtype)
    return Row(width * size, f"{width} x {size} B {dtype}", page_rows, alignment, scaled=size == 1)


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


def where(kinds: Sequence[object], kind: object) -> list[int]:
    """Numbers of the layers of one kind."""
    return [layer for layer, stated in enumerate(kinds) if stated == kind]


def _stated_dtype(config: ModelConfig) -> str:
    place: ModelConfig | None = config
    while place is not None:
        for key in ("dtype", "torch_dtype"):
            if place.has(key):
                return place.text(key)
        place = place.outer
    config.missing("dtype", hint="state the element type of the cache")
