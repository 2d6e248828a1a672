"""The lengths that are worth a look: multiples of the hash unit, stored boundaries, ends of segments."""

from __future__ import annotations

from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook

__all__ = ["candidate_lengths"]


def candidate_lengths(bound: BoundRulebook, state: Resolved) -> list[int]:
    """Candidate lengths in falling order, each from 1 to N - 1 and within what matched.

    Where a group can resume at stored boundaries only, nothing else is proposed; where one resumes at multiples of a
    constant, only those are. What is proposed is still judged by the rules: this list can lose reuse, never soundness.
    """
    top = min(state.request.length - 1, state.matched)
    if top <= 0:
        return []
    unit = state.request.granularity
    lengths = set(range(unit, top + 1, unit)) if unit else set()
    for group in bound.groups:
        for piece in state.pieces.get(group.id, ()):
            if piece.marks:
                lengths.update(mark for mark in piece.marks if 0 < mark <= top)
            if piece.end is not None and 0 < piece.end <= top:
                lengths.add(piece.end)
    for group in bound.groups:
        if not group.rules.mandatory:
            continue
        if group.resumable == "stored":
            stored: set[int] = set()
            for piece in state.pieces.get(group.id, ()):
                stored.update(piece.marks or ())
            lengths &= stored
        elif group.every is not None:
            lengths = {length for length in lengths if length % group.every == 0}
    return sorted(lengths, reverse=True)
