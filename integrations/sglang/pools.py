"""SGLang's token pools as groups of blocks: where pages lie, what is in them, and their fingerprints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hitproof.integrations.gate import GroupBlocks
from hitproof.integrations.vllm.fingerprints import of_blocks
from hitproof.spec.errors import UsageError

__all__ = ["FULL", "PoolGroup", "SWA", "element_name", "pool_groups"]

FULL, SWA = "full", "swa"
"""Names of SGLang's groups: the pool of every token, and the pool of sliding windows."""


@dataclass(frozen=True, slots=True)
class PoolGroup:
    """The pages of one pool.

    Args:
        layers: Numbers of the model's layers whose rows lie there.
        tokens: Tokens of a page.
        pages: Tensors with pages along the first axis, keys of each layer and then its values.
        layout: How a page's rows lie.
        encoding: Element type of a row.
    """

    layers: tuple[int, ...]
    tokens: int
    pages: tuple[torch.Tensor, ...]
    layout: str
    encoding: str

    def blocks(self) -> GroupBlocks:
        """The group as the gate wants it: keys and values of a page count as one block.

        SGLang's pools state no alignment of pages beyond that of their elements.
        """
        per_layer = len(self.pages) // len(self.layers)
        stride = sum(one[0].numel() * one.element_size() for one in self.pages[:per_layer])
        return GroupBlocks(self.layers, self.tokens, stride, self.pages[0].data_ptr(), self.pages[0].element_size())

    def contract(self, *, version: str, scales: str, shard: str) -> dict[str, str]:
        """What the attention kernel reads.

        Args:
            version: Which kernel it is.
            scales: Identity of the scales of quantised rows: they are part of the weights.
            shard: Which share of the heads this process holds.
        """
        return {
            "layout": self.layout,
            "v_layout": self.layout,
            "version": version,
            "encoding": self.encoding,
            "scale_version": scales if "float8" in self.encoding else "no scales",
            "shard": shard,
        }

    def measure(self, pages: Sequence[int]) -> list[str]:
        """A fingerprint of each page over all layers, as it is now; waits for the device."""
        return of_blocks(self.pages, pages)


def pool_groups(kv_cache: Any, layer_ids: Mapping[str, Sequence[int]]) -> dict[str, PoolGroup]:
    """The groups of SGLang's pool of keys and values.

    Args:
        kv_cache: What the allocator's `get_kvcache()` gives.
        layer_ids: By group, the model's layers in the order in which the pool keeps them.

    Raises:
        UsageError: The pool keeps its pages in a way that is not covered.
    """
    parts = {FULL: kv_cache}
    if hasattr(kv_cache, "swa_kv_pool"):
        parts = {FULL: kv_cache.full_kv_pool, SWA: kv_cache.swa_kv_pool}
    return {name: _group(pool, tuple(layer_ids[name])) for name, pool in parts.items() if layer_ids[name]}


def element_name(kind: torch.dtype) -> str:
    """A tensor's element type by the name that configurations use."""
    return str(kind).removeprefix("torch.")


def _group(pool: Any, layers: tuple[int, ...]) -> PoolGroup:
    kind = type(pool).__name__
    page = pool.page_size
    if kind == "MHATokenToKVPool" and pool.kv_cache_layout == "nhd" and pool.k_scale_buffer is None:
        buffers = [half for pair in zip(pool.k_buffer, pool.v_buffer, strict=True) for half in pair]
        rows = f"{pool.head_num}x{pool.head_dim}+{pool.head_num}x{pool.v_head_dim}"
    elif kind == "MLATokenToKVPool" and getattr(pool, "kv_cache_layout", "nhd") == "nhd":
        buffers = list(pool.kv_buffer)
        rows = f"1x{pool.kv_cache_dim}"
    else:
        layout = getattr(pool, "kv_cache_layout", "unknown")
        raise UsageError(
            "pages of this pool are not covered by the gate",
            got=f"{kind}, layout {layout}",
            expected="MHATokenToKVPool or MLATokenToKVPool, layout nhd, no scales",
        )
    if len(buffers) % len(layers) or any(not one.is_contiguous() or len(one) % page for one in buffers):
        raise UsageError("the pool's buffers are not whole pages of each layer", got=kind)
    pages = tuple(one.view(len(one) // page, page, *one.shape[1:]) for one in buffers)
    return PoolGroup(layers, page, pages, f"nhd:{page}x({rows})", element_name(pool.dtype))
