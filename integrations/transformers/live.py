"""A live cache made of nothing but what a hold reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hitproof.engine.cache import Hold
from hitproof.engine.compile import CompiledGroup
from hitproof.integrations.transformers.rows import assembled
from hitproof.integrations.transformers.state import StateMap
from hitproof.spec.memory import Memory

__all__ = ["installed"]


def installed(state: StateMap, memory: Memory, groups: Iterable[CompiledGroup], hold: Hold) -> Any:
    """Copy the rows that a hold leads to into a live cache, which then stands behind what is reused.

    Nothing is to be computed on it before the hold is confirmed: only that says that what was copied is what was
    checked.

    Args:
        state: Which tensors are which group's rows.
        memory: The bytes.
        groups: All groups of the model.
        hold: Open.

    Raises:
        NotHeldError: The hold lacks rows that its length reads.
    """
    cache, length = state.fresh(), hold.usable
    if not length:
        return cache
    for group in groups:
        table = hold.tables.get(group.id, ())
        if table and not (group.idle is not None and group.idle(length)):
            start, end = group.span(length)
            parts = [(held.facts.start, held.facts.end, held.extent) for held in table]
            state.install(cache, group.id, start, end, assembled(memory, group.bound, parts, start, end))
    return state.finish(cache, length)
