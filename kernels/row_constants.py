"""Compile-time constants of kernels that make rows: a row's format, the sets of its numbers, how numbers are read."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import Pool
from hitproof.kernels.launching import unit_of
from hitproof.kernels.norms import Norm
from hitproof.kernels.numbers import CODES, ROUNDING, RowFormat
from hitproof.kernels.rotary import Rotary, turns
from hitproof.spec.errors import TensorError

__all__ = [
    "Reading",
    "cell_steps",
    "covers",
    "form_constants",
    "gain_of",
    "reading_of",
    "set_constants",
    "turns_on",
    "unit_for",
]

_SCALES = {"none": 0, "fp32": 1, "e8m0": 2}
_LEAST_WIDTH = 16
"""Columns of a set, at the least: matrix units take no fewer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How plain numbers are read from blocks.

    Args:
        start: uint8: first byte of block 0.
        steps: From a block, row and number to the next: in numbers if aligned, else in bytes.
        code: Of the format, by `CODES`.
        aligned: Whether every number lies at a multiple of its size.
    """

    start: torch.Tensor
    steps: tuple[int, int, int]
    code: int
    aligned: bool


def reading_of(pool: Pool, form: RowFormat) -> Reading:
    """Rows of one head and one plain format.

    Raises:
        TensorError: The rows have several parts, fp8 values or several heads, or their values are cut apart.
    """
    geometry = pool.geometry
    if len(form.parts) != 1 or form.small or form.pad or geometry.heads != 1:
        raise TensorError(
            "kernels read rows of one head and one plain format",
            got=f"{geometry.heads} heads of {form.parts}",
            expected="bf16, fp16 or fp32",
        )
    size = ROUNDING[form.parts[0].dtype].bytes
    start = pool.buffer[geometry.offset :]
    by_block, by_row, _, by_value = cell_steps(pool, form)
    aligned = unit_of(size, start.data_ptr(), by_block, by_row, by_value) == size
    by = size if aligned else 1
    return Reading(start, (by_block // by, by_row // by, by_value // by), CODES[form.parts[0].dtype], aligned)


def cell_steps(pool: Pool, form: RowFormat) -> tuple[int, int, int, int]:
    """Bytes from a block, row, head and number of the first part to the next.

    Raises:
        TensorError: The rows have another size, or values by head are not the numbers of a plain format.
    """
    geometry = pool.geometry
    size = ROUNDING[form.parts[0].dtype].bytes
    if geometry.cell_bytes != form.cell_bytes:
        raise TensorError(
            "the rows do not fit the pool", got=f"{geometry.cell_bytes} bytes", expected=f"{form.cell_bytes}"
        )
    by_block, by_row, by_head, by_value, _ = geometry.steps
    if geometry.layout != "value_major":
        return by_block, by_row, by_head, size
    if geometry.item_bytes != size or form.cell_bytes != size * form.values:
        raise TensorError(
            "values by head are cut where no number ends", got=f"{geometry.item_bytes} bytes", expected=f"{size}"
        )
    return by_block, by_row, by_head, by_value


def form_constants(form: RowFormat) -> tuple[int | float, ...]:
    """What `triton_rows.store_rows` must know of a format.

    Returns:
        Numbers, code and bytes of the first part; code and bytes of the rest; kind of scales, how many numbers share
        one, and the largest number; the bytes at which scales and padding begin, and how much padding there is.

    Raises:
        TensorError: More than two parts, or scales of another part than the first.
    """
    first, *rest = form.parts
    small_first = first.dtype.startswith("fp8")
    if len(rest) > 1 or (form.scale_count and form.small != (first.count if small_first else 0)):
        raise TensorError("kernels write rows of one part, or of two of which the first has the scales", got=form.parts)
    sizes = [ROUNDING[part.dtype].bytes for part in form.parts]
    scales_at = sum(part.count * size for part, size in zip(form.parts, sizes, strict=True))
    limit = ROUNDING[first.dtype].largest if small_first else 1.0
    behind = (CODES[rest[0].dtype], sizes[1]) if rest else (0, 0)
    scaling = (_SCALES[form.scales], form.group or 1, limit)
    return (
        first.count,
        CODES[first.dtype],
        sizes[0],
        *behind,
        *scaling,
        scales_at,
        form.cell_bytes - form.pad,
        form.pad,
    )


def unit_for(start: torch.Tensor, steps: tuple[int, int, int, int], form: RowFormat) -> int:
    """Bytes that one store of a number may take, up to 4, wherever in a pool the number lies.

    Args:
        start: First byte of block 0.
        steps: As `cell_steps` gives them.
        form: The rows' format.
    """
    first, *rest = form.parts
    size = ROUNDING[first.dtype].bytes
    inside = [first.count * size] if rest else []
    if form.scales == "fp32":
        inside.append(form.cell_bytes - form.pad - 4 * form.scale_count)
    # A number's own size bounds what one store takes, so steps by numbers count only where numbers lie apart.
    apart = [steps[3]] if steps[3] != size else []
    return unit_of(4, start.data_ptr(), *steps[:3], *inside, *apart)


def set_constants(size: int, rotary: Rotary | None) -> dict[str, int]:
    """How the numbers of a row are cut into those that stay and those that turn in pairs.

    Args:
        size: Numbers of a head's row (D).
        rotary: None where none turns.
    """
    turning = 0 if rotary is None else rotary.size
    return {
        "SIZE": size,
        "TURNING": turning,
        "TRAILING": int(rotary is not None and rotary.place == "trailing"),
        "READ_APART": int(rotary is not None and rotary.pairing == "half"),
        "WRITE_APART": int(rotary is not None and rotary.pairing != "interleaved"),
        "STILL": _width(size - turning),
        "PAIRS": _width(turning // 2),
    }


def covers(size: int, covered: int, rotary: Rotary | None) -> tuple[int, int, int]:
    """How many leading columns a norm covers; and of the columns that stay, and that turn, whether none (0) of them is
    among these, some (1), or all (2)."""
    turning = 0 if rotary is None else rotary.size
    first = size - turning if rotary is not None and rotary.place == "trailing" else 0
    turn = (first, first + turning)
    still = (0, size - turning) if first else (turning, size)
    of_still, of_pairs = (0 if covered <= low else 2 if covered >= high else 1 for low, high in (still, turn))
    return covered, of_still, of_pairs


def gain_of(norm: Norm | None, device: torch.device) -> torch.Tensor:
    """float32 [N]: what a norm multiplies by, rounded as `norms.normed` rounds it; empty where it has no weight."""
    if norm is None or norm.weight is None:
        return torch.empty(0, dtype=torch.float32, device=device)
    return (1.0 + norm.weight if norm.plus_one else norm.weight).to(device, torch.float32).contiguous()


def turns_on(device: torch.device, positions: torch.Tensor, rotary: Rotary) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines as `rotary.turns` makes them, on a device; positions may lie elsewhere."""
    cosines, sines = turns(positions.to(rotary.frequencies.device), rotary)
    return cosines.to(device), sines.to(device)


def _width(columns: int) -> int:
    """The power of two that holds so many columns; 1 where there is none."""
    return max(_LEAST_WIDTH, 1 << (columns - 1).bit_length()) if columns else 1
