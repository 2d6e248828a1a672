"""Rows of one span, put together from the segments that hold parts of it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hitproof.spec.bound import BoundGroup
from hitproof.spec.errors import InternalError
from hitproof.spec.memory import Extent, Memory
from hitproof.spec.rows import is_state

__all__ = ["Part", "assembled"]

Part = tuple[int, int, Extent]
"""First token, one past the last, and where the rows lie."""


def assembled(memory: Memory, group: BoundGroup, parts: Iterable[Part], start: int, end: int) -> bytes:
    """The rows of the tokens [start, end), whatever segments they lie in.

    Args:
        memory: The bytes.
        group: The group.
        parts: Segments in token order; they may overlap, and reach further. Of states the one of this length counts.
        start, end: Tokens, whole rows; those that a query at a length reads.

    Returns:
        [layers][rows][row_bytes].

    Raises:
        InternalError: Not all rows are there, although whoever asks has seen them validated.
    """
    if is_state(group):
        found = [extent for _, stop, extent in parts if stop == end]
        if not found:
            raise InternalError(f"no state of group '{group.id}' stands at {end}")
        return memory.read(found[-1])
    shape, tokens = memory.shape(group.id), int(group.constants.get("row_tokens", 1))
    rows = np.empty((shape.layers, (end - start) // tokens, shape.row_bytes), np.uint8)
    done = start
    for first, stop, extent in parts:
        if not first <= done < min(stop, end):
            continue
        upto = min(stop, end)
        held = np.frombuffer(memory.read(extent), np.uint8).reshape(shape.layers, extent.rows, shape.row_bytes)
        taken = held[:, (done - first) // tokens : (upto - first) // tokens]
        rows[:, (done - start) // tokens : (upto - start) // tokens] = taken
        done = upto
    if done < end:
        raise InternalError(f"rows of group '{group.id}' are missing from {done} to {end}")
    return rows.tobytes()
