"""The few methods of vLLM's manager, pool, scheduler and core at which the gate must know or decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from vllm.v1.core.kv_cache_utils import resolve_block_hashes
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from hitproof.integrations.vllm.ledger import NOTHING, Ledger

__all__ = ["GatedCore", "GatedManager", "GatedPool", "GatedScheduler"]

HARMLESS = frozenset({"check_health", "compute_weight_checksums", "list_loras", "profile"})
"""Calls into the workers that leave the weights alone; after any other they are measured anew."""


class _InFront:
    """Stands in front of some methods of one object of vLLM, whatever its class is. Changes that object.

    Args:
        instance: The object.
        ledger: Who is told, and asked.
    """

    names: tuple[str, ...] = ()

    def __init__(self, instance: Any, ledger: Ledger) -> None:
        self._vllm, self._ledger = instance, ledger
        self._own: dict[str, Callable[..., Any]] = {}
        for name in self.names:
            self._own[name] = getattr(instance, name)
            setattr(instance, name, _dressed(getattr(self, name), self._own[name]))


def _dressed(front: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """The one with the signature of the other: vLLM converts what other processes send by the parameters it sees."""

    @wraps(own)
    def called(*args: Any, **kwargs: Any) -> Any:
        return front(*args, **kwargs)

    return called


class GatedPool(_InFront):
    """Tells which blocks enter the index, and which leave it."""

    names = ("cache_full_blocks", "get_new_blocks", "reset_prefix_cache", "_remove_cached_block_hashes")

    def cache_full_blocks(
        self,
        request: Any,
        blocks: Sequence[Any],
        num_cached_blocks: int,
        num_full_blocks: int,
        block_size: int,
        kv_cache_group_id: int,
        block_mask: Sequence[bool] | None = None,
    ) -> None:
        """As vLLM does; what entered the index is noted."""
        self._own["cache_full_blocks"](
            request=request,
            blocks=blocks,
            num_cached_blocks=num_cached_blocks,
            num_full_blocks=num_full_blocks,
            block_size=block_size,
            kv_cache_group_id=kv_cache_group_id,
            block_mask=block_mask,
        )
        if num_cached_blocks >= num_full_blocks:
            return
        hashes = resolve_block_hashes(request.block_hashes, self._vllm.hash_block_size, block_size)
        span = range(num_cached_blocks, num_full_blocks)
        kept = [True] * len(span) if block_mask is None else block_mask
        ids = [blocks[place].block_id if keep else 0 for place, keep in zip(span, kept, strict=True)]
        digests = [hashes[place] for place in span]
        self._ledger.committed(request, kv_cache_group_id, ids, num_cached_blocks * block_size, digests)

    def get_new_blocks(self, num_blocks: int) -> list[Any]:
        """As vLLM does; whatever these blocks held is promised no more, even where the index still names them."""
        given: list[Any] = self._own["get_new_blocks"](num_blocks)
        for block in given:
            self._ledger.freed(block.block_id)
        return given

    def reset_prefix_cache(self) -> bool:
        """As vLLM does; nothing that was noted counts afterwards."""
        done: bool = self._own["reset_prefix_cache"]()
        if done:
            self._ledger.forget()
        return done

    def _remove_cached_block_hashes(self, block: Any) -> list[Any]:
        removed: list[Any] = self._own["_remove_cached_block_hashes"](block)
        if removed:
            self._ledger.freed(block.block_id)
        return removed


class GatedManager(_InFront):
    """Answers look-ups with what the rulebook lets through."""

    names = (
        "free",
        "get_computed_blocks",
        "get_computed_blocks_for_connector",
        "pop_blocks_for_free",
        "record_prefix_cache_stats",
    )

    def get_computed_blocks(self, request: Any) -> tuple[Any, int, int]:
        """The longest hit that the gate accepts. Bad blocks leave the index; then vLLM looks again, for less."""
        blocks, matched, boundary = self._own["get_computed_blocks"](request)
        claimed, first = matched, None
        while matched:
            ids = [[block.block_id for block in one] for one in blocks.blocks]
            gated = self._ledger.judge(request, matched, ids, self._hashes(request))
            first = first or gated
            if gated.usable >= matched:
                break
            bad = {block for refused in gated.refused.values() for block in refused}
            self._refuse(bad)
            most = max(gated.usable, self._before(ids, bad, matched))
            found, matched, _ = self._vllm.coordinator.find_longest_cache_hit(request.block_hashes, most)
            blocks = self._vllm.create_kv_cache_blocks(found)
        self._ledger.answered(request.request_id, first or NOTHING)
        # Where less is used than was found, what lies behind it is written anew and needs no pin.
        return blocks, matched, boundary if matched == claimed else 0

    def get_computed_blocks_for_connector(self, request: Any) -> tuple[Any, int, int, bool]:
        """The hit on which all groups agree; vLLM's longer one of a single group is not taken."""
        return *self.get_computed_blocks(request), False

    def record_prefix_cache_stats(self, request: Any, num_hits: int) -> None:
        """As vLLM does; what its index claimed travels with what is used, to the stat logger."""
        self._own["record_prefix_cache_stats"](request, num_hits)
        if not self._vllm.prefix_cache_lookup_enabled(request):
            return
        logical = self._ledger.served(request, num_hits)
        stats = self._vllm.prefix_cache_stats
        if stats is not None and logical and request.num_preemptions == 0:
            # A field that vLLM fills for connectors alone; its own loggers do not read it here.
            sources = stats.hits_by_source
            sources[CacheHitSource.DEVICE] = sources.get(CacheHitSource.DEVICE, 0) + logical

    def free(self, request: Any) -> None:
        """As vLLM does; whatever the request was judged by is forgotten."""
        self._ledger.gone(request.request_id)
        self._own["free"](request)

    def pop_blocks_for_free(self, request: Any) -> list[Any]:
        """As vLLM does; whatever the request was judged by is forgotten."""
        self._ledger.gone(request.request_id)
        popped: list[Any] = self._own["pop_blocks_for_free"](request)
        return popped

    def _hashes(self, request: Any) -> list[Any]:
        unit = self._vllm.block_pool.hash_block_size
        return [
            resolve_block_hashes(request.block_hashes, unit, manager.block_size)
            for manager in self._vllm.coordinator.single_type_managers
        ]

    def _before(self, ids: list[list[int]], bad: set[int], matched: int) -> int:
        """The longest shorter length that may do without the bad blocks: whatever ends behind one reads it."""
        managers = self._vllm.coordinator.single_type_managers
        starts = [
            place * manager.block_size
            for manager, one in zip(managers, ids, strict=True)
            for place, block in enumerate(one)
            if block in bad
        ]
        step: int = self._vllm.coordinator.scheduler_block_size
        return min(starts, default=matched - step)

    def _refuse(self, bad: set[int]) -> None:
        # Nothing is wrong with a block that is still being written; the next look-up may use it.
        bad = bad - self._ledger.pending
        if bad:
            self._vllm.evict_blocks(bad)


class GatedScheduler(_InFront):
    """Tells when a step was put together, and when the device has done it."""

    names = ("schedule", "update_from_output")

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """As vLLM does."""
        step = self._own["schedule"](*args, **kwargs)
        self._ledger.scheduled(step)
        return step

    def update_from_output(self, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        """As vLLM does; what the step wrote is promised before its results are used."""
        self._ledger.finished(scheduler_output)
        return self._own["update_from_output"](scheduler_output, *args, **kwargs)


class GatedCore(_InFront):
    """Tells when the weights may have changed."""

    names = ("collective_rpc", "set_weight_version", "wake_up")

    def collective_rpc(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        """As vLLM does; after a call that may change the weights, they are measured anew."""
        try:
            return self._own["collective_rpc"](method, *args, **kwargs)
        finally:
            if method not in HARMLESS:
                self._ledger.identities.weights_may_have_changed()

    def set_weight_version(self, weight_version: str) -> None:
        """As vLLM does; what was computed under another name of the weights is not reused."""
        self._own["set_weight_version"](weight_version)
        self._ledger.identities.name_weights(weight_version)

    def wake_up(self, *args: Any, **kwargs: Any) -> Any:
        """As vLLM does; what was asleep may have been written anew."""
        self._ledger.identities.weights_may_have_changed()
        return self._own["wake_up"](*args, **kwargs)
