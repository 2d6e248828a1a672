"""Which segments a length asks, and for which tokens each one answers."""

from __future__ import annotations

from typing import Any

from hitproof.engine.plain.repairs import Env
from hitproof.engine.state import FAR, Resolved
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import Ref, interpret, reads

__all__ = ["needed_span", "pieces_at"]


def pieces_at(group: BoundGroup, state: Resolved, length: int) -> list[tuple[int, Env, tuple[int, int]]]:
    """The segments that a length asks, each with the tokens it answers for.

    Of a point object it is the first that reaches the length, else the last. Of a span object they form a chain over
    what is needed: each answers from where the one before ended, the first for all before and the last for all behind.
    """
    held = [(index, piece.as_dict()) for index, piece in enumerate(state.pieces.get(group.id, ()))]
    chain = held
    if group.rules.pieces == "point":
        reaching = [one for one in held if one[1]["end"] is not None and one[1]["end"] >= length]
        chain = reaching[:1] or held[-1:]
    elif len(held) > 1:
        first, to = needed_span(group, length)
        chain = [one for one in held if _overlaps(one[1], first, to)]
    if not chain:
        return [(-1, _nothing_held(group, state), (0, FAR))]
    ends: list[Any] = [segment["end"] for _, segment in chain[:-1]]
    shares = zip([0, *ends], [*ends, FAR], strict=True)
    return [(index, segment, share) for (index, segment), share in zip(chain, shares, strict=True)]


def needed_span(group: BoundGroup, length: int) -> tuple[int, int]:
    """Tokens `[first, to)` that a length reads of the whole group."""
    return interpret(group.raw_first, {"length": length}), interpret(group.raw_to, {"length": length})


def _overlaps(segment: Env, first: int, to: int) -> bool:
    start, end = segment["start"], segment["end"]
    return isinstance(start, int) and isinstance(end, int) and start < to and end > first


def _nothing_held(group: BoundGroup, state: Resolved) -> Env:
    """A discarded record under the request's own identity."""
    asked = {path for check in group.checks if check.layer == "identity" for path in reads(check.require)}
    identity = {
        fact: getattr(state.request, value.path.removeprefix("request."))
        for fact, value in group.healthy.items()
        if isinstance(value, Ref) and value.path.startswith("request.") and f"self.{fact}" in asked
    }
    nowhere: Env = {
        "form": "discarded",
        "tier": "nowhere",
        "bound_for": "nowhere",
        "marks": frozenset(),
        "published": False,
    }
    zero: Env = dict.fromkeys(("generation", "pins", "epoch", "start", "end"), 0)
    return {**nowhere, **zero, "matched": state.matched, **identity}
