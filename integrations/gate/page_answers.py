"""What is answered about a page, and what a page and its digest may be."""

from __future__ import annotations

from dataclasses import dataclass

from hitproof.spec.decision import Reason

__all__ = ["Digest", "PageOpened", "PageRefused", "Payload"]

Digest = str | bytes | int
Payload = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class PageOpened:
    """The page may be put into blocks.

    Args:
        payload: Its bytes, as they were given.
    """

    payload: Payload


@dataclass(frozen=True, slots=True)
class PageRefused:
    """The page is not the request's, or not whole; it is false.

    Args:
        failed: `group/check` of what failed; `page/...` where its record cannot be read.
        reasons: The same with values, for checks.
        detail: The same in words, for records.
    """

    failed: tuple[str, ...]
    reasons: tuple[Reason, ...] = ()
    detail: str = ""

    def __bool__(self) -> bool:
        return False
