"""Rows as the library that runs a model keeps them, and the groups of Nemotron-H."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.rules.from_config import profile_from_config
from hitproof.spec.errors import ProfileError
from hitproof.spec.profile import Profile
from tests.rules.model_configs import ALL, NEMOTRON_H, SHIPPED_CONFIGS

FLASH, V32 = SHIPPED_CONFIGS["deepseek-v4-flash"], SHIPPED_CONFIGS["deepseek-v3.2"]
GEMMA = SHIPPED_CONFIGS["gemma-3-1b"]
MAMBA, ATTENTION = NEMOTRON_H["hybrid_override_pattern"].count("M"), NEMOTRON_H["hybrid_override_pattern"].count("*")
NAMES = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}


def derive(config: dict[str, Any], **options: Any) -> Profile:
    """The profile of a configuration."""
    return profile_from_config(config, file="config.json", **options)


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The configuration less some keys."""
    return {key: value for key, value in config.items() if key not in keys}


class TestPlainRows:
    """One element type in every row, and no scales."""

    @pytest.mark.parametrize(
        ("group", "width", "layers"), [("window", 512, 43), ("csa_entries", 512, 21), ("csa_index", 128, 21)]
    )
    def test_v4_rows_are_values_alone(self, group: str, width: int, layers: int) -> None:
        """As many values as the head is wide, two bytes each in bfloat16 and four in float32."""
        for dtype, size in (("bfloat16", 2), ("float32", 4)):
            constants = derive(FLASH, rows="plain", kv_dtype=dtype).group(group).constants
            assert (width * size * layers, False) == (constants["row_bytes"], constants["scaled"])

    def test_v32_index_keys_are_values_alone(self) -> None:
        """128 values a key, without a scale."""
        constants = derive(V32, rows="plain", kv_dtype="float32").group("index").constants
        assert (128 * 4 * 61, False) == (constants["row_bytes"], constants["scaled"])

    def test_layer_inputs_have_the_element_type(self) -> None:
        """Float32 inputs take twice the bytes of those that are served."""
        served, plain = derive(GEMMA), derive(GEMMA, rows="plain", kv_dtype="float32")
        twice = 2 * int(served.group("layer_inputs").constants["row_bytes"])
        assert twice == plain.group("layer_inputs").constants["row_bytes"]

    def test_compressor_states_are_the_same(self) -> None:
        """They are float32 either way."""
        served, plain = derive(FLASH), derive(FLASH, rows="plain")
        for group in ("csa_state", "csa_index_state", "hca_state"):
            assert served.group(group) == plain.group(group)

    @pytest.mark.parametrize("config", ALL, ids=lambda config: config["model_type"])
    def test_the_groups_are_the_same(self, config: dict[str, Any]) -> None:
        """Only bytes and scales differ: ids, objects, layers, consumers, peers and model-wide constants do not."""
        served, plain = derive(config), derive(config, rows="plain")
        assert served.constants == plain.constants
        for one, other in zip(served.groups, plain.groups, strict=True):
            assert (one.id, one.object, one.layers, one.consumers, one.peers) == (
                other.id,
                other.object,
                other.layers,
                other.consumers,
                other.peers,
            )
            bytes_apart = ("row_bytes", "stride", "scaled")
            assert without(dict(one.constants), *bytes_apart) == without(dict(other.constants), *bytes_apart)

    def test_indexed_attention_is_what_the_library_calls_sparse_attention(self) -> None:
        """A configuration written by the library gives the same groups."""
        config = V32 | {"layer_types": ["indexed_attention"] * 61}
        assert derive(V32).groups == derive(config).groups


class TestNemotron:
    """State-space layers, full ones, and those that keep nothing."""

    def test_states_and_rows_are_of_their_layers(self) -> None:
        """Every M has a state, every star a row a token; a layer without attention is in no group of either."""
        profile = derive(NEMOTRON_H)
        pattern = NEMOTRON_H["hybrid_override_pattern"]
        assert [layer for layer, kind in enumerate(pattern) if kind == "M"] == list(profile.group("linear").layers)
        assert [layer for layer, kind in enumerate(pattern) if kind == "*"] == list(profile.group("full").layers)

    def test_a_state_is_the_recurrence_and_three_inputs_of_the_convolution(self) -> None:
        """128 heads of 64 x 128 in float32, and three inputs of 10,240 channels in bfloat16."""
        state = 128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2
        assert MAMBA * state == derive(NEMOTRON_H).group("linear").constants["state_bytes"]
        assert ATTENTION * 2 * 8 * 128 * 2 == derive(NEMOTRON_H).group("full").constants["row_bytes"]

    def test_the_type_of_the_state_can_be_stated(self) -> None:
        """`mamba_ssm_cache_dtype` is that of the recurrence alone."""
        state = 128 * 64 * 128 * 2 + 3 * (128 * 64 + 2 * 8 * 128) * 2
        constants = derive(NEMOTRON_H | {"mamba_ssm_cache_dtype": "bfloat16"}).group("linear").constants
        assert MAMBA * state == constants["state_bytes"]

    @pytest.mark.parametrize("key", ["layers_block_type", "layer_types"])
    def test_a_list_of_kinds_says_the_same_as_the_letters(self, key: str) -> None:
        """So do the names that older files have."""
        kinds = [NAMES[letter] for letter in NEMOTRON_H["hybrid_override_pattern"]]
        older = {"linear_attention": "mamba", "full_attention": "attention"}
        config = without(NEMOTRON_H, "hybrid_override_pattern")
        for stated in (kinds, [older.get(kind, kind) for kind in kinds]):
            assert derive(NEMOTRON_H).groups == derive(config | {key: stated}).groups

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"hybrid_override_pattern": "M" * 51}, "hybrid_override_pattern does not name every layer"),
            ({"hybrid_override_pattern": "M" * 51 + "x"}, "hybrid_override_pattern[51] is no known kind of block"),
            ({"hybrid_override_pattern": None}, "lacks the key layers_block_type"),
            ({"layers_block_type": ["mlp"] * 51 + [3]}, "layers_block_type[51] is no known kind of block"),
            ({"sliding_window": 128}, "sliding_window decides"),
            ({"ssm_state_size": None}, "lacks the key ssm_state_size"),
        ],
    )
    def test_what_is_not_known_is_refused(self, values: dict[str, Any], said: str) -> None:
        """By the key and the place in it."""
        with pytest.raises(ProfileError) as caught:
            derive(NEMOTRON_H | values)
        assert said in str(caught.value)
