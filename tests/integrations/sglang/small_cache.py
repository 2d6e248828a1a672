"""SGLang's real pools, allocators and radix cache in one process, and requests whose rows say what they hold."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.managers.schedule_batch import ReqKvInfo
from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator
from sglang.srt.mem_cache.base_prefix_cache import MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.mem_cache.unified_cache.components import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

from hitproof.integrations.gate import BlockGate, Verify
from hitproof.integrations.sglang.book import PageBook
from hitproof.integrations.sglang.identity import Identities
from hitproof.integrations.sglang.metrics import Tally
from hitproof.integrations.sglang.pools import FULL, SWA, pool_groups
from hitproof.integrations.sglang.radix import GatedRadixCache
from hitproof.rules.from_config import profile_from_config

__all__ = ["CONFIG", "LAYERS", "PAGE", "WINDOW", "SmallCache"]

PAGE, WINDOW = 4, 8
LAYERS = {FULL: (1, 3), SWA: (0, 2)}
CONFIG = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": WINDOW,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_size": 16,
}


class SmallCache:
    """A cache of full and window rows, gated or not.

    Args:
        verify: When the gate measures pages; None for SGLang's own cache.
        tokens: Room of each pool.
    """

    def __init__(self, verify: Verify | None, tokens: int = 400) -> None:
        self.pool = SWAKVPool(
            size=tokens,
            size_swa=tokens,
            page_size=PAGE,
            dtype=torch.float32,
            head_num=2,
            head_dim=8,
            swa_attention_layer_ids=list(LAYERS[SWA]),
            full_attention_layer_ids=list(LAYERS[FULL]),
            device="cpu",
        )
        self.allocator = SWATokenToKVPoolAllocator(tokens, tokens, PAGE, torch.float32, "cpu", self.pool, False)
        self.table = ReqToTokenPool(size=8, max_context_len=tokens, device="cpu", enable_memory_saver=False)
        params = CacheInitParams(
            disable=False,
            req_to_token_pool=self.table,
            token_to_kv_pool_allocator=self.allocator,
            page_size=PAGE,
            sliding_window_size=WINDOW,
            tree_components=(ComponentType.FULL, ComponentType.SWA),
            tree_core_backend="python",
        )
        self.damaged = False
        # Whether rows hold values that tell them apart; without, nothing is checked and time is the cache's alone.
        self.values = True
        self.cache: Any = UnifiedRadixCache(params) if verify is None else GatedRadixCache(params)
        if verify is not None:
            self._attach(verify)

    def _attach(self, verify: Verify) -> None:
        groups = pool_groups(self.pool, LAYERS)
        who = Identities("weights", "attention")
        gate = BlockGate(
            profile_from_config(CONFIG, file="config.json", kv_dtype="float32"),
            {name: group.blocks() for name, group in groups.items()},
            identity=who.usual(),
            contract={name: group.contract(version="t", scales="", shard="") for name, group in groups.items()},
            measure=lambda name, pages: groups[name].measure(pages),
            verify=verify,
        )
        allocators = {FULL: self.allocator.full_attn_allocator, SWA: self.allocator.swa_attn_allocator}
        book = PageBook(gate, who, allocators, self.allocator.translate_loc_from_full_to_swa)
        self.cache.attach(book, Tally(gate, None))

    def key(self, prompt: Sequence[int], adapter: str | None = None, limit: int | None = None) -> RadixKey:
        """The tree's key of a prompt that is given by its pages."""
        return RadixKey(array("q", [page for page in prompt for _ in range(PAGE)]), adapter, limit=limit)

    def serve(self, prompt: Sequence[int], adapter: str | None = None, filed: str | None = None) -> tuple[int, bool]:
        """Serve a request, and file what it computed.

        Args:
            prompt: A number a page.
            adapter: What it is computed with.
            filed: The adapter by which the tree knows it, where a fault files it under another.

        Returns:
            Tokens that it took from the cache, and whether they hold what it would have computed.
        """
        length = len(prompt) * PAGE
        key = self.key(prompt, filed or adapter, length - 1)
        request: Any = SimpleNamespace(
            rid="r",
            full_untruncated_fill_ids=key.token_ids,
            origin_input_ids=key.token_ids,
            extra_key=key.extra_key,
            cache_salt=None,
            lora_id=adapter,
            multimodal_inputs=None,
            session=None,
            session_id=None,
            priority=0,
            kv_rotation_base=None,
            swa_branching_seqlen=None,
            skip_radix_cache_insert=False,
            finished=lambda: True,
            kv=ReqKvInfo(req_pool_idx=1),
        )
        found = self.cache.match_prefix(MatchPrefixParams(key=key, req=request))
        reused = found.device_prefix_len
        rows = self.cache.path_device_indices(found.last_device_node)[:reused]
        right = not self.values or self.holds(rows, prompt, adapter)
        request.lock, request.last_node = self.cache.lock(found.last_device_node), found.last_device_node
        fresh = self._fresh(rows, length)
        if self.values:
            self._write(fresh, prompt, adapter, reused)
        self.table.req_to_token[1, :length] = torch.cat([rows, fresh]).to(torch.int32)
        request.kv.cache_protected_len = reused
        if not request.skip_radix_cache_insert:
            self.cache.checkpoint(request, up_to=length)
        self.cache.free_kv_row(request.kv, [(request.kv.cache_protected_len, length)])
        self.cache.unlock(request.lock)
        self.cache.on_release(request, checkpointed=not request.skip_radix_cache_insert)
        return reused, right

    def holds(self, rows: torch.Tensor, prompt: Sequence[int], adapter: str | None) -> bool:
        """Whether attention would find in these rows what the prompt's own computation writes."""
        expected = torch.tensor([self._value(prompt, adapter, at) for at in range(len(rows))])
        window = self.allocator.translate_loc_from_full_to_swa(rows)[-WINDOW:].long()
        return all(
            bool((half[at, 0, 0] == value).all() and (half[at, 1, 7] == value).all())
            for pool, at, value in (
                (self.pool.full_kv_pool, rows, expected),
                (self.pool.swa_kv_pool, window, expected[-WINDOW:] if len(rows) else expected),
            )
            for half in (*pool.k_buffer, *pool.v_buffer)
        )

    def path(self, prompt: Sequence[int], adapter: str | None = None) -> torch.Tensor:
        """Rows of the full pool that the tree holds for a prompt, whether the gate would let them be used or not."""
        _, node, _ = self.cache.tree_core.match_full_device_prefix(self.key(prompt, adapter))
        rows: torch.Tensor = self.cache.path_device_indices(node)
        return rows

    def window_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows of the window pool by the table, of the window before the end; 0 where there is none."""
        found: torch.Tensor = self.allocator.translate_loc_from_full_to_swa(rows)[-WINDOW:]
        return found

    def _fresh(self, rows: torch.Tensor, length: int) -> torch.Tensor:
        sizes = (torch.tensor([len(rows)]), torch.tensor([len(rows)]), torch.tensor([length]), torch.tensor([length]))
        last = rows[-1:] if len(rows) else torch.tensor([-1])
        given = self.allocator.alloc_extend(*sizes, last, length - len(rows))
        assert given is not None, "the pool is too small for this test"
        return given

    def _write(self, rows: torch.Tensor, prompt: Sequence[int], adapter: str | None, first: int) -> None:
        values = torch.tensor([self._value(prompt, adapter, first + at) for at in range(len(rows))])[:, None, None]
        window = self.allocator.translate_loc_from_full_to_swa(rows).long()
        for pool, at in ((self.pool.full_kv_pool, rows), (self.pool.swa_kv_pool, window)):
            for half in (*pool.k_buffer, *pool.v_buffer):
                half[at] = values.expand(-1, 2, 8)

    @staticmethod
    def _value(prompt: Sequence[int], adapter: str | None, token: int) -> float:
        """A number that stands for all tokens up to one, and the adapter."""
        return float(hash((tuple(prompt[: token // PAGE + 1]), adapter, token)) % 1_000_003)
