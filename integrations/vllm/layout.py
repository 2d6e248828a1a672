"""The gate of one vLLM engine: its cache groups, their places in memory, and what its attention kernels read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.observe import NOBODY, Observer
from hitproof.integrations.gate import BlockGate, GroupBlocks, Verify
from hitproof.integrations.vllm.identity import Identities
from hitproof.integrations.vllm.workers import Workers
from hitproof.rules.from_config import profile_from_config
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile

__all__ = ["CacheGroup", "cache_groups", "contracts", "make_gate", "model_profile", "refuse_unsupported"]

NULL_BLOCK = 0
"""vLLM's block that stands for tokens behind a window."""


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """A group of vLLM.

    Args:
        index: Its number there.
        name: Its name for the gate.
        layers: Names of its layers.
        blocks: Its blocks for the gate.
        layout, encoding: What its kernel reads.
    """

    index: int
    name: str
    layers: tuple[str, ...]
    blocks: GroupBlocks
    layout: str
    encoding: str


def refuse_unsupported(config: Any, kv_cache_config: Any, coordinator: Any) -> None:
    """Refuse what the gate does not understand, so that nothing is served as if it were gated.

    Raises:
        UsageError: Layers or blocks are cut in a way that the gate has no facts for.
    """
    parallel = config.parallel_config
    for name in ("pipeline_parallel_size", "decode_context_parallel_size", "prefill_context_parallel_size"):
        if getattr(parallel, name, 1) != 1:
            raise UsageError(f"the gate does not cover {name}", got=getattr(parallel, name), expected=1)
    if not config.cache_config.enable_prefix_caching:
        raise UsageError("there is no prefix cache to gate", got="enable_prefix_caching=False")
    if coordinator.enable_partial_hash_hits:
        raise UsageError("the gate does not cover hits inside of a block", got="partial hash hits")
    if len({id(one.block_pool) for one in coordinator.single_type_managers}) != 1:
        raise UsageError("the gate covers one pool of blocks", got="several pools")
    if any(group.host_resident for group in kv_cache_config.kv_cache_groups):
        raise UsageError("the gate does not cover groups whose blocks lie on the host", got="host_resident")


def cache_groups(kv_cache_config: Any, workers: Workers) -> list[CacheGroup]:
    """The groups of which vLLM caches prefixes."""
    groups = []
    for index, group in enumerate(kv_cache_config.kv_cache_groups):
        spec = group.kv_cache_spec
        if not spec.prefix_cacheable:
            continue
        places = workers.places(group.layer_names)
        blocks = GroupBlocks(
            layers=tuple(_number(name) for name in group.layer_names),
            tokens=spec.block_size,
            stride=places[0].stride,
            address=places[0].address,
            # vLLM allocates with the backend's own alignment and says none; its element is the least of it.
            alignment=spec.dtype.itemsize if hasattr(spec, "dtype") else None,
        )
        layout = " ".join(dict.fromkeys(place.layout for place in places))
        groups.append(CacheGroup(index, str(index), tuple(group.layer_names), blocks, layout, places[0].encoding))
    return groups


def model_profile(config: Any, kv_cache_config: Any) -> Profile:
    """The model's profile for one worker's share of heads.

    Raises:
        ProfileError: Its configuration is of no known type.
    """
    model = config.model_config
    text = {**model.hf_text_config.to_dict()}
    specs = [group.kv_cache_spec for group in kv_cache_config.kv_cache_groups]
    if config.parallel_config.tensor_parallel_size > 1:
        heads = {spec.num_kv_heads for spec in specs if hasattr(spec, "num_kv_heads")}
        if len(heads) != 1:
            raise UsageError("groups with different heads are not covered with tensor parallelism", got=sorted(heads))
        text["num_key_value_heads"] = heads.pop()
    dtypes = {str(spec.dtype).removeprefix("torch.") for spec in specs if hasattr(spec, "dtype")}
    return profile_from_config(text, file=f"{model.model}/config.json", kv_dtype=next(iter(dtypes), None))


def contracts(config: Any, groups: list[CacheGroup], scales: str) -> Mapping[str, Mapping[str, str]]:
    """By group, what its attention kernel reads.

    Args:
        config: vLLM's configuration.
        groups: The groups.
        scales: Identity of the scales of quantised keys and values: they are part of the weights.
    """
    parallel = config.parallel_config
    return {
        group.name: {
            "layout": group.layout,
            "version": group.layout.split(" ", 1)[0],
            "encoding": f"{group.encoding} {config.cache_config.cache_dtype}",
            "scale_version": scales if "fp8" in str(config.cache_config.cache_dtype) else "no scales",
            "v_layout": group.layout,
            "shard": f"{parallel.tensor_parallel_size} by heads",
        }
        for group in groups
    }


def make_gate(
    config: Any,
    kv_cache_config: Any,
    groups: list[CacheGroup],
    workers: Workers,
    identities: Identities,
    verify: Verify,
    observer: Observer = NOBODY,
) -> BlockGate:
    """The gate of an engine, with everything that is fixed while it runs."""
    layers = {group.name: group.layers for group in groups}
    usual = identities.usual()
    return BlockGate(
        model_profile(config, kv_cache_config),
        {group.name: group.blocks for group in groups},
        identity=usual,
        contract=contracts(config, groups, usual["weights"]),
        measure=None if verify == "never" else lambda group, blocks: workers.fingerprints(layers[group], blocks),
        verify=verify,
        absent=NULL_BLOCK,
        observer=observer,
    )


def _number(name: str) -> int:
    """The number of a layer in its dotted name."""
    found = re.search(r"\.(\d+)(?:\.|$)", name)
    if found is None:
        raise UsageError("a cache layer has no number in its name", got=name)
    return int(found.group(1))
