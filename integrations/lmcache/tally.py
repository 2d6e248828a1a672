"""What was claimed and what was used, counted once a chunk and exported where LMCache exports its own metrics."""

from __future__ import annotations

from hitproof.engine.observe import Counters, Served, register
from hitproof.integrations.gate import PageRefused
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.decision import Decision, Verdict
from hitproof.spec.errors import UsageError

__all__ = ["Tally"]


class Tally:
    """Counters of one worker; the first of a process is exported by `prometheus_client`, as LMCache's metrics are.

    Args:
        bound: The rules that judge.
    """

    def __init__(self, bound: BoundRulebook) -> None:
        self.counters = Counters(bound)
        self._digest = bound.rulebook.digest
        try:
            register(self.counters)
        except (UsageError, ValueError):
            # A second worker of the process counts for itself; the registry takes each name once.
            return

    def used(self, tokens: int) -> None:
        """A chunk came back and was accepted."""
        self._tell("reuse", tokens, tokens)

    def refused(self, tokens: int, answer: PageRefused) -> None:
        """A chunk lay there and was refused."""
        self._tell("recompute", tokens, 0, answer)

    def _tell(self, verdict: Verdict, logical: int, usable: int, answer: PageRefused | None = None) -> None:
        failed, reasons = ((), ()) if answer is None else (answer.failed, answer.reasons)
        decision = Decision(verdict, logical, usable, failed=failed, reasons=reasons, digest=self._digest)
        self.counters.decided(decision, 0.0)
        self.counters.served(Served(decision, verdict, usable, logical))
