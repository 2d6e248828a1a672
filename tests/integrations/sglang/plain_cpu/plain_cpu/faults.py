"""Plants faults in a running scheduler: a file names the next one, and it strikes before the next look-up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

__all__ = ["FAULTS", "NAMELESS", "PLANT", "register"]

PLANT = "HITPROOF_TEST_PLANT"
"""Names the file; without the variable nothing is planted."""

NAMELESS = "nameless"
"""Stays for good once it has struck, so it comes last."""


def register() -> None:
    """Ask for the fault before each look-up of SGLang's cache, gated or not."""
    place = os.environ.get(PLANT)
    if place is None:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    file = Path(place)

    def strike(cache: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        if params.req is not None and file.exists():
            fault = file.read_text()
            file.unlink()
            FAULTS[fault](cache, params.key)

    HookRegistry.register(
        "sglang.srt.mem_cache.unified_radix_cache.UnifiedRadixCache.match_prefix", strike, HookType.BEFORE
    )


def _path(cache: Any, key: Any) -> torch.Tensor:
    """Rows of the full pool of what the tree holds for a key."""
    from sglang.srt.mem_cache.base_prefix_cache import MatchPrefixParams

    found = cache.tree_core.match_prefix(MatchPrefixParams(key=key))
    rows: torch.Tensor = cache.path_device_indices(found.last_device_node)
    if not len(rows):
        raise RuntimeError("there is nothing to plant a fault in")
    return rows


def _halves(pool: Any) -> list[torch.Tensor]:
    return [*pool.k_buffer, *pool.v_buffer]


def _reused(cache: Any, key: Any) -> None:
    """The last window page is given to another owner, who writes into it; the tree still leads to it."""
    allocator = cache.token_to_kv_pool_allocator
    window = allocator.translate_loc_from_full_to_swa(_path(cache, key))
    last = window[-allocator.page_size :]
    inner = allocator.swa_attn_allocator
    free = inner.free_pages
    inner.free_pages = last[:1] // allocator.page_size
    given = inner.alloc(allocator.page_size)
    inner.free_pages = free
    for half in _halves(allocator.get_kvcache().swa_kv_pool):
        half[given] = half[given].flip(0).roll(1, -1) * 1.5


def _moved(cache: Any, key: Any) -> None:
    """The window's table leads one page back: rows of earlier tokens are taken for those of later ones."""
    allocator = cache.token_to_kv_pool_allocator
    rows = _path(cache, key)
    page = allocator.page_size
    window = allocator.translate_loc_from_full_to_swa(rows)
    allocator.set_full_to_swa_mapping(rows[-page:], window[-2 * page : -page].clone())


def _torn(cache: Any, key: Any) -> None:
    """Half of a page was never written."""
    allocator = cache.token_to_kv_pool_allocator
    page = allocator.page_size
    rows = _path(cache, key)[page : page + page // 2]
    for half in _halves(allocator.get_kvcache().full_kv_pool):
        half[rows] = 0


def _relaid(cache: Any, key: Any) -> None:
    """A page was copied in with heads before tokens, where attention reads tokens before heads."""
    allocator = cache.token_to_kv_pool_allocator
    page = allocator.page_size
    rows = _path(cache, key)[page : 2 * page]
    for half in _halves(allocator.get_kvcache().full_kv_pool):
        half[rows] = half[rows].transpose(0, 1).reshape(half[rows].shape)


def _nameless(cache: Any, key: Any) -> None:
    """From now on adapters are left out of the keys of the tree."""
    from sglang.srt.mem_cache.radix_cache import RadixKey

    made = RadixKey.__init__

    def without(self: Any, token_ids: Any, extra_key: Any = None, *args: Any, **kwargs: Any) -> None:
        made(self, token_ids, None, *args, **kwargs)

    RadixKey.__init__ = without
    key.extra_key = None


FAULTS = {"reused": _reused, "moved": _moved, "torn": _torn, "relaid": _relaid, NAMELESS: _nameless}
