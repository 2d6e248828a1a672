"""What the manager knows of one segment: its facts, where its bytes lie, and which keys lead to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hitproof.spec.bound import BoundGroup
from hitproof.spec.memory import Extent, HostRows

__all__ = ["Entry", "IDENTITY", "INVISIBLE", "Slot", "TableEntry"]

TableEntry = tuple[int, int]
"""A block, and the serial number at which it was given out when the entry was written."""

IDENTITY = ("weights", "attention_config", "adapter", "media", "media_from", "salt")
"""Facts that `allocate` is given of whom the bytes are."""

INVISIBLE = ("pending", "moving", "quarantined", "discarded")
"""Forms in which no look-up finds a segment: every other form is the home form or `demoted`."""


@dataclass(slots=True, eq=False)
class Entry:
    """Segments that were written together for one prompt; they are demoted together, under one manifest.

    Args:
        number: Grows from entry to entry.
        members: Its segments.
        manifest: The record of what of it lies in slower storage, where anything does.
        below: The segments that the manifest tells of, each with the incarnation that was meant.
        keys: Keys of the index under which its manifest is filed.
    """

    number: int
    members: list[Slot] = field(default_factory=list)
    manifest: Slot | None = None
    below: list[tuple[Slot, int]] = field(default_factory=list)
    keys: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False)
class Slot:
    """A segment. One that was discarded is taken again for another, and its epoch and generation go on.

    Args:
        number: Its number within the manager.
        group: Its group.
        facts: What the rules read; only events of the form machine change them.
        incarnation: Grows each time the slot is taken.
        rows: Rows of bytes that it has, in whatever tier.
        extent: Where its bytes lie on the device; None where it has none there.
        serials: The serial number at which each of its blocks was given to it.
        table: The page table that is published: what attention kernels read by.
        host: Its bytes in host memory.
        stored: Its key on disk.
        keys: Keys of the index that lead to it.
        disk_key: The key under which it would be put on disk; None where it has none.
        used: When it was last used, in seconds of the manager's clock.
        entry: The segments that it was written with.
        owner: Who alone may use it while it is pending or private.
        suspect: Why it is to be quarantined as soon as nobody holds it.
    """

    number: int
    group: BoundGroup
    facts: Any
    incarnation: int = 0
    rows: int = 0
    extent: Extent | None = None
    serials: tuple[int, ...] = ()
    table: tuple[TableEntry, ...] = ()
    host: HostRows | None = None
    stored: str | None = None
    keys: tuple[Any, ...] = ()
    disk_key: str | None = None
    used: float = 0.0
    entry: Entry | None = None
    owner: object = None
    suspect: str = ""

    @property
    def mapped(self) -> Extent | None:
        """Its rows as the published page table leads to them; None where none lie on the device."""
        if self.extent is None:
            return None
        blocks = tuple([block for block, _ in self.table])
        return self.extent if blocks == self.extent.blocks else Extent(self.extent.group, blocks, self.extent.rows)

    def __repr__(self) -> str:
        facts = self.facts
        return f"Slot({self.number} {self.group.id} {facts.form} [{facts.start}, {facts.end}))"
