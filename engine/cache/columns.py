"""What is known of every block of a group's pool, in columns: 64 bytes a block or less."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np

from hitproof.engine.cache.slot import Slot
from hitproof.spec.errors import InternalError

__all__ = ["BLOCK", "Columns", "NOBODY"]

NOBODY = -1
"""The owner of a block that is free."""

BLOCK = np.dtype(
    [
        ("serial", np.int64),
        ("epoch", np.int64),
        ("recorded", np.uint64),
        ("owner", np.int32),
        ("holders", np.int32),
        ("start", np.int32),
        ("end", np.int32),
        ("form", np.uint8),
        ("tier", np.uint8),
        ("sealed", np.bool_),
    ]
)
"""One block: `serial` grows whenever it is given out; `holders` counts the segments that own it. The others repeat
facts of its owner, for bulk scans."""

_NO_FINGERPRINT = 0


class Columns:
    """Blocks of one pool: which are free, who owns the others, and at which serial number each was given out.

    Args:
        blocks: Blocks of the pool.
        forms, tiers: The rulebook's names, whose places stand in the columns.
    """

    def __init__(self, blocks: int, forms: tuple[str, ...], tiers: tuple[str, ...]) -> None:
        self.rows = np.zeros(blocks, dtype=BLOCK)
        self.rows["owner"] = NOBODY
        self._forms = {name: place for place, name in enumerate(forms)}
        self._tiers = {name: place for place, name in enumerate(tiers)}
        self._free = list(range(blocks))
        # Reading one number out of a structured row costs more than all the rest; lists answer at once.
        self._serials = [0] * blocks
        self._holders = [0] * blocks

    @property
    def blocks(self) -> int:
        """Blocks of the pool."""
        return len(self._serials)

    @property
    def free(self) -> int:
        """Blocks that nobody owns."""
        return len(self._free)

    def lowest_free(self) -> int | None:
        """The free block of the smallest number."""
        return self._free[0] if self._free else None

    def take(self, count: int, owner: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Give out blocks, the lowest first; None, and no change, where there are too few.

        Returns:
            The blocks, and the serial number of each.
        """
        if count > len(self._free):
            return None
        blocks = tuple(heapq.heappop(self._free) for _ in range(count))
        for block in blocks:
            self._serials[block] += 1
            self._holders[block] = 1
        serials = tuple(self._serials[block] for block in blocks)
        if blocks:
            where = list(blocks)
            self.rows["serial"][where] = serials
            self.rows["owner"][where] = owner
            self.rows["holders"][where] = 1
        return blocks, serials

    def join(self, blocks: Iterable[int]) -> None:
        """A second segment owns the blocks.

        Raises:
            InternalError: One of them is free.
        """
        for block in blocks:
            if self._holders[block] < 1:
                raise InternalError(f"block {block} is shared and nobody owns it")
            self._holders[block] += 1
            self.rows["holders"][block] += 1

    def give_back(self, blocks: Iterable[int]) -> None:
        """An owner gives its blocks back; those without another owner are free.

        Raises:
            InternalError: One of them is free already.
        """
        for block in blocks:
            if self._holders[block] < 1:
                raise InternalError(f"block {block} is freed twice")
            self._holders[block] -= 1
            self.rows["holders"][block] -= 1
            if not self._holders[block]:
                self.rows["owner"][block] = NOBODY
                heapq.heappush(self._free, block)

    def holders(self, block: int) -> int:
        """How many segments own a block."""
        return self._holders[block]

    def sole(self, blocks: Iterable[int]) -> bool:
        """Whether no block has a second owner."""
        return all(self._holders[block] == 1 for block in blocks)

    def current(self, blocks: tuple[int, ...], serials: tuple[int, ...]) -> bool:
        """Whether no block was given to anybody else since."""
        known = self._serials
        return tuple([known[block] for block in blocks]) == serials

    def give_out_again(self, block: int) -> None:
        """What an allocator does that forgets who owns a block: its serial number grows. For faults on purpose."""
        self._serials[block] += 1
        self.rows["serial"][block] += 1

    def note(self, slot: Slot) -> None:
        """Repeat what the rules read of a segment beside each of its blocks."""
        if slot.extent is None or not slot.extent.blocks:
            return
        facts: Any = slot.facts
        where = list(slot.extent.blocks)
        rows = self.rows
        rows["epoch"][where] = facts.epoch
        rows["recorded"][where] = _number(facts.recorded)
        rows["start"][where] = -1 if facts.start is None else facts.start
        rows["end"][where] = -1 if facts.end is None else facts.end
        rows["form"][where] = self._forms[facts.form]
        rows["tier"][where] = self._tiers[facts.tier]
        rows["sealed"][where] = facts.sealed is True

    def check_integrity(self) -> None:
        """The list of free blocks and the columns say the same.

        Raises:
            InternalError: They do not.
        """
        free = sorted(self._free)
        owned = [block for block, holders in enumerate(self._holders) if holders]
        if sorted([*free, *owned]) != list(range(self.blocks)):
            raise InternalError("a block is neither free nor owned, or both")
        if self.rows["holders"].tolist() != self._holders or self.rows["serial"].tolist() != self._serials:
            raise InternalError("the columns of a pool differ from what is counted")
        if any(self.rows["owner"][block] != NOBODY for block in free):
            raise InternalError("a free block has an owner")


def _number(fingerprint: Any) -> int:
    """A fingerprint as a number, 0 where it is unknown or no hexadecimal text of 64 bits."""
    if not isinstance(fingerprint, str) or len(fingerprint) > 16:
        return _NO_FINGERPRINT
    try:
        return int(fingerprint, 16)
    except ValueError:
        return _NO_FINGERPRINT
