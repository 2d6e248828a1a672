"""The scheduler's half of the connector: which pages a request could use, and which are worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hitproof.integrations.gate import PageSeal
from hitproof.integrations.vllm.layout import NULL_BLOCK, CacheGroup
from hitproof.integrations.vllm.ledger import Ledger
from hitproof.integrations.vllm.page_files import PageFiles
from hitproof.integrations.vllm.page_plan import Load, Page, PageFacts, PagePlan

__all__ = ["PagePlanner"]

ATTEMPTS = 2
"""Loads that a request tries; refused pages leave the folder, so that the second finds others or none."""


class PagePlanner:
    """Looks for pages, and remembers what a step is to load. One scheduler has one.

    Args:
        files: The folder.
        seals: Of each group.
        facts: What the workers judge by.
        ledger: Who requests are, and which blocks a step writes.
        groups: The engine's groups.
        skipped: By group and length, the leading tokens that the group does not read there.
        hashes: A request's hashes at the ends of blocks of so many tokens.
    """

    def __init__(
        self,
        files: PageFiles,
        seals: dict[str, PageSeal],
        facts: PageFacts,
        ledger: Ledger,
        groups: Sequence[CacheGroup],
        skipped: Callable[[int, int], int],
        hashes: Callable[[Any, int], Sequence[bytes]],
    ) -> None:
        self._files, self._seals, self._facts, self._ledger = files, seals, facts, ledger
        self._groups, self._skipped, self._hashes = groups, skipped, hashes
        self._unit = max(group.blocks.tokens for group in groups)
        self._loads: list[Load] = []
        self._failures: dict[str, int] = {}
        self._local: dict[str, int] = {}

    def found(self, request: Any, local: int) -> int:
        """Tokens beyond the local ones that the folder has pages for, in every group.

        Args:
            request: vLLM's request.
            local: Tokens of the local hit, a multiple of a block.
        """
        self._local[request.request_id] = local
        if self._failures.get(request.request_id, 0) >= ATTEMPTS:
            return 0
        identity = self._ledger.identity_of(request)
        length: int = (request.num_tokens - 1) // self._unit * self._unit
        known: dict[tuple[int, int], bool] = {}
        while length > local:
            for group, place in self._needed(length, local):
                if not self._has(request, group, place, identity, known):
                    # Every shorter length that ends behind this page reads it too.
                    length = place * group.blocks.tokens // self._unit * self._unit
                    break
            else:
                return length - local
        return 0

    def allocated(self, request: Any, blocks: Sequence[Sequence[int]], external: int) -> None:
        """Blocks were given for what was found.

        Args:
            request: vLLM's request.
            blocks: By group, all its blocks from token 0 on.
            external: Tokens to load.
        """
        local = self._local[request.request_id]
        identity = self._ledger.identity_of(request)
        pages = []
        for group, place in self._needed(local + external, local):
            block = blocks[group.index][place]
            page = self._page(request, group, place, block, identity)
            if block != NULL_BLOCK and page is not None:
                pages.append(page)
        self._loads.append(Load(request.request_id, external, tuple(pages)))

    def plan(self, step: Any) -> PagePlan:
        """What the workers do in a step: start what was allocated, and keep what it writes."""
        loads, self._loads = self._loads, []
        saves = []
        # A new adapter is only known to be the one that was meant after its first step.
        for entry in self._ledger.of_loaded_adapters(self._ledger.written_by(step)):
            seal = self._seals[entry.group]
            key = seal.key(entry.digest, end=entry.end, identity=entry.identity)
            if key is not None and not self._files.has(key):
                page = Page(key, entry.group, entry.block, entry.first, entry.end, entry.digest, entry.identity)
                saves.append(page)
        return PagePlan(loads, saves, self._facts if loads or saves else None)

    def failed(self, requests: set[str]) -> None:
        """Loads of these requests were refused."""
        for request in requests:
            self._failures[request] = self._failures.get(request, 0) + 1

    def gone(self, request: str) -> None:
        """A request is over."""
        self._failures.pop(request, None)
        self._local.pop(request, None)

    def _needed(self, length: int, local: int) -> list[tuple[CacheGroup, int]]:
        """The blocks beyond the local hit that some group reads when it goes on from a length."""
        needed = []
        for group in self._groups:
            tokens = group.blocks.tokens
            first = max(self._skipped(group.index, length), local) // tokens
            needed += [(group, place) for place in range(first, length // tokens)]
        return needed

    def _has(
        self, request: Any, group: CacheGroup, place: int, identity: Any, known: dict[tuple[int, int], bool]
    ) -> bool:
        key = (group.index, place)
        if key not in known:
            page = self._page(request, group, place, NULL_BLOCK, identity)
            known[key] = page is not None and self._files.has(page.key)
        return known[key]

    def _page(self, request: Any, group: CacheGroup, place: int, block: int, identity: Any) -> Page | None:
        tokens = group.blocks.tokens
        hashes = self._hashes(request, tokens)
        if place >= len(hashes):
            return None
        end = (place + 1) * tokens
        digest = bytes(hashes[place])
        key = self._seals[group.name].key(digest, end=end, identity=identity)
        return None if key is None else Page(key, group.name, block, end - tokens, end, digest, identity)
