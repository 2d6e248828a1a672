"""What the gate answers about a hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hitproof.spec.decision import Decision, Reason

__all__ = ["Gated"]


@dataclass(frozen=True, slots=True)
class Gated:
    """What a hit is worth.

    Args:
        usable: Leading tokens that may be used without any repair.
        logical: Leading tokens that the framework's look-up claimed.
        decision: The engine's own answer.
        refused: By group, blocks that fail a check of their own, whatever the length; their index entries are bad.
        failed: `group/check` of the checks in the way of the whole hit.
        reasons: The same with values.
        seen: By group, the blocks that were judged and their generations; for `BlockGate.confirm`.
    """

    usable: int
    logical: int
    decision: Decision
    refused: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    seen: Mapping[str, tuple[Any, Any]] = field(default_factory=dict, compare=False, repr=False)
