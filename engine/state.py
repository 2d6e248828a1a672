"""What a lookup resolves to: the segments of every group on the path of one request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hitproof.spec.bound import BoundGroup
from hitproof.spec.facts import Value

__all__ = ["FAR", "Resolved", "select_pieces"]

FAR = 2**40
"""End of the share of the last piece: beyond every length."""


@dataclass(slots=True)
class Resolved:
    """The state that one decision reads.

    Args:
        request: Request facts.
        runtime: Run-time facts.
        kernels: Kernel contract of each group.
        pieces: Segments of each group in token order; a group may have none.
        matched: Leading tokens on which the deepest known node and the request agree.
        barred: By group and index of the piece, -1 where nothing is held: recovery levels that are not tried on it,
            because a repair of that level failed before.
    """

    request: Any
    runtime: Any
    kernels: Mapping[str, Any]
    pieces: Mapping[str, Sequence[Any]]
    matched: int
    barred: Mapping[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    def environment(self, paths: Iterable[str] | None = None) -> dict[str, Value]:
        """Request and run-time facts by path, as conditions read them; all, or those of the paths."""
        if paths is None:
            return {**self.request.as_dict("request."), **self.runtime.as_dict("runtime.")}
        of = {"request": self.request, "runtime": self.runtime}
        found = ((path, *path.split(".", 1)) for path in paths)
        return {path: getattr(of[scope], name) for path, scope, name in found}


def select_pieces(
    group: BoundGroup, pieces: Sequence[Any], length: int, first: int, to: int
) -> list[tuple[int, Any, int, int]]:
    """The pieces that a length reads, each with its share `[first, to)` of the tokens needed.

    A span object's pieces form a chain: each one answers from where the one before it ended. The first also answers
    for what lies before it and the last for what lies behind, so a gap fails a check and is never skipped. Of a point
    object the piece that spans the length is asked. Where nothing fits, the piece is None, with index -1.

    Args:
        group: The group.
        pieces: Its segments in token order.
        length: Candidate length.
        first, to: Tokens needed at that length by the whole group.

    Returns:
        (index, segment, share first, share to) for each.
    """
    if group.rules.pieces == "point":
        for index, piece in enumerate(pieces):
            if piece.end is not None and piece.end >= length:
                return [(index, piece, 0, FAR)]
        return [(len(pieces) - 1, pieces[-1], 0, FAR)] if pieces else [(-1, None, 0, FAR)]
    if len(pieces) == 1:
        return [(0, pieces[0], 0, FAR)]
    touched = [
        (index, piece)
        for index, piece in enumerate(pieces)
        if piece.start is not None and piece.end is not None and piece.start < to and piece.end > first
    ]
    if not touched:
        return [(-1, None, 0, FAR)]
    chain = []
    start = 0
    for place, (index, piece) in enumerate(touched):
        stop = FAR if place == len(touched) - 1 else piece.end
        chain.append((index, piece, start, stop))
        start = stop
    return chain
