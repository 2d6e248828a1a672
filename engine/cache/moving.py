"""Segments moved or changed where they are: defragmented, shared, cut back."""

from __future__ import annotations

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.slot import Slot
from hitproof.spec.memory import Extent

__all__ = ["Moving"]


class Moving:
    """Changes of place and span on the device.

    Args:
        core: The manager's state.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def defragment(self, group: str) -> bool:
        """Move one unpinned segment of a group to free blocks of lower numbers; its bytes are measured before use.

        Returns:
            Whether one was moved. Called until it is not, it leaves the free blocks together at the end of the pool.
        """
        core = self._core
        core.at("move")
        with core.lock:
            columns = core.columns[group]
            slot = next((one for one in core.recent[group] if self._may_move(one)), None)
            if slot is None or slot.extent is None:
                return False
            source, epoch, incarnation = slot.extent, slot.facts.epoch, slot.incarnation
            landing = columns.take(len(source.blocks), slot.number)
            if landing is None:
                return False
            if max(landing[0]) >= max(source.blocks):
                columns.give_back(landing[0])
                return False
        target = Extent(group, landing[0], source.rows)
        core.memory.copy(source, target)
        core.memory.fence().wait()
        core.at("defragment")
        with core.lock:
            same = slot.incarnation == incarnation and slot.facts.epoch == epoch and slot.extent == source
            if not same or not core.possible(slot, "defragment"):
                columns.give_back(landing[0])
                return False
            earlier = slot.extent, slot.serials
            slot.extent, slot.serials = target, landing[1]
            if not core.fire(slot, "defragment", {"address": core.address(slot)}):
                slot.extent, slot.serials = earlier
                columns.give_back(landing[0])
                return False
            columns.give_back(source.blocks)
            core.map(slot)
            return True

    def share(self, slot: Slot) -> Slot | None:
        """A second owner of a sealed segment's blocks, found under the same keys; None where it may not be shared."""
        core = self._core
        core.at("share")
        with core.lock:
            if slot.owner is not None or slot.suspect or slot.facts.form != slot.group.home or slot.extent is None:
                return None
            other = core.take_slot(slot.group.id)
            other.extent, other.serials, other.rows = slot.extent, slot.serials, slot.rows
            core.columns[slot.group.id].join(slot.extent.blocks)
            core.map(other)
            if not core.fire(other, "share", donor=slot):
                core.give_up(other)
                return None
            other.entry, other.disk_key = slot.entry, slot.disk_key
            if other.entry is not None:
                other.entry.members.append(other)
            core.index.file(other, slot.keys)
            return other

    def rollback(self, slot: Slot, end: int) -> bool:
        """Cut a rejected continuation off; the segment is found no more, and its owner goes on from `end`.

        Returns:
            False, with the segment as it was, where somebody holds it, or the cut would need rows that are gone.
        """
        core = self._core
        core.at("rollback")
        with core.lock:
            if slot.owner is not None or slot.suspect:
                return False
            for trigger in ("rollback", "rollback_window"):
                if core.possible(slot, trigger):
                    return core.fire(slot, trigger, {"end": end})
            return False

    def _may_move(self, slot: Slot) -> bool:
        columns = self._core.columns[slot.group.id]
        lowest = columns.lowest_free()
        return (
            slot.extent is not None
            and bool(slot.extent.blocks)
            and slot.owner is None
            and not slot.suspect
            and slot.facts.pins == 0
            and slot.facts.form == slot.group.home
            and lowest is not None
            and lowest < max(slot.extent.blocks)
            and columns.sole(slot.extent.blocks)
        )
