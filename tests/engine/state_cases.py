"""Resolved states for decisions: healthy ones of any bound rulebook, and random ones with a few faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.healthy import healthy_segment
from hitproof.engine.state import Resolved
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.facts import Fact
from hitproof.spec.profile import Group, Profile

PROFILES = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")
ADDRESS = 9 * 2**17
"""A multiple of every alignment in use."""


def _profile(name: str, *groups: Group, **constants: int | bool) -> Profile:
    return Profile(profile=name, title=name, layers=4, constants=constants, groups=list(groups))


def _group(name: str, kind: str, **constants: int | bool) -> Group:
    return Group(id=name, object=kind, layers=["0-3"], constants=constants)


_KV = {"row_bytes": 64, "alignment": 64, "stride": 4096}
SMALL: Mapping[str, Profile] = {
    "window-short": _profile(
        "window-short",
        _group("kv", "full_kv", **_KV),
        _group("tail", "uncompressed_tail", window=16, **_KV),
        _group("edge", "window_boundary"),
        _group("inputs", "layer_inputs", **_KV),
        _group("manifest", "demoted_prefix"),
        receptive_field=60,
        warmable=True,
    ),
    "pooled": _profile(
        "pooled",
        _group("entries", "compressed_global", ratio=8, row_tokens=8, **_KV),
        _group("index", "routing_index", ratio=8, row_tokens=8, **_KV),
        _group("state", "compressor_state", ratio=8, overlap=8, state_bytes=512, alignment=64, stride=4096),
        _group("inputs", "layer_inputs", **_KV),
        _group("manifest", "demoted_prefix"),
        receptive_field=24,
        warmable=True,
    ).model_copy(
        update={
            "groups": [
                _group("entries", "compressed_global", ratio=8, row_tokens=8, **_KV),
                replace_peers(_group("index", "routing_index", ratio=8, row_tokens=8, **_KV), kv="entries"),
            ]
        }
    )
    if False
    else _profile("pooled"),
}
