"""Notes which pages an allocator hands out or takes back: what they held is promised no more."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

__all__ = ["Note", "watch"]

Note = Callable[[torch.Tensor], None]
"""Told page ids as they are handed out or taken back; it must not wait for the device."""


def watch(allocator: Any, note: Note) -> None:
    """Tell of every page that one of SGLang's allocators gives or takes. Changes the allocator.

    Args:
        allocator: A `PagedTokenToKVPoolAllocator` or `TokenToKVPoolAllocator`.
        note: Who is told.
    """
    page = allocator.page_size

    def handing(give: Callable[..., torch.Tensor | None]) -> Callable[..., torch.Tensor | None]:
        @wraps(give)
        def given(*args: Any, **kwargs: Any) -> torch.Tensor | None:
            rows = give(*args, **kwargs)
            if rows is not None and rows.numel():
                note(rows // page)
            return rows

        return given

    def taking(take: Callable[..., None]) -> Callable[..., None]:
        @wraps(take)
        def taken(*pages: torch.Tensor, **kwargs: Any) -> None:
            for some in pages:
                note(some)
            take(*pages, **kwargs)

        return taken

    for name in ("alloc", "alloc_extend", "alloc_decode"):
        setattr(allocator, name, handing(getattr(allocator, name)))
    # Paged allocators free by many ways that meet in one place; with pages of one token there is one way.
    last = "_release_page_ids" if hasattr(allocator, "_release_page_ids") else "free"
    setattr(allocator, last, taking(getattr(allocator, last)))
