"""What is known of the blocks of one group: a column a fact, and a code for all that is judged alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["ABSENT", "BITS", "BlockTable", "CURRENT", "OPEN", "TORN", "UNMEASURED"]

ABSENT = -1
"""Stands for no block."""

UNMEASURED, CURRENT, OPEN, TORN = 1, 2, 4, 8
"""Bits of a block's code: not measured since it was written; not given out since; still written to; other bytes."""

BITS = 4
"""Bits of a code below the kind."""
_ROOM = 1024

_Numbers = npt.NDArray[np.int64]


class BlockTable:
    """Columns by block id. A block of kind 0 was never written.

    `code` holds the kind and the bits, and is what tells whether two neighbours may be judged as one segment.
    """

    __slots__ = ("begins", "code", "digests", "generation", "measured", "recorded", "start", "tokens", "written")

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.code: _Numbers = np.zeros(0, dtype=np.int64)
        self.generation: _Numbers = np.zeros(0, dtype=np.int64)
        self.written: _Numbers = np.zeros(0, dtype=np.int64)
        self.start: _Numbers = np.zeros(0, dtype=np.int64)
        self.begins: _Numbers = np.zeros(0, dtype=np.int64)
        self.digests: list[Hashable] = []
        self.recorded: list[str | None] = []
        self.measured: list[str | None] = []

    def reserve(self, blocks: Sequence[int]) -> None:
        """Room for all these ids. Changes the columns' length."""
        needed = max(blocks, default=-1) + 1
        more = max(needed, len(self.code) * 2, _ROOM) - len(self.code)
        if needed <= len(self.code):
            return
        for name in ("begins", "code", "generation", "written", "start"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more, dtype=np.int64)]))
        self.digests += [None] * more
        self.recorded += [None] * more
        self.measured += [None] * more

    def write(self, block: int, kind: int, start: int, digest: Hashable, begins: int) -> None:
        """A block holds what was written now, and is not sealed yet; the generation grows.

        Args:
            block: Its id.
            kind: Number of what was written.
            start: Token at which its content begins.
            digest: What it is filed under.
            begins: Token at which the first picture of the writer's prompt begins.
        """
        self.generation[block] += 1
        self.written[block] = self.generation[block]
        self.start[block] = start
        self.digests[block] = digest
        self.begins[block] = begins
        self.recorded[block] = self.measured[block] = None
        self.code[block] = kind << BITS | CURRENT | OPEN | UNMEASURED

    def seal(self, block: int, fingerprint: str) -> None:
        """The writer is done; the fingerprint is of what it wrote."""
        self.recorded[block] = self.measured[block] = fingerprint
        self.code[block] &= ~(OPEN | UNMEASURED | TORN)

    def measure(self, block: int, fingerprint: str | None) -> None:
        """The bytes were measured now; None where that could not be done."""
        self.measured[block] = fingerprint
        code = int(self.code[block]) & ~(UNMEASURED | TORN)
        if fingerprint is None:
            code |= UNMEASURED
        elif fingerprint != self.recorded[block]:
            code |= TORN
        self.code[block] = code

    def give_out(self, block: int) -> None:
        """What was written is promised no more; the generation grows."""
        self.generation[block] += 1
        self.code[block] &= ~CURRENT

    def kinds(self) -> set[int]:
        """Numbers of everything that some block was written as, and is not overwritten."""
        return set(np.unique(self.code >> BITS).tolist())

    def kind_of(self, block: int) -> int:
        """Number of what was written there; 0 for nothing."""
        return int(self.code[block]) >> BITS
