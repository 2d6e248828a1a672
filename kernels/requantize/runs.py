"""Two row formats laid side by side: runs of values that have one format in each, which a kernel takes in one go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hitproof.kernels.numbers import ROUNDING, RowFormat
from hitproof.spec.errors import TensorError

__all__ = ["Run", "Side", "kind_of", "limit_of", "runs_of", "scales_at"]

_KINDS = {"none": 0, "fp32": 2, "e8m0": 3}
_APART = 1


@dataclass(frozen=True, slots=True)
class Side:
    """Where a run lies in one of the two formats.

    Args:
        dtype: Its number format.
        byte: Where it begins in a cell.
        small: Number of the fp8 values before it in the row.
    """

    dtype: str
    byte: int
    small: int


@dataclass(frozen=True, slots=True)
class Run:
    """Values that follow one another and have one format in the source and one in the target."""

    read: Side
    write: Side
    values: int


def runs_of(read: RowFormat, write: RowFormat) -> list[Run]:
    """The runs of all values of a row, in order.

    Raises:
        TensorError: A group of the target with an inline scale would be of two runs.
    """
    ours, theirs = list(_sides(read)), list(_sides(write))
    found: list[Run] = []
    begin = 0
    while begin < read.values:
        (first, side_in, end_in), (second, side_out, end_out) = (_at(begin, one) for one in (ours, theirs))
        end = min(end_in, end_out)
        run = Run(_further(side_in, begin - first), _further(side_out, begin - second), end - begin)
        if (
            run.write.dtype.startswith("fp8")
            and write.scale_count
            and (run.values % write.group or run.write.small % write.group)
        ):
            raise TensorError(
                "the kernel makes scales of groups within one run",
                got=f"{run.values} values from fp8 value {run.write.small} on",
                expected=f"whole groups of {write.group}",
            )
        found.append(run)
        begin = end
    return found


def kind_of(side: Side, form: RowFormat, apart: bool) -> int:
    """Kind of a run's scales as the kernel tells them: 0 none, 1 apart, 2 inline float32, 3 inline e8m0."""
    if not side.dtype.startswith("fp8"):
        return 0
    return _APART if apart else _KINDS[form.scales]


def scales_at(form: RowFormat) -> int:
    """Byte of a cell at which inline scales begin."""
    return sum(part.count * ROUNDING[part.dtype].bytes for part in form.parts)


def limit_of(form: RowFormat) -> float:
    """Largest number of a row's fp8 formats, of several the smallest range; 1 where it has none."""
    return min((ROUNDING[part.dtype].largest for part in form.parts if part.dtype.startswith("fp8")), default=1.0)


def _sides(form: RowFormat) -> Iterator[tuple[int, Side, int]]:
    """First value of each part, its place, and one past its last value."""
    value = byte = small = 0
    for part in form.parts:
        yield value, Side(part.dtype, byte, small), value + part.count
        value += part.count
        byte += part.count * ROUNDING[part.dtype].bytes
        small += part.count if part.dtype.startswith("fp8") else 0


def _at(value: int, sides: list[tuple[int, Side, int]]) -> tuple[int, Side, int]:
    return next(one for one in sides if one[0] <= value < one[2])


def _further(side: Side, values: int) -> Side:
    small = side.small + (values if side.dtype.startswith("fp8") else 0)
    return Side(side.dtype, side.byte + values * ROUNDING[side.dtype].bytes, small)
