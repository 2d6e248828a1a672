"""From SGLang's build context to its radix cache behind the gate."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from hitproof.integrations.gate import BlockGate
from hitproof.integrations.sglang.book import PageBook
from hitproof.integrations.sglang.identity import Identities, attention_digest, weights_digest
from hitproof.integrations.sglang.metrics import Tally
from hitproof.integrations.sglang.pools import FULL, SWA, PoolGroup, pool_groups
from hitproof.integrations.sglang.settings import verify_mode
from hitproof.integrations.sglang.versions import installed_version, require_supported
from hitproof.rules.from_config import profile_from_config
from hitproof.spec.errors import UsageError
from hitproof.spec.profile import Profile

__all__ = ["build", "contracts", "identities", "layer_ids", "rank_profile", "refuse_unsupported", "share_of_rank"]

_log = logging.getLogger(__name__)
_HEADS = ("num_key_value_heads", "num_global_key_value_heads")


def build(context: Any) -> Any:
    """The factory behind `--radix-cache-backend hitproof`.

    Args:
        context: SGLang's `TreeCacheBuildContext`.

    Raises:
        HitproofError: The version, the model, or its way of keeping pages is not covered; nothing is served then.
    """
    require_supported(installed_version())
    from sglang.srt.mem_cache.registry import create_unified_radix_cache, default_radix_cache_factory

    from hitproof.integrations.sglang.radix import GatedRadixCache

    if context.disable_radix_cache:
        return default_radix_cache_factory(context)
    refuse_unsupported(context)
    verify = verify_mode()
    allocator = context.params.token_to_kv_pool_allocator
    groups = pool_groups(allocator.get_kvcache(), layer_ids(context.model_config))
    who = identities(context.server_args, context.model_config)
    gate = BlockGate(
        rank_profile(context.model_config, {group.encoding for group in groups.values()}, context.tp_size),
        {name: group.blocks() for name, group in groups.items()},
        identity=who.usual(),
        contract=contracts(groups, context.server_args, who, context.tp_rank, context.tp_size),
        measure=None if verify == "never" else lambda group, pages: groups[group].measure(pages),
        verify=verify,
    )
    # Refused pages can be taken out of SGLang's Python tree; its other one tells too little of its nodes.
    context.params.tree_core_backend = "python"
    cache = create_unified_radix_cache(context, cache_class=GatedRadixCache)
    split = SWA in groups
    allocators = (
        {FULL: allocator.full_attn_allocator, SWA: allocator.swa_attn_allocator} if split else {FULL: allocator}
    )
    translate = allocator.translate_loc_from_full_to_swa if split else None
    collector = cache.metrics_collector
    tally = Tally(gate, None if collector is None else collector.labels)
    cache.attach(PageBook(gate, who, {name: allocators[name] for name in groups}, translate), tally)
    _log.info("hitproof gates the radix cache: groups %s, pages measured: %s", dict(gate.groups), verify)
    return cache


def identities(server_args: Any, model_config: Any) -> Identities:
    """Who requests of this server are."""
    config = model_config.hf_config.to_dict()
    more = (str(model_config.dtype), server_args.json_model_override_args)
    return Identities(weights_digest(model_config.model_path, model_config.revision), attention_digest(config, *more))


def layer_ids(model_config: Any) -> dict[str, Sequence[int]]:
    """By group, the model's layers in the order of SGLang's pools."""
    if model_config.is_hybrid_swa:
        return {FULL: model_config.full_attention_layer_ids, SWA: model_config.swa_attention_layer_ids}
    return {FULL: range(model_config.num_hidden_layers), SWA: ()}


def rank_profile(model_config: Any, kinds: set[str], tp_size: int) -> Profile:
    """The model's profile for the heads of one rank.

    Args:
        model_config: SGLang's.
        kinds: Element types of the pools.
        tp_size: Ranks that share the heads.

    Raises:
        HitproofError: Its configuration is of no known type, or pools are of several element types.
    """
    from transformers import PretrainedConfig

    # As published: the classes of the library rename keys that decide what a cache holds.
    config, _ = PretrainedConfig.get_config_dict(model_config.model_path, revision=model_config.revision)
    if len(kinds) != 1:
        raise UsageError("the gate covers one element type in all pools", got=", ".join(sorted(kinds)))
    file = f"{model_config.model_path}/config.json"
    return profile_from_config(share_of_rank(config, tp_size), file=file, kv_dtype=next(iter(kinds)))


def share_of_rank(config: Mapping[str, Any], tp_size: int) -> dict[str, Any]:
    """A configuration with the heads of keys and values that one of several ranks holds."""
    shared: dict[str, Any] = {
        name: value // tp_size or 1 for name, value in config.items() if name in _HEADS and isinstance(value, int)
    }
    inner = config.get("text_config")
    if isinstance(inner, Mapping):
        shared["text_config"] = share_of_rank(inner, tp_size)
    return {**config, **shared}


def contracts(
    groups: Mapping[str, PoolGroup], server_args: Any, who: Identities, tp_rank: int, tp_size: int
) -> dict[str, dict[str, str]]:
    """By group, what the attention kernel of this rank reads."""
    version = f"sglang {server_args.attention_backend or server_args.prefill_attention_backend}"
    scales = str(who.usual()["weights"])
    shard = f"{tp_rank} of {tp_size}"
    return {name: group.contract(version=version, scales=scales, shard=shard) for name, group in groups.items()}


def refuse_unsupported(context: Any) -> None:
    """Refuse what the gate does not understand, so that nothing is served as if it were gated.

    Raises:
        UsageError: The server keeps or cuts its cache in a way that the gate has no facts for.
    """
    params = context.params
    if context.enable_hierarchical_cache:
        raise UsageError(
            "the gate has no facts of copies on the host",
            got="--enable-hierarchical-cache with --radix-cache-backend hitproof",
            expected="one of them; sealed files work with SGLang's own radix cache",
        )
    if context.is_hybrid_ssm:
        raise UsageError("the gate does not cover SGLang's recurrent states", got="a model with mamba layers")
    if params.is_eagle:
        raise UsageError("the gate does not cover keys of token pairs", got="EAGLE speculation")
    if params.pp_size != 1 or params.attn_cp_size != 1:
        raise UsageError("the gate covers whole models a rank", got="pipeline or context parallelism")
    if context.is_hybrid_swa and not params.swa_gates_prefix_match:
        raise UsageError("the gate does not cover window state that requests own", got="a ring of window state")
