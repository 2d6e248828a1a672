"""What a replay counts while it runs: sums over bins of arrival time, and how deep hits go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["HitLengths", "MAX_BINS", "PARTS", "TimeBins", "Timeline", "WIDTHS_MS"]

PARTS = ("touched", "logical", "effective", "recovered", "recomputed")
"""What is counted of blocks and of tokens; the last three sum to the second."""

MAX_BINS = 100
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
WIDTHS_MS = (
    *(1, 2, 10, 20, 100, 200),
    *(count * _SECOND for count in (1, 2, 10, 30)),
    *(count * _MINUTE for count in (1, 2, 10, 30)),
    *(count * _HOUR for count in (1, 2, 6, 12)),
    *(count * _DAY for count in (1, 2, 10, 50, 100, 500, 1_000, 5_000)),
)
"""Widths that a bin can have, each a multiple of the one before; beyond the last one they double."""

Row = tuple[int, int, int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Sums by arrival time; bins without a request are left out.

    Attributes:
        width_ms: Width of every bin, in milliseconds.
        start_ms: Start of each bin, rising, in milliseconds of the trace's clock.
        requests: Requests that arrived in each bin.
        blocks, tokens: Each of `PARTS` to its sum in each bin.
    """

    width_ms: int
    start_ms: tuple[int, ...]
    requests: tuple[int, ...]
    blocks: Mapping[str, tuple[int, ...]]
    tokens: Mapping[str, tuple[int, ...]]

    def as_dict(self) -> dict[str, object]:
        """The figures as plain data."""
        return {
            "width_ms": self.width_ms,
            "start_ms": list(self.start_ms),
            "requests": list(self.requests),
            "blocks": {part: list(sums) for part, sums in self.blocks.items()},
            "tokens": {part: list(sums) for part, sums in self.tokens.items()},
        }


@dataclass(slots=True)
class TimeBins:
    """The bins while a replay runs; they widen where the requests would span more than `MAX_BINS` of them.

    A bin is a list of nine sums: requests, then touched, logical, effective and recovered in blocks, then the same
    in tokens.
    """

    width_ms: int = WIDTHS_MS[0]
    _bins: dict[int, list[int]] = field(default_factory=dict)

    def at(self, time_ms: int) -> list[int]:
        """The bin of an arrival, to be added to; may widen all bins."""
        found = self._bins.get(time_ms // self.width_ms)
        return self._new(time_ms) if found is None else found

    def totals(self) -> list[int]:
        """The nine sums over all bins."""
        return [sum(column) for column in zip(*self._bins.values(), strict=True)] or [0] * 9

    def timeline(self) -> Timeline:
        """What the bins hold now."""
        places = sorted(self._bins)
        columns = list(zip(*(self._bins[place] for place in places), strict=True)) or [()] * 9
        return Timeline(
            self.width_ms,
            tuple(place * self.width_ms for place in places),
            tuple(columns[0]),
            _named(columns[1:5]),
            _named(columns[5:9]),
        )

    def _new(self, time_ms: int) -> list[int]:
        while True:
            place = time_ms // self.width_ms
            places = (*self._bins, place)
            if max(places) - min(places) < MAX_BINS:
                return self._bins.setdefault(place, [0] * 9)
            self._widen()

    def _widen(self) -> None:
        width = next((width for width in WIDTHS_MS if width > self.width_ms), 2 * self.width_ms)
        factor = width // self.width_ms
        wide: dict[int, list[int]] = {}
        for place, sums in self._bins.items():
            into = wide.setdefault(place // factor, [0] * 9)
            for column, value in enumerate(sums):
                into[column] += value
        self.width_ms, self._bins = width, wide


@dataclass(slots=True)
class HitLengths:
    """How many requests matched, and could reuse, how many tokens; counted by the bits of the length.

    Lengths of `n` bits are those from `2 ** (n - 1)` to `2 ** n - 1`; no bit is the length 0.
    """

    logical: dict[int, int] = field(default_factory=dict)
    usable: dict[int, int] = field(default_factory=dict)

    def count(self, logical: int, usable: int) -> None:
        """Adds one request; changes the counts."""
        bits = logical.bit_length()
        self.logical[bits] = self.logical.get(bits, 0) + 1
        bits = usable.bit_length()
        self.usable[bits] = self.usable.get(bits, 0) + 1

    def as_dict(self) -> dict[str, list[int]]:
        """Least tokens of each bin, and requests in it; the length 0 first, then each bin up to the longest."""
        found = {*self.logical, *self.usable} - {0}
        bits = [0, *range(min(found), max(found) + 1)] if found else [0]
        return {
            "from_tokens": [1 << one >> 1 for one in bits],
            "logical": [self.logical.get(one, 0) for one in bits],
            "usable": [self.usable.get(one, 0) for one in bits],
        }


def _named(columns: list[tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    _, logical, effective, recovered = columns
    rest = tuple(known - whole - mended for known, whole, mended in zip(logical, effective, recovered, strict=True))
    return dict(zip(PARTS, (*columns, rest), strict=True))
