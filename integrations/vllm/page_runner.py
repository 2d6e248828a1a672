"""The worker's half of the connector: pages out of blocks, and pages into blocks once each of them was opened."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from hitproof.integrations.gate import PageRefused, PageSeal
from hitproof.integrations.vllm.page_files import PageFiles
from hitproof.integrations.vllm.page_plan import Load, Page, PageFacts, PagePlan, seals_of

__all__ = ["PageRunner"]

_log = logging.getLogger("vllm.hitproof")


class PageRunner:
    """Loads and saves for one worker.

    Args:
        files: The folder.
        secret: Key of all servers that trust one another.
    """

    def __init__(self, files: PageFiles, secret: bytes | None) -> None:
        self._files, self._secret = files, secret
        self._caches: Mapping[str, Any] = {}
        self._facts: PageFacts | None = None
        self._seals: dict[str, PageSeal] = {}
        self._done: set[str] = set()
        self._failed: set[str] = set()
        self._counts: Counter[str] = Counter()

    def register(self, caches: Mapping[str, Any]) -> None:
        """The cache of each layer, with blocks along the first axis."""
        self._caches = caches

    def load(self, plan: PagePlan) -> None:
        """Load what the plan asks for; of a request, all pages or none count."""
        self._learn(plan)
        for load in plan.loads:
            self._done.add(load.request)
            self._counts["logical"] += load.tokens
            if self._loaded(load):
                self._counts["effective"] += load.tokens
            else:
                self._failed.add(load.request)

    def save(self, plan: PagePlan) -> None:
        """Save what the step has written. Waits for the device."""
        self._learn(plan)
        for page in plan.saves:
            payload = b"".join(_bytes(layer[page.block]) for layer in self._layers(page.group))
            self._files.write(page.key, self._seals[page.group].wrap(payload, **page.asked()))

    def results(self) -> tuple[set[str], set[str]]:
        """Requests whose load has ended since the last question, and of these the failed."""
        done, failed = self._done, self._failed
        self._done, self._failed = set(), set()
        return done, failed

    def counts(self) -> dict[str, int]:
        """What was counted since the last question: `logical` and `effective` tokens, and `refused_pages`."""
        counted, self._counts = self._counts, Counter()
        return dict(counted)

    def _loaded(self, load: Load) -> bool:
        """Open every page first: no bad one stays in the folder, and then nothing is put into blocks either."""
        opened = [(page, self._opened(page)) for page in load.pages]
        if any(payload is None for _, payload in opened):
            return False
        for page, payload in opened:
            self._put(page, payload)
        return True

    def _opened(self, page: Page) -> Any | None:
        """The bytes of a page, or None where there are none that may be used."""
        blob = self._files.read(page.key)
        if blob is None:
            return None
        answer = self._seals[page.group].unwrap(blob, **page.asked())
        if isinstance(answer, PageRefused):
            _log.warning("hitproof refused page %s: %s %s", page.key, ", ".join(answer.failed), answer.detail)
            self._files.refuse(page.key)
            self._counts["refused_pages"] += 1
            return None
        return answer.payload

    def _put(self, page: Page, payload: Any) -> None:
        rows = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        low = 0
        for layer in self._layers(page.group):
            block = layer[page.block]
            size = block.numel() * block.element_size()
            block.copy_(rows[low : low + size].view(block.dtype).view(block.shape))
            low += size

    def _layers(self, group: str) -> list[torch.Tensor]:
        if self._facts is None:
            return []
        caches = [self._caches[name] for name in self._facts.layers[group]]
        return [one for cache in caches for one in (cache if isinstance(cache, (list, tuple)) else [cache])]

    def _learn(self, plan: PagePlan) -> None:
        if plan.facts is not None and plan.facts != self._facts:
            self._facts = plan.facts
            self._seals = seals_of(plan.facts, self._secret)


def _bytes(block: torch.Tensor) -> bytes:
    """The bytes of a block in the order of its axes, wherever they lie."""
    flat = block.detach().contiguous().cpu().reshape(-1)
    content: bytes = flat.view(torch.uint8).numpy().tobytes()
    return content
