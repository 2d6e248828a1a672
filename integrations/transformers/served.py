"""What a prefix cache answers: the state that was found for a prompt, and the prompt after its prefill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hitproof.engine.cache import Answer, Hold, Prompt
from hitproof.spec.decision import PlanStep

__all__ = ["Found", "Served"]


@dataclass(frozen=True, slots=True)
class Found:
    """State of leading tokens that was validated and copied into a live cache.

    Args:
        past: A live cache of the model, at `usable` tokens; it is the caller's.
        usable: Tokens that need not be computed.
        logical: Tokens that a cache which compares nothing but hashes would have claimed.
        answer: What the manager answered.
        prompt: Who asked.
        hold: The lease on what was copied, to be released; None where the request was deferred or refused.
    """

    past: Any
    usable: int
    logical: int
    answer: Answer
    prompt: Prompt
    hold: Hold | None

    @property
    def plan(self) -> tuple[PlanStep, ...]:
        """The repairs of the last decision."""
        decision = self.answer.decision
        return () if decision is None or not self.usable else decision.plan

    def release(self) -> None:
        """Give the lease back; a second call does nothing."""
        if self.hold is not None:
            self.hold.release()


@dataclass(frozen=True, slots=True)
class Served:
    """A prompt after its prefill.

    Args:
        logits: [T, vocabulary] of the tokens behind `usable`; None where none was computed.
        past: The live cache, behind all of them.
        answer: What the manager answered.
        logical: Tokens that a cache which compares nothing but hashes would have claimed.
        usable: Tokens that were not computed.
        plan: Repairs that were run for them.
        kept: Why nothing new was stored; empty where it was.
    """

    logits: Any
    past: Any
    answer: Answer
    logical: int
    usable: int
    plan: tuple[PlanStep, ...]
    kept: str

    @classmethod
    def behind(cls, found: Found, parts: Sequence[Any], kept: str) -> Served:
        """What was served behind what was found.

        Args:
            found: What was found.
            parts: Logits [T, vocabulary] of each pass, in order.
            kept: Why nothing new was stored.
        """
        logits = torch.cat(list(parts)) if parts else None
        return cls(logits, found.past, found.answer, found.logical, found.usable, found.plan, kept)
