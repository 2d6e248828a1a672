"""A prompt as the cache manager is asked for it: tokens, facts of the request, and digests of leading tokens."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from typing import Any

from hitproof.spec.errors import UsageError
from hitproof.spec.facts import Value

__all__ = ["Prompt"]

_TOKEN_BYTES = 8
_SHARED = 256
"""Tokens between two digests that are kept for later ones to begin at."""


class Prompt:
    """Tokens with the facts of their request; digests of its leading tokens are worked out once.

    Args:
        tokens: Token ids, each of at least 0 and below 2**64.
        request: Facts of the request; `length` is the number of tokens.

    Raises:
        UsageError: A token is no such number.
    """

    __slots__ = ("_content", "_digests", "_marks", "adopted", "fields", "keys", "request", "tokens")

    def __init__(self, tokens: Sequence[int], request: Any) -> None:
        try:
            self._content = array("Q", tokens).tobytes()
        except (TypeError, OverflowError) as error:
            raise UsageError(
                "a token cannot be used", got=error, expected="whole numbers from 0 to 2**64 - 1"
            ) from error
        self.tokens = tokens
        self.request = request
        self.fields: dict[int, dict[str, Value]] = {}
        """What the request gives for the fields of keys, by the number of a kind of keys."""
        self.keys: dict[tuple[int, int], tuple[Any, ...] | None] = {}
        """Keys that were worked out, by kind and end; None where there is none."""
        self.adopted: object = None
        """Who has taken in what an earlier process left for it."""
        self._digests: dict[int, str] = {}
        self._marks = [hashlib.blake2b(digest_size=32)]

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    def digest(self, count: int) -> str | None:
        """Digest of so many leading tokens, as `engine.keys.token_digests` gives it; None where there are fewer."""
        if not 0 <= count <= len(self.tokens):
            return None
        known = self._digests.get(count)
        if known is None:
            place = min(count // _SHARED, len(self._marks) - 1)
            while place < count // _SHARED:
                following = self._marks[place].copy()
                following.update(self._bytes(place * _SHARED, (place + 1) * _SHARED))
                self._marks.append(following)
                place += 1
            last = self._marks[place].copy()
            last.update(self._bytes(place * _SHARED, count))
            known = self._digests[count] = last.hexdigest()
        return known

    def _bytes(self, first: int, to: int) -> bytes:
        return self._content[first * _TOKEN_BYTES : to * _TOKEN_BYTES]
