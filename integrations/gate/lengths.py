"""The longest whole number of units at which nothing fails: what reads bad blocks is passed over, the rest judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hitproof.engine import Engine, Resolved
from hitproof.engine.compile import CompiledGroup
from hitproof.spec.bound import BoundGroup

__all__ = ["longest_clean", "promising"]

Spans = list[tuple[int, int]]


def longest_clean(engine: Engine, state: Resolved, good: Mapping[str, Sequence[Any]]) -> int:
    """The longest length at which every group passes all its checks as it is; 0 where there is none.

    Args:
        engine: Rules and model.
        state: The look-up; its request tells the unit, and `matched` is a multiple of it.
        good: By group of the profile, the segments that fail no check of their own.
    """
    empties = engine.judge.nothing()
    unit = state.request.granularity
    for length in promising(engine, range(state.matched, 0, -unit), good):
        outcome = engine.judge.outcome(state, empties, length, full=False)
        if outcome.clean and not outcome.steps:
            return length
    return 0


def promising(engine: Engine, lengths: Sequence[int], good: Mapping[str, Sequence[Any]]) -> Iterator[int]:
    """The lengths at which each group's good segments hold what it reads.

    What a length reads is the rulebook's `needs`. A recurrent state is read where one ends. Passing over a length can
    lose reuse and never soundness, for what is left is judged by all rules.
    """
    asks = [
        _holder(engine.judge.groups[place], group, good[group.id])
        for place, group in enumerate(engine.bound.groups)
        if group.id in good and group.rules.mandatory
    ]
    return (length for length in lengths if all(ask(length) for ask in asks))


def _holder(compiled: CompiledGroup, group: BoundGroup, good: Sequence[Any]) -> Callable[[int], bool]:
    if group.rules.pieces == "point":
        if group.resumable != "stored":
            return lambda length: True
        marks = {mark for facts in good for mark in facts.marks or ()}
        idle = compiled.idle or (lambda length: False)
        return lambda length: length in marks or idle(length)
    span, covered = compiled.span, _joined(good)

    def holds(length: int) -> bool:
        first, to = span(length)
        return first >= to or any(start <= first and to <= end for start, end in covered)

    return holds


def _joined(good: Sequence[Any]) -> Spans:
    """Spans of segments, joined where one begins at the end of another."""
    spans: Spans = []
    for facts in good:
        if spans and spans[-1][1] >= facts.start:
            spans[-1] = spans[-1][0], max(spans[-1][1], facts.end)
        else:
            spans.append((facts.start, facts.end))
    return spans
