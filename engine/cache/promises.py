"""What admitted requests are promised, and the run-time facts that follow from pools and promises."""

from __future__ import annotations

from collections.abc import Hashable

from hitproof.engine.cache.core import Core
from hitproof.engine.policy import Ledger
from hitproof.spec.decision import Decision

__all__ = ["Promises"]


class Promises:
    """Keeps the ledger; without a policy nothing is promised, and blocks that are not there are refused.

    Args:
        core: The manager's state.
        policy: Whether decisions are made under a policy.
    """

    def __init__(self, core: Core, *, policy: bool) -> None:
        self._core = core
        self._ledger = Ledger(core.bound.rulebook.policy.pools, core.runtime) if policy else None

    def promise(self, owner: Hashable, decision: Decision) -> bool:
        """Reserve what a decision's plan takes; False where others were promised the room meanwhile."""
        if self._ledger is None or not decision.promised:
            return True
        self._core.at("promise")
        with self._core.lock:
            return self._ledger.reserve(owner, decision.promised)

    def end(self, owner: Hashable) -> None:
        """The request has ended; a second call does nothing."""
        if self._ledger is not None:
            with self._core.lock:
                if self._ledger.holds(owner):
                    self._ledger.release(owner)

    def check_integrity(self) -> None:
        """Used and reserved are what the promises sum to; the lock is held.

        Raises:
            InternalError: They are not.
        """
        if self._ledger is not None:
            self._ledger.check_integrity()
