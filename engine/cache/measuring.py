"""Measures the bytes that leases hold, right before they are read, where the manager is told to."""

from __future__ import annotations

from typing import Literal, get_args

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Hold

__all__ = ["Measuring", "VERIFY", "Verify"]

Verify = Literal["tier_crossing", "sampled", "use"]
"""When bytes are measured, beside at their commit: whenever they have crossed tiers; also at one use in so many; also
at every use. What changes on the device after its last measurement is not seen."""

VERIFY: tuple[Verify, ...] = get_args(Verify)


class Measuring:
    """Asked by every confirmation of a hold.

    Args:
        core: The manager's state.
        verify: When bytes are measured.
        every: Of `sampled` confirmations one in so many measures.
    """

    def __init__(self, core: Core, verify: Verify, every: int = 16) -> None:
        self._core, self._verify, self._every = core, verify, every
        self._compares_mapping = any(step.does == "compare_mapping" for step in core.leasing.confirm)
        self._asked = 0
        self.measured = 0
        """Segments that were measured at a use."""

    def confirm(self, hold: Hold) -> str:
        """Measure what a hold reads, through the page table by which it is read.

        What is not what was recorded is noted as such and set apart as soon as nobody holds it.

        Returns:
            `layer/check` that fails; empty where the mapping is current and all bytes are those that were recorded.
        """
        core = self._core
        with core.lock:
            self._asked += 1
            measures = self._verify == "use" or (self._verify == "sampled" and self._asked % self._every == 0)
            if any(held.facts.pool_epoch != core.runtime.pool_epoch for held in hold.reads()):
                return "block_integrity/pool_current"
            if self._compares_mapping and any(
                not held.extent == held.slot.mapped == held.slot.extent for held in hold.reads()
            ):
                return "block_integrity/mapping_current"
        if not measures:
            return ""
        torn = False
        for held in hold.reads():
            measured = core.memory.fingerprint(held.extent)
            self.measured += 1
            if measured == held.facts.recorded:
                continue
            # The others are measured all the same: who asks anew shall plan with all that is known.
            torn = True
            core.at("measure")
            with core.lock:
                if core.possible(held.slot, "measure"):
                    core.fire(held.slot, "measure", {"measured": measured})
                held.slot.suspect = held.slot.suspect or "quarantine: torn"
        return "block_integrity/fingerprint_matches" if torn else ""
