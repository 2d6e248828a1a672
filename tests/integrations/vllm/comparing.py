"""How far two answers of a model are apart."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan
from typing import Any

__all__ = ["CLOSE", "FAR", "furthest", "reused", "same_tokens"]

CLOSE = 1e-4
"""Log-probabilities that floating-point sums in another order may differ by; here they were equal to the last bit."""

FAR = 1e-2
"""What a fault must change them by, to count as one that was planted."""


def furthest(some: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> float:
    """The largest difference of a log-probability, over the whole first distribution where it was kept."""
    assert len(some) == len(others)
    most = 0.0
    for one, other in zip(some, others, strict=True):
        kept = "first" if "first" in one else "chosen"
        for left, right in zip(one[kept], other[kept], strict=True):
            apart = abs(left - right)
            # A torn block may hold what is no number.
            most = max(most, inf if isnan(apart) else apart)
    return most


def same_tokens(some: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> bool:
    """Whether all answers are the same."""
    return [one["tokens"] for one in some] == [other["tokens"] for other in others]


def reused(answers: Sequence[dict[str, Any]]) -> list[int]:
    """Tokens that each prompt reused."""
    return [one["cached"] for one in answers]
