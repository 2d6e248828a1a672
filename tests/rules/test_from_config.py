"""A derived profile equals the shipped one, and what cannot be derived is refused by its key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hitproof.rules.from_config import KNOWN_MODEL_TYPES, profile_from_config, profile_from_config_file
from hitproof.rules.model_config import MAX_CONFIG_BYTES, read_config
from hitproof.rules.profiles import dump_profile, load_profile
from hitproof.spec.errors import (
    DuplicateError,
    HitproofError,
    InputTooLargeError,
    MissingFileError,
    ProfileError,
)
from hitproof.spec.profile import Profile

SHEETS = Path(__file__).parents[2].parent / "shared" / "data" / "models"

FLASH: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 43,
    "hidden_size": 4096,
    "num_nextn_predict_layers": 1,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "sliding_window": 128,
    "index_head_dim": 128,
    "index_topk": 512,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
}
PRO = FLASH | {
    "num_hidden_layers": 61,
    "index_topk": 1024,
    "compress_ratios": [128, 128, *[4, 128] * 29, 4, 0],
}
GEMMA_27B: dict[str, Any] = {
    "model_type": "gemma3",
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text",
        "num_hidden_layers": 62,
        "hidden_size": 5376,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
    },
}
GEMMA_4B = {
    "model_type": "gemma3",
    "dtype": "bfloat16",
    "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
}
QWEN_NEXT: dict[str, Any] = {
    "model_type": "qwen3_next",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "dtype": "bfloat16",
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
}
V32: dict[str, Any] = {
    "model_type": "deepseek_v32",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 61,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "index_topk": 2048,
}
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
QWEN2 = LLAMA | {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}
MISTRAL = LLAMA | {"model_type": "mistral", "sliding_window": 4096}
GEMMA2 = GPT_OSS | {
    "model_type": "gemma2",
    "num_hidden_layers": 26,
    "sliding_window": 4096,
    "layer_types": None,
}
ALL = [FLASH, PRO, GEMMA_27B, GEMMA_4B, QWEN_NEXT, GPT_OSS, V32, LLAMA, QWEN2, MISTRAL, GEMMA2]


def derive(config: dict[str, Any], **options: Any) -> Profile:
    """The profile of a configuration."""
    return profile_from_config(config, file="config.json", **options)


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The configuration less some keys."""
    return {key: value for key, value in config.items() if key not in keys}


class TestShippedModels:
    """The three models that come with the package."""

    @pytest.mark.parametrize(
        ("name", "config"),
        [("deepseek-v4-flash", FLASH), ("gemma-3-27b", GEMMA_27B), ("qwen3-next-80b-a3b", QWEN_NEXT)],
    )
    def test_the_derived_profile_equals_the_shipped_one(self, name: str, config: dict[str, Any]) -> None:
        """Layers, constants, peers and notes of every group agree, and so do the model-wide constants."""
        shipped, derived = load_profile(name), derive(config, name=name)
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


@pytest.mark.skipif(not SHEETS.is_dir(), reason="the model sheets are not beside this repository")
class TestAgainstSheets:
    """Layers of further models, read independently from the model sheets."""

    @pytest.mark.parametrize(
        ("sheet", "config", "groups"),
        [
            ("deepseek-v4-pro", PRO, {"csa": "csa_entries", "hca": "hca_entries"}),
            ("gemma-3-4b", GEMMA_4B, {"sliding": "window", "full": "full"}),
            ("gpt-oss-120b", GPT_OSS, {"sliding": "window", "full": "full"}),
            ("deepseek-v3.2", V32, {"mla_latent": "full"}),
        ],
    )
    def test_layers_sizes_and_windows_agree(self, sheet: str, config: dict[str, Any], groups: dict[str, str]) -> None:
        """Each group has the sheet's layers, and its elements a token where it is kept in bfloat16."""
        told = yaml.safe_load((SHEETS / f"{sheet}.yaml").read_text("utf-8"))
        profile = derive(config)
        assert told["num_layers"] == profile.layers
        for each in told["cache_groups"]:
            group = profile.group(groups[each["id"]])
            assert each["layers"] == list(group.layers)
            if "elements_per_token_per_layer" in each:
                size = 2 * each["elements_per_token_per_layer"] * each["layer_count"]
                assert size == group.constants["row_bytes"]
            if each["kind"] == "sliding_window":
                assert each["window"] == group.constants["window"]
            if "index_topk" in each:
                assert each["index_topk"] == profile.group("csa_index").constants["top_k"]


class TestFamilies:
    """What each model type gives."""

    def test_every_known_model_type_is_tried_here(self) -> None:
        """No family goes without a configuration in these tests."""
        tried = {config["model_type"] for config in ALL} | {"gemma3_text"}
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
        """Which constants an object has does not depend on the model."""
        names: dict[str, set[frozenset[str]]] = {}
        for profile in map(derive, ALL):
            for group in profile.groups:
                names.setdefault(group.object, set()).add(frozenset(profile.constants_of(group)))
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
            (without(GEMMA_27B, "torch_dtype"), r"lacks the key text_config\.dtype"),
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
