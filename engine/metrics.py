"""Counters that keep apart what a hash lookup claims and what can really be reused (article 7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hitproof.spec.decision import Decision, Verdict
from hitproof.spec.errors import InternalError

__all__ = ["HitCounters"]

RECOVERED = ("repair", "rebuild")


@dataclass
class HitCounters:
    """Tokens and requests counted so far; all rates divide by the tokens of every request.

    `logical` is the longest hash match, `effective` what is reused without any repair, `recovered` what is reused after
    one, `recomputed` the logical rest: the three sum to `logical`.
    """

    touched: int = 0
    logical: int = 0
    effective: int = 0
    recovered: int = 0
    recomputed: int = 0
    requests: Counter[str] = field(default_factory=Counter)

    def record(self, decision: Decision, tokens: int) -> None:
        """Count the decision about a request of `tokens` tokens as its answer. Changes the counters."""
        self.serve(decision.verdict, decision.logical, decision.usable, tokens)

    def serve(self, verdict: Verdict, logical: int, usable: int, tokens: int) -> None:
        """Count what a request ended with, after recovery where there was one. Changes the counters.

        Args:
            verdict: What it ended with.
            logical: Tokens that matched.
            usable: Tokens that are reused.
            tokens: Tokens of the request.
        """
        self.touched += tokens
        self.logical += logical
        self.requests[verdict] += 1
        if verdict == "reuse":
            self.effective += usable
        elif verdict in RECOVERED:
            self.recovered += usable
        self.recomputed += logical - usable

    def rates(self) -> dict[str, float]:
        """Each counter over the tokens touched; all 0 where nothing was."""
        whole = self.touched or 1
        names = ("logical", "effective", "recovered", "recomputed")
        return {f"{name}_rate": getattr(self, name) / whole for name in names}

    def check_integrity(self) -> None:
        """Raise where the parts do not sum to the whole.

        Raises:
            InternalError: They do not.
        """
        if self.effective + self.recovered + self.recomputed != self.logical or self.logical > self.touched:
            raise InternalError(f"hit counters do not add up: {self}")
