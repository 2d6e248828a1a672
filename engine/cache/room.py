"""Room for new segments: free blocks, and who gives way where there are too few (article 4.1)."""

from __future__ import annotations

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.slot import Slot
from hitproof.engine.cache.tiers import Tiers
from hitproof.spec.facts import Value

__all__ = ["Room"]


class Room:
    """Allocates, and lets unpinned segments go where that takes room.

    Args:
        core: The manager's state.
        tiers: Moves segments to slower storage.
    """

    def __init__(self, core: Core, tiers: Tiers) -> None:
        self._core, self._tiers = core, tiers

    def allocate(self, group: str, rows: int, owner: object, **arguments: Value) -> Slot | None:
        """A pending segment with blocks for so many rows; None where the room cannot be made."""
        core = self._core
        tries = 3
        while True:
            core.at("allocate")
            with core.lock:
                slot = core.allocate(group, rows, owner, **arguments)
            if slot is not None:
                return slot
            tries -= 1
            if not tries or not self.make(group, rows):
                return None

    def make(self, group: str, rows: int) -> bool:
        """Let unpinned segments of a group go, the longest unused first, until so many rows find free blocks.

        What nobody finds any more goes first. Other segments go to host memory where there is room, which is made by
        spilling to disk; else they are given up.

        Returns:
            Whether there was room for a moment; another request may take it first.
        """
        core = self._core
        columns = core.columns[group]
        needed = core.memory.shape(group).blocks_for(rows)
        if needed > columns.blocks:
            return False
        refused: set[Slot] = set()
        while columns.free < needed:
            with core.lock:
                victim = self._victim(group, refused)
                lower = victim is not None and bool(victim.keys) and not victim.suspect
                size = 0 if victim is None else core.memory.shape(group).payload_bytes(victim.rows)
            if victim is None:
                return False
            if lower and self._host_has_room(size) and self._tiers.demote(victim):
                continue
            if not self._tiers.evict(victim):
                refused.add(victim)
        return True

    def _victim(self, group: str, refused: set[Slot]) -> Slot | None:
        """The segment that goes next, one that no key leads to if there is any; the lock is held."""
        home, found = self._core.groups[group].home, None
        for slot in self._core.recent[group]:
            if slot.extent is None or slot.owner is not None or slot in refused:
                continue
            if slot.facts.pins == 0 and slot.facts.form == home:
                if not slot.keys or slot.suspect:
                    return slot
                found = found or slot
        return found

    def _host_has_room(self, size: int) -> bool:
        """Make room in host memory, by spilling the longest unused or giving it up; whether there is."""
        tiers, core = self._tiers, self._core
        if size > tiers.host_capacity:
            return False
        refused: set[Slot] = set()
        while tiers.host_used + size > tiers.host_capacity:
            with core.lock:
                oldest = next(
                    (slot for slot in tiers.host_recent if slot not in refused and slot.facts.pins == 0), None
                )
            if oldest is None:
                return False
            if not tiers.spill(oldest) and not tiers.evict(oldest):
                refused.add(oldest)
        return True
