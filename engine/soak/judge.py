"""The judge of a soak: a plain reader takes rows as an attention kernel would, and compares them with the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hitproof.engine.soak.faulty_memory import FaultyMemory
from hitproof.engine.soak.world import Prefix, Rows
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import InternalError
from hitproof.spec.memory import Extent

__all__ = ["Judge", "Wrong", "WrongBytes", "read_at"]


class WrongBytes(InternalError):
    """A use read rows that are not what its prompt's rows truly are."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Rows of one group that a use read wrongly.

    Args:
        group: Group id.
        what: What is wrong with them.
        blocks: Blocks that were read; none where nothing is held.
    """

    group: str
    what: str
    blocks: tuple[int, ...]


def read_at(group: BoundGroup, length: int) -> tuple[int, int]:
    """Tokens `[first, to)` whose rows are read by the first query after `length` reused tokens.

    Full layers read every position. A window includes the query itself, so one row less than the window is read. An
    entry stands for `ratio` tokens, and a compressor's state for the tokens that are no entry yet, with the overlap
    that the next entry reads (DeepSeek-V4 report, arXiv 2606.19348). A recurrent state is one state, of this length.
    """
    constants = group.constants
    ratio = int(constants.get("ratio", 1))
    if group.object == "uncompressed_tail":
        chunk = int(constants["chunk"])
        return max(length // chunk * chunk, length - int(constants["window"]) + 1, 0), length
    if group.object in ("compressed_global", "routing_index"):
        return 0, length // ratio * ratio
    if group.object == "compressor_state":
        return max(0, length - length % ratio - int(constants["overlap"])), length
    if group.object == "recurrent_state":
        return max(0, length - 1), length
    return (0, length) if group.object == "full_kv" else (length, length)


class Judge:
    """Judges every use of a run; counts what it has read.

    Args:
        bound: The groups.
        strict: Wrong bytes are raised; else they are counted.

    Attributes:
        memory: Where the bytes are; another one after a restart.
    """

    memory: FaultyMemory

    def __init__(self, bound: BoundRulebook, *, strict: bool) -> None:
        self._groups, self._strict = bound.groups, strict
        self.uses = 0
        self.rows: Counter[str] = Counter()
        self.wrong_uses = self.missing_uses = 0
        self.example = ""

    def use(
        self,
        prefix: Prefix,
        length: int,
        tables: Mapping[str, Sequence[Any]],
        kernels: Mapping[str, Any],
    ) -> list[Wrong]:
        """Read all rows that a prompt reads after `length` reused tokens.

        Args:
            prefix: The truth about the prompt.
            length: Reused tokens.
            tables: For each group, in token order, records with `facts` and `extent`.
            kernels: Kernel contracts by group: the number formats that are read.

        Returns:
            What was wrong.

        Raises:
            WrongBytes: Something was, and the judge is strict.
        """
        found: list[Wrong] = []
        for group in self._groups:
            first, to = read_at(group, length)
            if first < to:
                pieces = tables.get(group.id, ())
                wrong = self._state if group.rules.pieces == "point" else self._span
                found += wrong(group, prefix, first, to, pieces, kernels[group.id])
        self.uses += 1
        if found:
            text = "; ".join(f"{one.group}: {one.what}" for one in found)
            if any(one.blocks for one in found):
                self.wrong_uses += 1
                self.example = self.example or text
            else:
                self.missing_uses += 1
            if self._strict:
                raise WrongBytes(text)
        return found

    def _span(
        self, group: BoundGroup, prefix: Prefix, first: int, to: int, pieces: Sequence[Any], kernel: Any
    ) -> Iterable[Wrong]:
        """Rows of the pieces; each one answers from where the one before it ended, and together they must have all."""
        tokens = int(group.constants["row_tokens"])
        reached = first
        for piece in pieces:
            start, end = reached, min(to, piece.facts.end)
            if piece.facts.start > reached:
                break
            if start >= end:
                continue
            row, count = (start - piece.facts.start) // tokens, (end - start) // tokens
            if row + count > piece.extent.rows:
                yield Wrong(group.id, f"the piece has {piece.extent.rows} rows only", piece.extent.blocks)
                return
            yield from self._compare(group, prefix, start, end, piece.extent, row, count, kernel)
            reached = end
        if reached < to:
            yield Wrong(group.id, f"nothing is held from {reached} to {to}", ())

    def _state(
        self, group: BoundGroup, prefix: Prefix, first: int, to: int, pieces: Sequence[Any], kernel: Any
    ) -> Iterable[Wrong]:
        """The one state that is held; whatever its length is said to be, it is continued from here."""
        if not pieces:
            yield Wrong(group.id, f"no state is held at {to}", ())
            return
        extent = pieces[-1].extent
        count = 1 if group.object == "recurrent_state" else to - first
        yield from self._compare(group, prefix, first, to, extent, 0, count, kernel)

    def _compare(
        self,
        group: BoundGroup,
        prefix: Prefix,
        start: int,
        end: int,
        extent: Extent,
        row: int,
        count: int,
        kernel: Any,
    ) -> Iterable[Wrong]:
        truth = prefix.written(group.id, start, end, kernel)[:, :count]
        read = self._read(extent, group)[:, row : row + count]
        self.rows[group.id] += count
        if not np.array_equal(truth, read):
            bad = int((truth != read).any(axis=(0, 2)).sum()) if truth.shape == read.shape else count
            yield Wrong(group.id, f"{bad} of {count} rows from token {start} on", extent.blocks)

    def _read(self, extent: Extent, group: BoundGroup) -> Rows:
        """The rows as a kernel reads them, which takes an address for what it is rounded down to."""
        shape = self.memory.shape(extent.group)
        rows = np.frombuffer(self.memory.read(extent), np.uint8).reshape(shape.layers, extent.rows, shape.row_bytes)
        shift = self.memory.oddity(extent.group, extent.blocks[0]) if extent.blocks else 0
        return np.roll(rows.reshape(shape.layers, -1), shift, axis=1).reshape(rows.shape) if shift else rows
