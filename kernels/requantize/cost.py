"""Bytes of `requantize`."""

from __future__ import annotations

from hitproof.kernels.checksum.cost import measuring
from hitproof.kernels.configs import INTERPRET
from hitproof.kernels.jobs import Job
from hitproof.kernels.numbers import ROUNDING, RowFormat
from hitproof.kernels.requantize.launch import WIDEST
from hitproof.kernels.requantize.runs import Run, kind_of, runs_of
from hitproof.kernels.traffic import Traffic, row_bytes
from hitproof.spec.repair import RepairRequest

__all__ = ["traffic"]

_INLINE = {2: 4, 3: 1}
"""Bytes of an inline scale, by its kind."""


def traffic(request: RepairRequest, job: Job, target: str = INTERPRET) -> Traffic:
    """Every value is read once and written once; the copy is read once more to be measured.

    Each row of a program asks for two numbers of blocks, and for its scale.
    """
    held, copy = job.row_by_row()
    rows = sum(held.count * pool.geometry.heads for pool in held.layers)
    read = written = 0
    for number, run in enumerate(runs_of(held.form, copy.form)):
        kind_in = kind_of(run.read, held.form, held.scale is not None)
        kind_out = kind_of(run.write, copy.form, copy.scale is not None)
        width = _width(run, held.form, copy.form, (kind_in, kind_out))
        programs = -(-run.values // width)
        one = kind_in in _INLINE and held.form.group % width == 0 and run.read.small % width == 0
        read += 16 * programs + run.values * ROUNDING[run.read.dtype].bytes
        read += _INLINE.get(kind_in, 4) * (0 if kind_in == 0 else programs if one else run.values)
        read += 4 * run.values if kind_out == 1 else 0
        written += run.values * ROUNDING[run.write.dtype].bytes + _INLINE.get(kind_out, 0) * programs
        written += 0 if number else copy.form.pad
    again = measuring(copy, target)
    least = row_bytes(held) - rows * held.form.pad + row_bytes(copy)
    return Traffic(read=rows * read + again.read, written=rows * written, least=least)


def _width(run: Run, read: RowFormat, write: RowFormat, kinds: tuple[int, int]) -> int:
    """Values of a program's rows: a group where the values have inline scales."""
    groups = [form.group for form, kind in ((write, kinds[1]), (read, kinds[0])) if kind in _INLINE]
    return groups[0] if groups else min(run.values, WIDEST)
