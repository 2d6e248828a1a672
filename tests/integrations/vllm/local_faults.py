"""Faults planted into vLLM's own cache: what an index, a device or an operator could do to it."""

from __future__ import annotations

from typing import Any

import torch

from tests.integrations.vllm.serving import core_of

__all__ = ["cached_blocks", "change_weights", "other_layout", "swap_entries", "tear"]

FULL_GROUP = 3


def _layer(core: Any, group: int) -> torch.Tensor:
    name = core.scheduler.kv_cache_config.kv_cache_groups[group].layer_names[0]
    cache: torch.Tensor = core.vllm_config.compilation_config.static_forward_context[name].kv_cache
    return cache


def cached_blocks(llm: Any, tokens: list[int], group: int) -> list[Any]:
    """The blocks that the index of a group has for a prompt, in token order; None where it has none."""
    from vllm import SamplingParams
    from vllm.v1.core.kv_cache_utils import make_block_hash_with_group_id
    from vllm.v1.request import Request

    core = core_of(llm)
    request = Request(
        "looking", list(tokens), SamplingParams(max_tokens=1), None, block_hasher=core.request_block_hasher
    )
    pool = core.scheduler.kv_cache_manager.block_pool
    keys = [make_block_hash_with_group_id(one, group) for one in request.block_hashes]
    return [pool.cached_block_hash_to_block.get_one_block(key) for key in keys]


def change_weights(llm: Any, by: float) -> None:
    """Weights are changed in place and nobody empties the cache, as a training loop may do."""

    def scale(model: torch.nn.Module) -> None:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                # On a CPU the matrices are packed by now, and what is left of them is empty.
                if "norm" in name:
                    weight.add_(by)

    llm.apply_model(scale)


def swap_entries(llm: Any, one: list[int], other: list[int], group: int = FULL_GROUP) -> None:
    """The index leads from the hashes of one prompt to the blocks of another, and back."""
    pool = core_of(llm).scheduler.kv_cache_manager.block_pool
    for left, right in zip(cached_blocks(llm, one, group), cached_blocks(llm, other, group), strict=False):
        if left is None or right is None:
            continue
        keys = left.block_hash, right.block_hash
        for block, key in zip((left, right), keys, strict=True):
            pool.cached_block_hash_to_block.pop(key, block.block_id)
        for block, key in ((left, keys[1]), (right, keys[0])):
            block.reset_hash()
            block.set_block_hash(key, num_tokens=None)
            pool.cached_block_hash_to_block.insert(key, block)


def tear(llm: Any, tokens: list[int], group: int, place: int) -> None:
    """Half of a block's rows hold what somebody else wrote: a write that was cut off, or a stray one."""
    core = core_of(llm)
    block = cached_blocks(llm, tokens, group)[place]
    rows = _layer(core, group)[block.block_id]
    half = rows.shape[1] // 2
    rows[:, half:] = rows[:, half:].flip(1) * -1.5


def other_layout(llm: Any, tokens: list[int], group: int, place: int) -> None:
    """A block's bytes lie as another backend lays them out: rows by token instead of by head."""
    core = core_of(llm)
    block = cached_blocks(llm, tokens, group)[place]
    rows = _layer(core, group)[block.block_id]
    rows.copy_(rows.transpose(0, 1).contiguous().view(rows.shape))
