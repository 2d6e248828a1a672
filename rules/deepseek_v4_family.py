"""Cache groups of DeepSeek-V4: windows everywhere, compressed entries, their index, compressor states."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitproof.rules.cache_rows import Derived, index_key, layer_kinds, plain_row, where
from hitproof.rules.group_layouts import (
    Row,
    boundary,
    compressor_state,
    entries,
    routing_index,
    shared_constants,
    tail,
)
from hitproof.rules.model_config import ModelConfig
from hitproof.spec.profile import Group

__all__ = ["compressed", "compressed_plain"]

_SLIDING = "sliding_attention"
_SPARSE = "compressed_sparse_attention"
_DENSE = "heavily_compressed_attention"
_RATIOS = {_SPARSE: 4, _DENSE: 128}
_OLD_RATE_KEYS = {_SPARSE: "compress_rate_csa", _DENSE: "compress_rate_hca"}
# vLLM's pages: 64 window tokens, 256 tokens of entries, a few state rows; its kernel wants multiples of 576.
_ALIGNMENT = 576
_WINDOW_PAGE_TOKENS = 64
_PAGE_TOKENS = 256
_STATE_PAGE_ROWS = {_SPARSE: 4, _DENSE: 8}

_IndexKey = Callable[[ModelConfig, int, int], Row]
"""An index key by the configuration, rows of a page, and alignment."""


def compressed(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """Derive the groups; keys and values share one fp8 row with a bf16 rotary part, whatever `kv_dtype` says.

    Source: arXiv 2606.19348 for the architecture, vLLM for the byte layouts.
    """
    return _compressed(config, layers, _row(config), index_key)


def compressed_plain(config: ModelConfig, layers: int, kv_dtype: str | None) -> Derived:
    """The same groups with rows, entries and index keys in one element type, as transformers keeps them.

    Compressor states stay float32: their scores have the bias of their place, which is float32, added already.
    """

    def key(config: ModelConfig, page_rows: int, alignment: int) -> Row:
        width = config.integer("index_head_dim")
        return plain_row(config, kv_dtype, width=width, page_rows=page_rows, alignment=alignment)

    row = plain_row(config, kv_dtype, width=config.integer("head_dim"), page_rows=1, alignment=_ALIGNMENT)
    return _compressed(config, layers, row, key)


def _compressed(config: ModelConfig, layers: int, row: Row, key: _IndexKey) -> Derived:
    if config.integer("num_key_value_heads", default=1) != 1:
        config.refuse("num_key_value_heads", "is not 1, the layout knows one shared head")
    kinds = _kinds(config, layers)
    window = config.integer("sliding_window")
    groups = [
        tail(range(layers), row.paged(_WINDOW_PAGE_TOKENS), window=window, has_v=False),
        boundary(range(layers), window=window),
    ]
    sparse, dense = where(kinds, _SPARSE), where(kinds, _DENSE)
    if sparse:
        groups += _sparse_groups(config, sparse, row, key)
    if dense:
        groups += _dense_groups(config, dense, row)
    return shared_constants(window=window, windowed_layers=layers), groups


def _sparse_groups(config: ModelConfig, layers: Sequence[int], row: Row, index_row: _IndexKey) -> list[Group]:
    ratio = _ratio(config, _SPARSE)
    rows = max(1, _PAGE_TOKENS // ratio)
    key = index_row(config, rows, _ALIGNMENT)
    main, index = (_state_row(config.integer(name), _SPARSE, 2) for name in ("head_dim", "index_head_dim"))
    return [
        entries("csa_entries", layers, row.paged(rows), ratio=ratio, has_v=False),
        routing_index("csa_index", layers, key, ratio=ratio, top_k=config.integer("index_topk"), kv="csa_entries"),
        compressor_state("csa_state", layers, main, ratio=ratio, overlap=ratio, entries="csa_entries"),
        compressor_state("csa_index_state", layers, index, ratio=ratio, overlap=ratio, entries="csa_index"),
    ]


def _dense_groups(config: ModelConfig, layers: Sequence[int], row: Row) -> list[Group]:
    ratio = _ratio(config, _DENSE)
    state = _state_row(config.integer("head_dim"), _DENSE, 1)
    return [
        entries("hca_entries", layers, row.paged(max(1, _PAGE_TOKENS // ratio)), ratio=ratio, has_v=False),
        compressor_state("hca_state", layers, state, ratio=ratio, overlap=0, entries="hca_entries"),
    ]


def _kinds(config: ModelConfig, layers: int) -> Sequence[str]:
    kinds = layer_kinds(config, layers, (_SLIDING, _SPARSE, _DENSE))
    if kinds is not None:
        return kinds
    if not config.has("compress_ratios"):
        config.missing("layer_types", hint="compress_ratios, the ratio of each layer, serves too")
    ratios = config.entries("compress_ratios")
    drafts = config.integer("num_nextn_predict_layers", least=0, default=0)
    if len(ratios) not in (layers, layers + drafts):
        expected = f"{layers} entries, and one for each of {drafts} draft layers"
        config.refuse("compress_ratios", "does not name every layer", got=len(ratios), expected=expected)
    names = {0: _SLIDING, **{ratio: kind for kind, ratio in _RATIOS.items()}}
    stated = []
    for layer, ratio in enumerate(ratios[:layers]):
        if isinstance(ratio, bool) or not isinstance(ratio, int) or ratio not in names:
            config.refuse(f"compress_ratios[{layer}]", "is no known ratio", got=ratio, expected="0, 4 or 128")
        stated.append(names[ratio])
    return stated


def _ratio(config: ModelConfig, kind: str) -> int:
    if config.has(_OLD_RATE_KEYS[kind]):
        return config.integer(_OLD_RATE_KEYS[kind])
    if config.has("compress_rates"):
        return config.section("compress_rates").integer(kind)
    return _RATIOS[kind]


def _row(config: ModelConfig) -> Row:
    width = config.integer("head_dim")
    rotary = _rotary(config, width)
    plain = width - rotary
    scales = -(-plain // 64 // 8) * 8
    how = f"{plain} fp8 + {rotary} x 2 B rotary bfloat16 + {scales} scale"
    return Row(plain + 2 * rotary + scales, how, 1, _ALIGNMENT, scaled=True)


def _rotary(config: ModelConfig, width: int) -> int:
    if config.has("qk_rope_head_dim"):
        return config.integer("qk_rope_head_dim", most=width)
    if not config.has("partial_rotary_factor"):
        config.missing("qk_rope_head_dim", hint="partial_rotary_factor serves too")
    share = config.values["partial_rotary_factor"]
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        config.refuse("partial_rotary_factor", "is no share of a head", got=share, expected="above 0, at most 1")
    return int(width * share)


def _state_row(width: int, kind: str, halves: int) -> Row:
    how = f"2 (value, score) x {halves * width:,} x 4 B float32"
    return Row(8 * halves * width, how, _STATE_PAGE_ROWS[kind], _ALIGNMENT)
