"""When bytes of blocks are measured again before they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from hitproof.integrations.gate.table import ABSENT, CURRENT, OPEN, BlockTable
from hitproof.spec.errors import UsageError

__all__ = ["Measure", "Measuring", "TRUSTED", "Verify"]

Measure = Callable[[str, Sequence[int]], Sequence[str | None]]
"""Fingerprints of blocks of a group as they are now; None for one that cannot be read."""

Verify = Literal["never", "sampled", "use"]

TRUSTED = "not measured"
"""Fingerprint of what nobody measures: the framework's word is taken that nobody but the owner writes to a block."""


class Measuring:
    """Measures what the way of verifying asks for.

    Args:
        measure: Who can measure; None where nobody can.
        verify: At every use, one in `every`, or never.
        every: Of so many blocks that are judged one is measured, under `sampled`.

    Raises:
        UsageError: There is no such way, or bytes are to be measured and nobody can.
    """

    def __init__(self, measure: Measure | None, verify: Verify, every: int) -> None:
        if verify not in ("never", "sampled", "use") or every < 1:
            raise UsageError("blocks cannot be measured so", got=(verify, every), expected="never, sampled or use")
        if verify != "never" and measure is None:
            raise UsageError("bytes are to be measured, and nobody can", got=verify, expected="measure=")
        self.verify: Verify = verify
        self._measure, self._every, self._turn = measure, every, 0

    def taken(self, group: str, blocks: Sequence[int]) -> Sequence[str | None]:
        """Fingerprints of what was just written."""
        return [TRUSTED] * len(blocks) if self._measure is None else self._measure(group, blocks)

    def before_use(self, group: str, table: BlockTable, ids: Any) -> None:
        """Measure blocks of a look-up that are current and sealed. Changes what is known of them.

        Args:
            group: The framework's name of the group.
            table: What is known of its blocks.
            ids: Their ids, `ABSENT` for none.
        """
        if self.verify == "never" or self._measure is None:
            return
        present = ids[ids != ABSENT]
        standing = present[(table.code[present] & (CURRENT | OPEN)) == CURRENT].tolist()
        if self.verify == "sampled":
            first = -self._turn % self._every
            self._turn += len(standing)
            standing = standing[first :: self._every]
        if standing:
            for block, fingerprint in zip(standing, self._measure(group, standing), strict=True):
                table.measure(block, fingerprint)
