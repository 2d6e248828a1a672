"""What the gate knows of SGLang's pages, told and asked in SGLang's terms: rows of a prompt, ranges of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from hitproof.integrations.gate import BlockGate, Gated
from hitproof.integrations.sglang.identity import Identities
from hitproof.integrations.sglang.pools import SWA
from hitproof.integrations.sglang.watch import watch

__all__ = ["PageBook", "Ranges", "Translate"]

Ranges = Mapping[str, Sequence[tuple[int, int]]]
"""By group, runs of tokens `[first, to)`."""

Translate = Callable[[torch.Tensor], torch.Tensor]
"""From rows of the full pool to those of the window pool, 0 where there is none: what attention kernels read by."""

_PENDING = 1024


class PageBook:
    """The gate of one scheduler, and what happened to pages since it was last asked.

    Args:
        gate: Judges.
        identities: Who requests are.
        allocators: The allocator of each group's pages.
        translate: Leads to the window pool; None where there is none.
    """

    def __init__(
        self, gate: BlockGate, identities: Identities, allocators: Mapping[str, Any], translate: Translate | None
    ) -> None:
        self.gate = gate
        self.identities = identities
        self._translate = translate
        self._page = gate.unit
        self._moved: dict[str, list[torch.Tensor]] = {name: [] for name in allocators}
        for name, allocator in allocators.items():
            watch(allocator, partial(self._note, name))

    def wrote(self, rows: torch.Tensor, ranges: Ranges, digests: Sequence[int], request: Any | None) -> None:
        """The tree took over pages that a request wrote. Changes what the gate knows.

        Args:
            rows: Rows of the full pool of the tree's path, from token 0 on.
            ranges: Which tokens' pages are new to the tree.
            digests: Of all pages of the path.
            request: Who wrote them.
        """
        self._settle()
        page = self._page
        for name, runs in ranges.items():
            pages = self._pages(name, rows)
            for first, to in runs:
                some = pages[first // page : to // page]
                if None in some:
                    continue
                written = [int(one) for one in some if one is not None]
                self.gate.written(
                    name,
                    written,
                    first=first,
                    digests=digests[first // page : to // page],
                    identity=self.identities.of(request),
                )
                self.gate.seal(name, written)

    def judge(self, rows: torch.Tensor, length: int, digests: Sequence[int], request: Any | None) -> Gated:
        """How much of a hit may be used.

        Args:
            rows: Rows of the full pool that the tree claims, from token 0 on.
            length: Tokens of the prompt.
            digests: Of the prompt's pages, as many as rows claim.
            request: Who asks.
        """
        self._settle()
        matched = len(rows)
        blocks = {name: self._pages(name, rows) for name in self._moved}
        asked = {name: digests[: len(pages)] for name, pages in blocks.items()}
        identity = self.identities.of(request)
        return self.gate.judge(length=length, matched=matched, blocks=blocks, digests=asked, identity=identity)

    def first_refused(self, rows: torch.Tensor, gated: Gated) -> int | None:
        """The first token whose page was refused for what it is, None where no page was.

        Args:
            rows: What was judged.
            gated: The answer.
        """
        places = []
        for name, refused in gated.refused.items():
            bad = set(refused)
            places += [place for place, page in enumerate(self._pages(name, rows)) if page in bad]
        return min(places) * self._page if places else None

    def forget(self) -> None:
        """The tree was emptied. Changes what the gate knows."""
        for moved in self._moved.values():
            moved.clear()
        self.gate.forget()

    def _pages(self, name: str, rows: torch.Tensor) -> list[int | None]:
        """Page ids of a group along a path; None where attention would find none. Waits for the device."""
        leading = rows[:: self._page]
        if name == SWA:
            assert self._translate is not None
            leading = self._translate(leading)
        pages: list[int] = (leading // self._page).tolist()
        # Page 0 takes the writes of padding and is nobody's.
        return [page if page > 0 else None for page in pages]

    def _note(self, name: str, pages: torch.Tensor) -> None:
        self._moved[name].append(pages)
        if len(self._moved[name]) >= _PENDING:
            self._settle()

    def _settle(self) -> None:
        """Tell the gate which pages were handed out or taken back, in one copy from the device a group."""
        for name, moved in self._moved.items():
            if moved:
                pages = torch.cat([one.reshape(-1) for one in moved]).unique()
                moved.clear()
                self.gate.freed(name, pages.tolist())
