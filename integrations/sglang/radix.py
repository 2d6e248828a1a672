"""SGLang's radix cache behind the gate: what the tree claims is judged before the scheduler sees it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import torch
from sglang.srt.mem_cache.base_prefix_cache import (
    InsertParams,
    InsertResult,
    MatchPrefixParams,
    MatchResult,
    zero_match_result,
)
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.unified_cache.components import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

from hitproof.integrations.gate import Gated
from hitproof.integrations.sglang.book import PageBook
from hitproof.integrations.sglang.digests import page_digests
from hitproof.integrations.sglang.discard import discard, may_discard
from hitproof.integrations.sglang.metrics import Tally
from hitproof.integrations.sglang.pools import FULL, SWA

__all__ = ["GatedRadixCache"]

_log = logging.getLogger(__name__)

_GROUPS = {ComponentType.FULL: FULL, ComponentType.SWA: SWA}

# Attributes that the cache keeps on SGLang's requests.
_BARRED = "hitproof_barred"
_SEEN = "hitproof_seen"
_COUNTED = "hitproof_counted"


class GatedRadixCache(UnifiedRadixCache):
    """A hit is cut to what the rulebook lets be used; what it refuses is computed anew, and kept out of the tree.

    Until `attach` it is SGLang's own cache.
    """

    def __init__(self, params: Any) -> None:
        self._book: PageBook | None = None
        self._tally: Tally | None = None
        self._writer: Any | None = None
        super().__init__(params)

    def attach(self, book: PageBook, tally: Tally) -> None:
        """Gate every look-up from now on. The tree must be empty."""
        self._book, self._tally = book, tally

    @property
    def tally(self) -> Tally | None:
        """What was counted so far."""
        return self._tally

    def reset(self) -> None:
        super().reset()
        if self._book is not None:
            self._book.forget()

    def insert(self, params: InsertParams) -> InsertResult:
        if self._book is None or self.disable:
            return super().insert(params)
        result: InsertResult = super().insert(replace(params, track_adopted_ranges=True))
        ranges = {_GROUPS[kind]: runs for kind, runs in (result.adopted_ranges or {}).items() if kind in _GROUPS}
        if any(ranges.values()):
            rows = self.path_device_indices(result.last_device_node)
            self._book.wrote(rows, ranges, self._digests(params.key, len(rows)), self._writer)
        return result

    def checkpoint_into_tree(self, req: Any, *, up_to: int, **kwargs: Any) -> None:
        if self._book is not None and not self.disable and not self._may_join(req, up_to):
            # Where the tree holds refused pages, joining it would lead the request's rows to them.
            _bar(req)
            if req.finished():
                for component in self._components_tuple:
                    component.cleanup_after_caching_req(req, is_finished=True)
            return
        self._writer = req
        try:
            super().checkpoint_into_tree(req, up_to=up_to, **kwargs)
        finally:
            self._writer = None
        self._served(req)

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        super().on_release(req, checkpointed=checkpointed)
        self._served(req)

    def _match_tree(self, params: MatchPrefixParams) -> MatchResult:
        result: MatchResult = super()._match_tree(params)
        if self._book is None or self.disable:
            return result
        return self._gated(params, result)

    def _gated(self, params: MatchPrefixParams, result: MatchResult) -> MatchResult:
        """Cuts a match until all that is left of it may be used."""
        assert self._book is not None
        key, request = params.key, params.req
        length = len(key) + 1
        first: Gated | None = None
        clean = True
        while result.device_prefix_len:
            claimed = result.device_prefix_len
            rows = self.path_device_indices(result.last_device_node)[:claimed]
            gated = self._book.judge(rows, length, self._digests(key, claimed), request)
            first = first or gated
            if gated.usable < claimed:
                clean &= self._discarded(key, rows, gated, request)
            usable = self._agreed(gated.usable)
            if usable >= claimed:
                break
            if usable == 0:
                result = zero_match_result(self, result, extra_key=key.extra_key)
                break
            result = super()._match_tree(replace(params, key=key[:usable]))
        self._note(request, first, result.device_prefix_len, length, clean=bool(self._agreed(int(clean))))
        return result

    def _discarded(self, key: RadixKey, rows: torch.Tensor, gated: Gated, request: Any | None) -> bool:
        """Takes refused pages out of the tree where it is sure that they are the tree's own; whether none is left."""
        assert self._book is not None
        place = self._book.first_refused(rows, gated)
        gone = place is not None and self._alone() and may_discard(gated.failed) and discard(self, key, place)
        _log.warning(
            "hitproof: %d of %d cached tokens of request %s are usable: %s; refused pages %s",
            gated.usable,
            gated.logical,
            None if request is None else request.rid,
            ", ".join(gated.failed),
            "were taken out of the tree" if gone else "stay in the tree and are not used",
        )
        return gone

    def _alone(self) -> bool:
        """Whether this rank's tree is the only one: trees of several ranks must be changed alike."""
        return bool(self.tp_world_size == 1 and self.pp_size == 1)

    def _agreed(self, usable: int) -> int:
        """The least that any rank may use: schedulers of all ranks must go on alike."""
        if self._alone():
            return usable
        least = torch.tensor([usable], dtype=torch.int64)
        self._all_reduce(least, torch.distributed.ReduceOp.MIN)
        return int(least)

    def _may_join(self, req: Any, up_to: int) -> bool:
        """Whether the tree's pages on the request's path, which it would be led to, are all its own kind."""
        if getattr(req, _BARRED, False):
            return False
        assert self._book is not None
        key = RadixKey(req.full_untruncated_fill_ids[:up_to], req.extra_key, cache_salt=req.cache_salt)
        there, node, _ = self.tree_core.match_full_device_prefix(key)
        if there <= req.kv.cache_protected_len:
            return True
        rows = self.path_device_indices(node)[:there]
        gated = self._book.judge(rows, there + 1, self._digests(key, there), req)
        return bool(self._agreed(0 if any(gated.refused.values()) else 1))

    def _digests(self, key: RadixKey, length: int) -> list[int]:
        return page_digests(key.token_ids, self.page_size, length)

    def _note(self, req: Any | None, first: Gated | None, usable: int, length: int, *, clean: bool) -> None:
        if req is None:
            return
        if not clean:
            _bar(req)
        elif getattr(req, _BARRED, False):
            setattr(req, _BARRED, False)
            req.skip_radix_cache_insert = False
        if not getattr(req, _COUNTED, False):
            setattr(req, _SEEN, (first, usable, length))

    def _served(self, req: Any) -> None:
        """Counts a request once, when its first tokens were computed or it was given up."""
        seen = getattr(req, _SEEN, None)
        if seen is not None and self._tally is not None and not getattr(req, _COUNTED, False):
            setattr(req, _COUNTED, True)
            self._tally.count(*seen)


def _bar(req: Any) -> None:
    """Keeps a request out of the tree: it stays on its own pages."""
    setattr(req, _BARRED, True)
    req.skip_radix_cache_insert = True
