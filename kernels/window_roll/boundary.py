"""The boundary record of a sliding window, spelled out: which positions the query at a length reads."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.spec.errors import TensorError

__all__ = ["Boundary", "members"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """How the edge of a window is drawn (article 3.3).

    The window counts positions, not rows: what is left out inside it does not make it reach further back.

    Args:
        length: L, tokens before the query.
        window: W, the query included; W - 1 older positions are inside.
        separators: Positions of special separators.
        separators_inside: Whether the window includes separators; then one belongs to it even in a skipped region, and
            otherwise none ever does.
        skipped: Regions [from, to) that the window passes over, since their compressed entries stand for them.
        chunk: History restarts at its multiples; 0 where it does not.
        version: The identity of the record, which a ring that follows it takes on; None where nobody asks.
    """

    length: int
    window: int
    separators: tuple[int, ...] = ()
    separators_inside: bool = True
    skipped: tuple[tuple[int, int], ...] = ()
    chunk: int = 0
    version: str | None = None

    def __post_init__(self) -> None:
        if self.length < 0 or self.window < 1 or self.chunk < 0:
            raise TensorError(
                "length, window and chunk are counts of tokens",
                got=f"{self.length}, {self.window}, {self.chunk}",
                expected="0 or more, 1 or more, 0 or more",
            )
        for first, to in self.skipped:
            if first > to:
                raise TensorError("a skipped region ends before it begins", got=f"[{first}, {to})")

    @property
    def first(self) -> int:
        """The oldest position inside, whatever is left out."""
        restart = self.length // self.chunk * self.chunk if self.chunk else 0
        return max(restart, self.length - self.window + 1)


def members(boundary: Boundary) -> torch.Tensor:
    """int64 [M]: the positions that belong to the window, ascending."""
    inside = torch.arange(boundary.first, boundary.length, dtype=torch.int64)
    skipped = torch.zeros(inside.shape, dtype=torch.bool)
    for first, to in boundary.skipped:
        skipped |= (first <= inside) & (inside < to)
    special = torch.isin(inside, torch.tensor(boundary.separators, dtype=torch.int64))
    return inside[torch.where(special, boundary.separators_inside, ~skipped)]
