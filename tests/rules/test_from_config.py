"""A derived profile equals the shipped one, and what cannot be derived is refused by its key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.rules.deciding_keys import DECIDING_KEYS
from hitproof.rules.from_config import KNOWN_MODEL_TYPES, profile_from_config, profile_from_config_file
from hitproof.rules.model_config import MAX_CONFIG_BYTES, read_config
from hitproof.rules.profiles import dump_profile, load_profile, shipped_profiles
from hitproof.spec.errors import (
    DuplicateError,
    HitproofError,
    InputTooLargeError,
    MissingFileError,
    ProfileError,
)
from hitproof.spec.profile import Profile
from tests.rules.model_configs import ALL, GEMMA2, LLAMA, MINIMAX_LIBRARY, MINIMAX_M1, MISTRAL, QWEN2, SHIPPED_CONFIGS

FLASH, PRO = SHIPPED_CONFIGS["deepseek-v4-flash"], SHIPPED_CONFIGS["deepseek-v4-pro"]
GEMMA_27B, GEMMA_1B = SHIPPED_CONFIGS["gemma-3-27b"], SHIPPED_CONFIGS["gemma-3-1b"]
GEMMA4_12B, GEMMA4_E2B = SHIPPED_CONFIGS["gemma-4-12b"], SHIPPED_CONFIGS["gemma-4-e2b"]
GPT_OSS = SHIPPED_CONFIGS["gpt-oss-120b"]
KIMI, MINIMAX = SHIPPED_CONFIGS["kimi-linear-48b-a3b"], SHIPPED_CONFIGS["minimax-text-01"]
LLAMA4, NSA = SHIPPED_CONFIGS["llama-4-scout"], SHIPPED_CONFIGS["nsa-reference"]
QWEN_NEXT, V32 = SHIPPED_CONFIGS["qwen3-next-80b-a3b"], SHIPPED_CONFIGS["deepseek-v3.2"]


def derive(config: dict[str, Any], **options: Any) -> Profile:
    """The profile of a configuration."""
    return profile_from_config(config, file="config.json", **options)


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The configuration less some keys."""
    return {key: value for key, value in config.items() if key not in keys}


def text_with(config: dict[str, Any], **values: Any) -> dict[str, Any]:
    """The configuration with other values in its text model's part."""
    return config | {"text_config": config["text_config"] | values}


def kimi(**values: Any) -> dict[str, Any]:
    """The configuration of Kimi-Linear with other values for its linear layers."""
    return KIMI | {"linear_attn_config": KIMI["linear_attn_config"] | values}


class TestShippedModels:
    """The models that come with the package."""

    def test_every_shipped_model_has_a_configuration_here(self) -> None:
        """None goes without."""
        assert shipped_profiles() == sorted(SHIPPED_CONFIGS)

    @pytest.mark.parametrize("name", SHIPPED_CONFIGS)
    def test_the_derived_profile_equals_the_shipped_one(self, name: str) -> None:
        """Layers, consumers, constants, peers and notes of every group agree, and so do the model-wide constants."""
        shipped, derived = load_profile(name), derive(SHIPPED_CONFIGS[name], name=name)
        assert shipped.groups == derived.groups
        assert (shipped.name, shipped.layers) == (derived.name, derived.layers)
        assert shipped.constants == derived.constants

    def test_layer_types_and_ratios_say_the_same(self) -> None:
        """A configuration written by the library, with `layer_types` and rates, gives the same groups."""
        names = {
            0: "sliding_attention",
            4: "compressed_sparse_attention",
            128: "heavily_compressed_attention",
        }
        config = without(FLASH, "compress_ratios", "qk_rope_head_dim", "num_nextn_predict_layers") | {
            "layer_types": [names[ratio] for ratio in FLASH["compress_ratios"][:43]],
            "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128},
            "partial_rotary_factor": 0.125,
        }
        assert load_profile("deepseek-v4-flash").groups == derive(config).groups


class TestFamilies:
    """What each model type gives."""

    def test_every_known_model_type_is_tried_here(self) -> None:
        """No family goes without a configuration in these tests."""
        tried = {config["model_type"] for config in ALL}
        tried |= {config["text_config"]["model_type"] for config in ALL if "text_config" in config}
        assert tried == set(KNOWN_MODEL_TYPES)

    @pytest.mark.parametrize("config", ALL, ids=lambda config: config["model_type"])
    def test_a_derived_profile_can_be_saved(self, config: dict[str, Any], tmp_path: Path) -> None:
        """Its text loads back equal, and its source is the configuration's file."""
        profile = derive(config)
        path = tmp_path / "derived.yaml"
        path.write_text(dump_profile(profile), "utf-8")
        assert profile == load_profile(path)
        assert ("config.json",) == profile.sources

    def test_one_object_has_the_same_constants_in_every_family(self) -> None:
        """Which constants an object has does not depend on the model, but for those with an absent meaning."""
        names: dict[str, set[frozenset[str]]] = {}
        for profile in map(derive, ALL):
            for group in profile.groups:
                stated = frozenset(profile.constants_of(group)) - {"chunk", "media_ahead"}
                names.setdefault(group.object, set()).add(stated)
        assert all(len(each) == 1 for each in names.values()), names

    def test_plain_models_keep_everything(self) -> None:
        """Llama, and Qwen2 with its window switched off, have one full group."""
        for config in (LLAMA, QWEN2):
            profile = derive(config)
            assert ["full_kv", "demoted_prefix", "layer_inputs"] == [group.object for group in profile.groups]
            assert 2 * 8 * 128 * 2 * 32 == profile.groups[0].constants["row_bytes"]
            assert (0, True) == (profile.constants["receptive_field"], profile.constants["warmable"])

    def test_heads_default_as_the_library_does(self) -> None:
        """Without key-value heads there are as many as query heads; a stated head size wins."""
        many = derive(without(LLAMA, "num_key_value_heads"))
        assert 2 * 32 * 128 * 2 * 32 == many.groups[0].constants["row_bytes"]
        wide = derive(LLAMA | {"head_dim": 256})
        assert 2 * 8 * 256 * 2 * 32 == wide.groups[0].constants["row_bytes"]

    def test_mistral_slides_unless_the_window_is_null(self) -> None:
        """One window in all layers with it, full attention without it."""
        windowed, full = derive(MISTRAL), derive(MISTRAL | {"sliding_window": None})
        assert ["window", "window_boundary", "prefix_manifest", "layer_inputs"] == [
            group.id for group in windowed.groups
        ]
        assert 4095 * 32 == windowed.constants["receptive_field"]
        assert ["full", "prefix_manifest", "layer_inputs"] == [group.id for group in full.groups]

    def test_qwen2_slides_from_its_first_windowed_layer(self) -> None:
        """`max_window_layers` full layers come first."""
        profile = derive(QWEN2 | {"use_sliding_window": True, "max_window_layers": 28})
        assert (tuple(range(28)), (28, 29, 30, 31)) == (
            profile.groups[0].layers,
            profile.group("window").layers,
        )

    def test_gemma2_alternates_beginning_with_a_sliding_layer(self) -> None:
        """Even layers slide, odd layers are full."""
        profile = derive(GEMMA2)
        assert tuple(range(0, 26, 2)) == profile.group("window").layers
        assert tuple(range(1, 26, 2)) == profile.group("full").layers

    def test_v32_indexes_every_latent_row(self) -> None:
        """The index has a row a token, 132 bytes in each layer, and reads the latent group."""
        profile = derive(V32)
        index = profile.group("index")
        assert {"kv": "full"} == index.peers
        assert (1, 132 * 61, 2048) == tuple(index.constants[name] for name in ("ratio", "row_bytes", "top_k"))
        assert profile.group("full").constants["has_v"] is False

    def test_a_v4_model_without_compression_has_windows_only(self) -> None:
        """Absent kinds of layers make no empty groups, and need no index facts."""
        config = without(FLASH, "index_topk", "index_head_dim") | {
            "num_hidden_layers": 2,
            "compress_ratios": [0, 0],
        }
        assert ["window", "window_boundary", "prefix_manifest", "layer_inputs"] == [
            group.id for group in derive(config).groups
        ]

    def test_the_cache_type_can_be_stated(self) -> None:
        """`kv_dtype` wins over the configuration; fp8 halves the row and makes it depend on scales."""
        constants = derive(LLAMA, kv_dtype="float8_e4m3fn").groups[0].constants
        assert (8 * 128 * 2 * 32, True) == (constants["row_bytes"], constants["scaled"])

    def test_the_name_defaults_to_the_model_type(self) -> None:
        """Kebab case, as names of profiles are."""
        assert "gpt-oss" == derive(GPT_OSS).name

    def test_sharing_layers_are_consumers(self) -> None:
        """The last layers of Gemma 4 own no bytes; without sharing there are no consumers."""
        shared, alone = derive(GEMMA4_E2B), derive(text_with(GEMMA4_E2B, num_kv_shared_layers=0))
        for name in ("full", "window"):
            group, whole = shared.group(name), alone.group(name)
            assert set(group.layers) | set(group.consumers) == set(whole.layers)
            assert max(group.layers) < 15 <= min(group.consumers)
            assert () == whole.consumers
        assert shared.constants == alone.constants

    def test_the_last_layer_of_gemma_4_is_full_whatever_is_stated(self) -> None:
        """The library makes it so; a file without kinds has five sliding layers and a full one."""
        kinds = ["sliding_attention"] * 48
        assert (47,) == derive(text_with(GEMMA4_12B, layer_types=kinds)).group("full").layers
        assert derive(GEMMA4_12B).groups == derive(text_with(GEMMA4_12B, layer_types=None)).groups

    def test_full_layers_of_gemma_4_have_rows_of_their_own_size(self) -> None:
        """Their own number of heads counts only where values reuse the keys; their width is 512 where absent."""
        plain = derive(text_with(GEMMA4_12B, attention_k_eq_v=False)).group("full").constants
        assert 2 * 8 * 512 * 2 * 8 == plain["row_bytes"]
        absent = derive(text_with(GEMMA4_12B, global_head_dim=None)).group("full").constants
        assert 2 * 1 * 512 * 2 * 8 == absent["row_bytes"]

    @pytest.mark.parametrize(
        ("config", "ahead"),
        [
            (GEMMA4_12B, True),
            (text_with(GEMMA4_12B, use_bidirectional_attention=False), False),
            (text_with(GEMMA4_E2B, use_bidirectional_attention="vision"), True),
            (GEMMA4_E2B, False),
            (GEMMA_27B, True),
            (without(GEMMA_27B, "vision_config"), False),
            (GEMMA_1B, False),
            (LLAMA4, False),
        ],
    )
    def test_pictures_that_are_read_both_ways_are_marked(self, config: dict[str, Any], ahead: bool) -> None:
        """The unified Gemma 4 is so by default; Gemma 3 where it has a vision part; Llama 4 never."""
        assert ahead is derive(config).constants.get("media_ahead", False)

    def test_llama_4_takes_its_kinds_from_lists_or_the_interval(self) -> None:
        """`layer_types` say the same as `no_rope_layers`, and an empty list as every fourth layer."""
        kinds = [*["chunked_attention"] * 3, "full_attention"] * 12
        stated: list[dict[str, Any]] = [{"layer_types": kinds}, {"no_rope_layers": []}, {"no_rope_layers": None}]
        for values in stated:
            assert derive(LLAMA4).groups == derive(text_with(LLAMA4, **values)).groups
        every_second = derive(text_with(LLAMA4, no_rope_layers=[], no_rope_layer_interval=2))
        assert tuple(range(1, 48, 2)) == every_second.group("full").layers

    def test_minimax_takes_its_kinds_from_either_list(self) -> None:
        """The published files and the library's say the same."""
        for config in (MINIMAX_M1, MINIMAX_LIBRARY):
            assert derive(MINIMAX).groups == derive(config).groups

    def test_kimi_counts_layers_from_one(self) -> None:
        """The list of delta layers may be absent: all others are delta layers."""
        section = KIMI["linear_attn_config"]
        alone = KIMI | {"linear_attn_config": without(section, "kda_layers")}
        assert derive(KIMI).groups == derive(alone).groups
        assert (3, 7, 11, 15, 19, 23, 26) == derive(KIMI).group("full").layers

    def test_nsa_keeps_all_raw_rows_and_an_entry_a_block(self) -> None:
        """How many blocks are selected, and how wide the window is, changes nothing that is kept."""
        other = derive(NSA | {"block_counts": 4, "window_size": 0})
        assert derive(NSA).groups == other.groups
        assert 32 == derive(NSA | {"block_size": 32}).group("block_entries").constants["ratio"]


class TestRefusals:
    """Missing and impossible facts."""

    @pytest.mark.parametrize(
        ("config", "key"),
        [
            (FLASH, "num_hidden_layers"),
            (FLASH, "head_dim"),
            (FLASH, "qk_rope_head_dim"),
            (FLASH, "sliding_window"),
            (FLASH, "index_head_dim"),
            (FLASH, "index_topk"),
            (QWEN_NEXT, "num_key_value_heads"),
            (QWEN_NEXT, "head_dim"),
            (QWEN_NEXT, "linear_num_key_heads"),
            (QWEN_NEXT, "linear_num_value_heads"),
            (QWEN_NEXT, "linear_key_head_dim"),
            (QWEN_NEXT, "linear_value_head_dim"),
            (QWEN_NEXT, "linear_conv_kernel_dim"),
            (GPT_OSS, "sliding_window"),
            (GPT_OSS, "num_key_value_heads"),
            (V32, "kv_lora_rank"),
            (V32, "qk_rope_head_dim"),
            (V32, "index_head_dim"),
            (V32, "index_topk"),
            (LLAMA, "model_type"),
            (LLAMA, "hidden_size"),
            (LLAMA, "num_attention_heads"),
            (MISTRAL, "sliding_window"),
            (KIMI, "linear_attn_config"),
            (KIMI, "kv_lora_rank"),
            (KIMI, "qk_rope_head_dim"),
            (MINIMAX, "num_attention_heads"),
            (MINIMAX, "attn_type_list"),
            (MINIMAX_LIBRARY, "num_hidden_layers"),
            (NSA, "num_heads"),
            (NSA, "head_dim"),
            (NSA, "block_size"),
        ],
        ids=lambda value: value if isinstance(value, str) else value["model_type"],
    )
    def test_a_missing_key_is_named(self, config: dict[str, Any], key: str) -> None:
        """The error says which key is missing, and in which file."""
        with pytest.raises(ProfileError) as caught:
            derive(without(config, key))
        assert f"the configuration lacks the key {key}" == caught.value.message
        assert "config.json" == caught.value.where.file

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            (without(FLASH, "compress_ratios"), "lacks the key layer_types"),
            (without(LLAMA, "torch_dtype"), "lacks the key dtype"),
            (without(GEMMA_27B, "dtype"), r"lacks the key text_config\.dtype"),
            (FLASH | {"compress_rates": {}}, r"lacks the key compress_rates\.compressed_sparse_attention"),
            (FLASH | {"compress_rates": [4]}, "compress_rates is not an object"),
            (
                FLASH | {"compress_ratios": FLASH["compress_ratios"][:42]},
                "compress_ratios does not name every layer",
            ),
            (FLASH | {"num_nextn_predict_layers": 0}, "compress_ratios does not name every layer"),
            (FLASH | {"compress_ratios": [0, 0, 16, *[4] * 40]}, r"compress_ratios\[2\] is no known ratio"),
            (FLASH | {"compress_ratios": [0, 0, True, *[4] * 40]}, r"compress_ratios\[2\] is no known ratio"),
            (FLASH | {"compress_ratios": [[], 0, *[4] * 41]}, r"compress_ratios\[0\] is no known ratio"),
            (FLASH | {"compress_ratios": "4" * 43}, "compress_ratios is not a list"),
            (FLASH | {"compress_ratios": [4] * 5000}, "compress_ratios is too long"),
            (FLASH | {"num_key_value_heads": 2}, "num_key_value_heads is not 1"),
            (FLASH | {"qk_rope_head_dim": 513}, "qk_rope_head_dim is out of range"),
            (
                FLASH | {"qk_rope_head_dim": None, "partial_rotary_factor": 2.0},
                "partial_rotary_factor is no share",
            ),
            (GPT_OSS | {"layer_types": ["full_attention"]}, "layer_types does not name every layer"),
            (
                GPT_OSS | {"layer_types": ["full_attention"] * 35 + ["chunked"]},
                r"layer_types\[35\] is no known kind",
            ),
            (
                GPT_OSS | {"layer_types": ["full_attention"] * 35 + [[]]},
                r"layer_types\[35\] is no known kind",
            ),
            (GPT_OSS | {"use_bidirectional_attention": True}, "use_bidirectional_attention is set"),
            (GPT_OSS | {"sliding_window": None}, "lacks the key sliding_window"),
            (text_with(GEMMA4_E2B, num_kv_shared_layers=35), "num_kv_shared_layers is out of range"),
            (text_with(GEMMA4_E2B, num_kv_shared_layers=31), "leaves a sharing layer without an earlier layer"),
            (text_with(GEMMA4_E2B, use_bidirectional_attention="all"), "lets later tokens change earlier rows"),
            (text_with(GEMMA4_E2B, sliding_window=None), r"lacks the key text_config\.sliding_window"),
            (text_with(GEMMA4_E2B, head_dim=None), r"lacks the key text_config\.head_dim"),
            (text_with(LLAMA4, attention_chunk_size=None), r"lacks the key text_config\.attention_chunk_size"),
            (text_with(LLAMA4, no_rope_layers=[1, 0]), "no_rope_layers does not name every layer"),
            (text_with(LLAMA4, no_rope_layers=[2] * 48), r"no_rope_layers\[0\] is neither 0 nor 1"),
            (text_with(LLAMA4, layer_types=["sliding_attention"] * 48), r"layer_types\[0\] is no known kind"),
            (MINIMAX | {"attn_type_list": [0, 1]}, "attn_type_list does not name every layer"),
            (MINIMAX | {"attn_type_list": [2] * 80}, r"attn_type_list\[0\] is no known kind"),
            (kimi(full_attn_layers=[0]), r"full_attn_layers\[0\] is no layer, counted from 1"),
            (kimi(full_attn_layers=[28]), r"full_attn_layers\[0\] is no layer, counted from 1"),
            (kimi(full_attn_layers=[4, 4]), r"full_attn_layers\[1\] names a layer twice"),
            (kimi(full_attn_layers=[4]), "kda_layers and full_attn_layers do not name every layer once"),
            (kimi(short_conv_kernel_size=None), r"lacks the key linear_attn_config\.short_conv_kernel_size"),
            (LLAMA | {"model_type": "lama"}, "model_type is a model type whose cache groups are not known"),
            (LLAMA | {"model_type": 7}, "model_type is not a text"),
            (LLAMA | {"text_config": []}, "text_config is not an object"),
            (LLAMA | {"hidden_size": 4097}, "hidden_size is no multiple of num_attention_heads"),
            (LLAMA | {"torch_dtype": "int3"}, "dtype is no element type"),
            (LLAMA | {"num_hidden_layers": 0}, "num_hidden_layers is out of range"),
            (LLAMA | {"num_hidden_layers": -1}, "num_hidden_layers is out of range"),
            (LLAMA | {"num_hidden_layers": 4097}, "num_hidden_layers is out of range"),
            (LLAMA | {"num_hidden_layers": 10**6000}, "num_hidden_layers is out of range"),
            (LLAMA | {"num_hidden_layers": True}, "num_hidden_layers is not an integer"),
            (LLAMA | {"num_hidden_layers": 32.0}, "num_hidden_layers is not an integer"),
            (LLAMA | {"num_hidden_layers": "32"}, "num_hidden_layers is not an integer"),
            (QWEN2 | {"use_sliding_window": "yes"}, "use_sliding_window is not a Boolean"),
            (QWEN2 | {"use_sliding_window": True}, "lacks the key max_window_layers"),
            (
                QWEN_NEXT
                | dict.fromkeys(QWEN_NEXT, 2**31)
                | {
                    "num_hidden_layers": 1,
                    "linear_num_value_heads": 2**31,
                    "model_type": "qwen3_next",
                    "torch_dtype": "float32",
                },
                r"not valid at|between 0 and 2\*\*62",
            ),
        ],
    )
    def test_an_impossible_value_is_named_by_its_path(self, config: dict[str, Any], message: str) -> None:
        """The error gives the key's path and what is wrong with its value."""
        with pytest.raises(ProfileError, match=message) as caught:
            derive(config)
        assert "config.json" == caught.value.where.file

    @pytest.mark.parametrize(
        ("config", "key", "decides"),
        [
            (LLAMA | {"attention_chunk_size": 8192}, "attention_chunk_size", "history of local layers restarts"),
            (LLAMA | {"sliding_window": 4096}, "sliding_window", "how many rows a layer keeps"),
            (LLAMA | {"num_kv_shared_layers": 8}, "num_kv_shared_layers", "which layers own no rows"),
            (MISTRAL | {"layer_types": ["full_attention"] * 32}, "layer_types", "kind of attention"),
            (QWEN2 | {"kv_lora_rank": 512}, "kv_lora_rank", "how large a row is"),
            (GPT_OSS | {"compress_ratios": [4] * 36}, "compress_ratios", "how many tokens an entry"),
            (V32 | {"index_topk_freq": 4}, "index_topk_freq", "which layers own no rows or keys"),
            (FLASH | {"kv_source_layers": [1, 3]}, "kv_source_layers", "which layers own no rows or keys"),
            (QWEN_NEXT | {"sliding_window": 512}, "sliding_window", "how many rows a layer keeps"),
            (MINIMAX | {"sliding_window": 512}, "sliding_window", "how many rows a layer keeps"),
            (KIMI | {"index_topk": 512}, "index_topk", "whether layers keep index keys"),
            (NSA | {"num_kv_shared_layers": 2}, "num_kv_shared_layers", "which layers own no rows"),
            (text_with(LLAMA4, sliding_window=512), "text_config.sliding_window", "how many rows a layer keeps"),
            (text_with(GEMMA4_12B, per_layer_config={"5": {}}), "text_config.per_layer_config", "how large a row"),
        ],
        ids=lambda value: value if isinstance(value, str) else value["model_type"],
    )
    def test_a_deciding_key_that_is_not_read_is_refused(self, config: dict[str, Any], key: str, decides: str) -> None:
        """The error names the key and says what it would decide; it is never ignored."""
        with pytest.raises(ProfileError) as caught:
            derive(config)
        assert caught.value.message.startswith(f"{key} decides ")
        assert decides in caught.value.message
        assert "config.json" == caught.value.where.file

    @pytest.mark.parametrize("key", sorted(DECIDING_KEYS.keys() - {"layer_types", "use_sliding_window"}))
    def test_a_deciding_key_that_states_nothing_is_no_fault(self, key: str) -> None:
        """Null, false, 0 and empty values are what a model without the key has."""
        idle: list[Any] = [None, False, 0, [], {}]
        for value in idle:
            assert derive(LLAMA).groups == derive(LLAMA | {key: value}).groups

    def test_a_window_that_is_switched_off_is_no_fault(self) -> None:
        """As published files of models without windows have it; one key in an index's layer is no sharing."""
        off = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}
        assert derive(QWEN_NEXT).groups == derive(QWEN_NEXT | off).groups
        assert derive(V32).groups == derive(V32 | {"index_topk_freq": 1}).groups

    def test_an_unknown_model_type_lists_the_known_ones(self) -> None:
        """The error says what is known and what is closest."""
        with pytest.raises(ProfileError) as caught:
            derive(LLAMA | {"model_type": "gemma3_txt"})
        assert ", ".join(KNOWN_MODEL_TYPES) == caught.value.expected
        assert "did you mean gemma3_text?" == caught.value.hint

    @pytest.mark.parametrize("name", ["Tiny", "a b", "../a", "a_b", "x" * 65])
    def test_a_name_that_is_no_name_is_refused(self, name: str) -> None:
        """Names of profiles are kebab case."""
        with pytest.raises(ProfileError, match="not valid at profile"):
            derive(LLAMA, name=name)

    @given(
        st.sampled_from(ALL),
        st.data(),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.lists(st.integers() | st.text(max_size=3), max_size=3)
        | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    )
    def test_no_value_of_any_key_raises_anything_else(
        self, config: dict[str, Any], data: st.DataObject, value: object
    ) -> None:
        """With any one value replaced, there is a valid profile or an error of ours."""
        key = data.draw(st.sampled_from(sorted(config)))
        try:
            derive(config | {key: value})
        except HitproofError as error:
            assert str(error)


class TestReading:
    """The file itself."""

    def write(self, folder: Path, data: str | bytes) -> Path:
        """A configuration file."""
        path = folder / "config.json"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def test_a_file_gives_the_same_profile_as_its_content(self, tmp_path: Path) -> None:
        """Also with a byte order mark in front; the source is the path."""
        path = self.write(tmp_path, b"\xef\xbb\xbf" + json.dumps(FLASH).encode())
        profile = profile_from_config_file(path, name="flash")
        assert derive(FLASH).groups == profile.groups
        assert ("flash", (str(path)[-200:],)) == (profile.name, profile.sources)

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            ("", ProfileError, "not JSON"),
            ("{", ProfileError, "not JSON"),
            ("[1]", ProfileError, "is a JSON object"),
            ("null", ProfileError, "is a JSON object"),
            (b"\xff\xfe{}", ProfileError, "not UTF-8"),
            (b'{"a": 1, "a": 2}', DuplicateError, "'a' stands twice"),
            (b'{"a": {"b": 1, "b": 2}}', DuplicateError, "'b' stands twice"),
            (b'{"a": ' + b"9" * 5000 + b"}", InputTooLargeError, "too many digits"),
            (b'{"a":' * 100_000, InputTooLargeError, "nested too deeply"),
            (b" " * (MAX_CONFIG_BYTES + 1), InputTooLargeError, "too large"),
        ],
        ids=["empty", "open", "list", "null", "binary", "twice", "nested", "digits", "deep", "large"],
    )
    def test_bad_files_raise_typed_errors(
        self, data: str | bytes, error: type[HitproofError], message: str, tmp_path: Path
    ) -> None:
        """Each fault has its own error, with the file's name."""
        path = self.write(tmp_path, data)
        with pytest.raises(error, match=message) as caught:
            read_config(path)
        assert str(path) == caught.value.where.file

    def test_broken_json_is_told_with_line_and_column(self, tmp_path: Path) -> None:
        """The place is where the parser stopped."""
        path = self.write(tmp_path, '{"a": 1,\n "b" 2}')
        with pytest.raises(ProfileError) as caught:
            read_config(path)
        assert (2, 6) == (caught.value.where.line, caught.value.where.column)

    @pytest.mark.parametrize("path", ["absent.json", ".", "/dev/zero", "a\0b"])
    def test_what_is_no_regular_file_is_refused(self, path: str) -> None:
        """Nothing is read from folders and devices."""
        with pytest.raises(MissingFileError):
            read_config(Path(path))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_refused_without_waiting(self, tmp_path: Path) -> None:
        """A pipe that nobody writes does not block."""
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(MissingFileError):
            read_config(tmp_path / "pipe")
