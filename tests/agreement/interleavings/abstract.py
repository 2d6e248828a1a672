"""What of a run's state the scheduler looks at: two runs that agree in it count as one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tests.agreement.interleavings.world import GROUP, World

__all__ = ["Abstract", "abstract"]

_IDLE = ("turn", "look", "evict", "demote_begin", "move")
"""Points at which an actor has begun nothing yet."""


@dataclass(frozen=True, slots=True)
class Abstract:
    """A state, without what does not decide what can happen next.

    Args:
        slots: Of each segment which one it is, form, tier, pins, whether the page table leads to its blocks and keys
            to it, whether it is to be set apart, whether it is private.
        leases: Of each hold what it reuses, whether it is open, and of each segment that it reads the form, and how far
            the epoch has gone since it was noted.
        points: Where each actor waits.
        moved: For each actor that is in the midst of something, which segments have changed since its last step.
        phases: How far each request is.
        draining: Releases that wait for the device.
        spoiled: Whether the spoiler has been.
    """

    slots: tuple[Any, ...]
    leases: tuple[Any, ...]
    points: tuple[tuple[str, str], ...]
    moved: tuple[tuple[str, tuple[bool, ...]], ...]
    phases: tuple[tuple[str, str], ...]
    draining: int
    spoiled: bool


def abstract(world: World) -> Abstract:
    """What of the state two runs must have in common to count as one."""
    core = world.manager._core
    names = {id(slot): name for name, slot in world.slots.items()}
    slots = []
    for slot in core.slots[GROUP]:
        facts = slot.facts
        mapped = (
            None if slot.extent is None else slot.table == tuple(zip(slot.extent.blocks, slot.serials, strict=True))
        )
        known = names.get(id(slot), ""), facts.form, facts.tier, facts.pins, mapped, bool(slot.keys)
        slots.append((*known, bool(slot.suspect), slot.owner is not None))
    leases = []
    for name, hold in sorted(world.holds.items()):
        noted = [
            (slot.number, slot.facts.form, slot.facts.epoch - held.facts.epoch)
            for held in hold.reads()
            for slot in (held.slot,)
        ]
        leases.append((name, hold.usable, hold.open, tuple(noted)))
    points = tuple(sorted(world.baton.points().items()))
    now = world.epochs()
    moved = tuple(
        (name, tuple(before != after for before, after in zip_longest(world.left.get(name, ()), now)))
        for name, point in points
        if point not in _IDLE
    )
    phases = tuple(sorted(world.phases.items()))
    return Abstract(tuple(slots), tuple(leases), points, moved, phases, len(core.draining), world.spoiled)
