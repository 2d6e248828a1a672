"""The lengths that are worth a look: multiples of the hash unit, stored boundaries, ends of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from hitproof.engine.compile import CompiledGroup
from hitproof.engine.state import Resolved

__all__ = ["proposed_lengths", "resumable_lengths"]

MAX_REGULAR = 65_536
"""Most multiples of the hash unit that are proposed, the longest ones; stored boundaries and ends come on top."""


def proposed_lengths(state: Resolved) -> list[int]:
    """Candidate lengths in falling order, each from 1 to N - 1 and within what matched.

    What is proposed is still judged by the rules: this list can lose reuse, never soundness.
    """
    top = min(state.request.length - 1, state.matched)
    return _proposed(state, top) if top > 0 else []


def resumable_lengths(groups: Iterable[CompiledGroup], state: Resolved, proposed: list[int]) -> list[int]:
    """Those of the proposed lengths at which every group may resume at all.

    Where a group resumes at stored boundaries only, nothing else is left; where one resumes at multiples of a constant,
    only those are; but at a length at which nothing of a group is read, it may resume anyhow. The rules would refuse
    the others too, at a higher price.
    """
    stored: set[int] | None = None
    steps: list[int] = []
    loose: list[Callable[[int], bool]] = []
    for group in groups:
        every = group.bound.every
        if group.mandatory and group.bound.resumable == "stored":
            marks = {mark for piece in state.pieces.get(group.id, ()) for mark in piece.marks or ()}
            if group.idle is not None:
                loose.append(_either(marks.__contains__, group.idle))
            else:
                stored = marks if stored is None else stored & marks
        elif group.mandatory and every is not None:
            if group.idle is not None:
                loose.append(_either(partial(_divides, every), group.idle))
            else:
                steps.append(every)
    # A stored boundary is one of the marks, so it was proposed.
    if stored is not None:
        top = proposed[0] if proposed else 0
        proposed = sorted((length for length in stored if 0 < length <= top), reverse=True)
    if steps:
        proposed = [length for length in proposed if not any(length % step for step in steps)]
    return [length for length in proposed if all(may(length) for may in loose)] if loose else proposed


def _either(one: Callable[[int], bool], other: Callable[[int], bool]) -> Callable[[int], bool]:
    return lambda length: one(length) or other(length)


def _divides(step: int, length: int) -> bool:
    return length % step == 0


def _proposed(state: Resolved, top: int) -> list[int]:
    unit = state.request.granularity or 0
    highest = top - top % unit if unit else 0
    lowest = max(0, highest - MAX_REGULAR * unit)
    regular = range(highest, lowest, -unit) if unit else range(0)
    odd: set[int] = set()
    for pieces in state.pieces.values():
        for piece in pieces:
            end = piece.end
            if end is not None and (not unit or end % unit or end <= lowest) and 0 < end <= top:
                odd.add(end)
            for mark in piece.marks or ():
                if (not unit or mark % unit or mark <= lowest) and 0 < mark <= top:
                    odd.add(mark)
    return sorted({*regular, *odd}, reverse=True) if odd else list(regular)
