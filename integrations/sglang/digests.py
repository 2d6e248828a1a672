"""What a run of tokens is filed under: a running digest a page, salted by the process."""

from __future__ import annotations

from array import array

__all__ = ["page_digests"]


def page_digests(tokens: array[int], page: int, length: int) -> list[int]:
    """A digest of all tokens up to the end of each whole page.

    The digests are compared within one process only. They are built on the hash of bytes, whose key the interpreter
    draws at its start.

    Args:
        tokens: Token ids from the first one on.
        page: Tokens of a page.
        length: Leading tokens that count; those behind its last whole page do not.
    """
    raw = memoryview(tokens).cast("B")
    width = page * tokens.itemsize
    found = []
    before = 0
    for first in range(0, min(length, len(tokens)) // page * width, width):
        before = hash((before, raw[first : first + width].tobytes()))
        found.append(before)
    return found
