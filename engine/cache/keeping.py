"""House-keeping: what may go now that nobody holds it, what the policy sends down early, releases that waited."""

from __future__ import annotations

from collections import Counter

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.slot import Slot
from hitproof.engine.cache.tiers import Tiers
from hitproof.engine.policy import EarlyDemotion

__all__ = ["Keeping"]


class Keeping:
    """Turns that nobody waits for.

    Args:
        core: The manager's state.
        tiers: Moves segments between tiers, and gives them up.
        demotion: The policy's rules of early demotion.
    """

    def __init__(self, core: Core, tiers: Tiers, demotion: EarlyDemotion | None) -> None:
        self._core, self._tiers, self._demotion = core, tiers, demotion

    def turn(self) -> Counter[str]:
        """Do what is to be done, and tell how often what was done."""
        done: Counter[str] = Counter()
        done["drained"] = self._drain()
        for slot in self._suspects():
            then = slot.suspect.partition(":")[0]
            if then == "quarantine" and self._tiers.quarantine(slot):
                done["quarantined"] += 1
            elif then == "purge" and self._tiers.evict(slot):
                done["purged"] += 1
        for slot, to in self._early():
            done["demoted"] += self._tiers.demote(slot, to)
        return done

    def discard_quarantined(self) -> int:
        """Give up what was set apart; how many."""
        with self._core.lock:
            apart = [slot for slots in self._core.recent.values() for slot in slots if slot.facts.form == "quarantined"]
        return sum(self._tiers.discard(slot) for slot in apart)

    def _drain(self) -> int:
        core = self._core
        with core.lock:
            waiting, core.draining = core.draining, []
        left = [release for release in waiting if not release()]
        with core.lock:
            core.draining += left
        return len(waiting) - len(left)

    def _suspects(self) -> list[Slot]:
        with self._core.lock:
            return [
                slot
                for slots in self._core.recent.values()
                for slot in slots
                if slot.suspect and slot.facts.pins == 0 and slot.owner is None
            ]

    def _early(self) -> list[tuple[Slot, str]]:
        core = self._core
        if self._demotion is None or not self._demotion.asks:
            return []
        with core.lock:
            now = core.clock()
            resting = {
                id(slot.facts): slot
                for slots in core.recent.values()
                for slot in slots
                if slot.facts.form == slot.group.home and slot.owner is None and not slot.suspect
            }
            for slot in resting.values():
                if "idle_us" in slot.group.facts:
                    slot.facts.idle_us = max(0.0, (now - slot.used) * 1e6)
            chosen = self._demotion.chosen((slot.facts for slot in resting.values()), core.runtime)
            return [(resting[id(facts)], to) for facts, to in chosen]
