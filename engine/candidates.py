"""The lengths that are worth a look: multiples of the hash unit, stored boundaries, ends of segments."""

from __future__ import annotations

from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook

__all__ = ["candidate_lengths"]

MAX_REGULAR = 65_536
"""Most multiples of the hash unit that are proposed, the longest ones; stored boundaries and ends come on top."""


def candidate_lengths(bound: BoundRulebook, state: Resolved) -> list[int]:
    """Candidate lengths in falling order, each from 1 to N - 1 and within what matched.

    Where a group can resume at stored boundaries only, nothing else is proposed; where one resumes at multiples of a
    constant, only those are. What is proposed is still judged by the rules: this list can lose reuse, never soundness.
    """
    top = min(state.request.length - 1, state.matched)
    if top <= 0:
        return []
    stored: set[int] | None = None
    steps: list[int] = []
    for group in bound.groups:
        if not group.rules.mandatory:
            continue
        if group.resumable == "stored":
            marks = {mark for piece in state.pieces.get(group.id, ()) for mark in piece.marks or ()}
            stored = marks if stored is None else stored & marks
        elif group.every is not None:
            steps.append(group.every)
    # A stored boundary is one of the marks, so there is nothing to add to them.
    if stored is None:
        lengths = _proposed(state, top)
    else:
        lengths = sorted((length for length in stored if 0 < length <= top), reverse=True)
    return [length for length in lengths if not any(length % step for step in steps)] if steps else lengths


def _proposed(state: Resolved, top: int) -> list[int]:
    unit = state.request.granularity or 0
    highest = top - top % unit if unit else 0
    regular = range(highest, max(0, highest - MAX_REGULAR * unit), -unit) if unit else range(0)
    odd: set[int] = set()
    for pieces in state.pieces.values():
        for piece in pieces:
            end = piece.end
            if end is not None and (not unit or end % unit) and 0 < end <= top:
                odd.add(end)
            for mark in piece.marks or ():
                if (not unit or mark % unit) and 0 < mark <= top:
                    odd.add(mark)
    return sorted({*regular, *odd}, reverse=True) if odd else list(regular)
