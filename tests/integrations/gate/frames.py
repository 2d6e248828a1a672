"""Tiny models as a framework groups them, with gates over them; shared by the tests of the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitproof.integrations.gate import BlockGate, GroupBlocks
from hitproof.rules.from_config import profile_from_config
from hitproof.spec.profile import Profile

IDENTITY = {"weights": "w0", "attention_config": "a0", "adapter": "none", "media": "none", "salt": "none"}
CONTRACT = {
    "layout": "NHD",
    "version": "1",
    "encoding": "bfloat16",
    "scale_version": "none",
    "v_layout": "rows",
    "shard": "0/1",
}
TOKENS = 16
"""Tokens of a block of every group."""

GEMMA = {
    "full": GroupBlocks((5,), TOKENS, 2048, 4096, 64),
    "near": GroupBlocks((0, 2), TOKENS, 2048, 8192, 64),
    "far": GroupBlocks((1, 3, 4), TOKENS, 2048, 0, 64),
}
"""One full layer and five of a window of 64 tokens, the latter in two groups."""

QWEN = {"full": GroupBlocks((3,), TOKENS, 2048, 0, 64), "linear": GroupBlocks((0, 1, 2), TOKENS, 13440, 0, 64)}
"""One full layer and three with a recurrent state."""


def gemma() -> Profile:
    """A Gemma 3 of six layers."""
    config = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 6,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "sliding_window": 64,
        "dtype": "bfloat16",
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    }
    return profile_from_config(config, file="config.json")


def qwen() -> Profile:
    """A Qwen3-Next of four layers."""
    config = {
        "model_type": "qwen3_next",
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "dtype": "bfloat16",
        "full_attention_interval": 4,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
    }
    return profile_from_config(config, file="config.json")


def gate(profile: Profile, groups: Mapping[str, GroupBlocks], **options: Any) -> BlockGate:
    """A gate over these groups, with every identity known."""
    return BlockGate(profile, groups, **{"identity": IDENTITY, "contract": CONTRACT, **options})


def digests(count: int, prompt: str = "p") -> list[str]:
    """What a framework files the blocks of a prompt under."""
    return [f"{prompt}{index}" for index in range(count)]


def filled(one: BlockGate, count: int, **stated: Any) -> dict[str, list[int]]:
    """Writes a prompt of so many blocks into blocks 1, 2, ... of every group, and lists them as a look-up would."""
    blocks = list(range(1, count + 1))
    for group in one.groups:
        one.written(group, blocks, first=0, digests=digests(count), **stated)
    return {group: list(blocks) for group in one.groups}


def asked(blocks: Mapping[str, Sequence[int]], prompt: str = "p") -> dict[str, list[str]]:
    """The digests by which each block of these lists was found."""
    return {group: digests(len(listed), prompt) for group, listed in blocks.items()}
