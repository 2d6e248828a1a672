"""How the values of a row are encoded in bytes: number formats, parts of a row, scales, and what rounding costs.

An fp8 value v of a group with scale s stands for v * s. `e8m0` scales are powers of two, one byte each, as OCP
Microscaling (MX) 1.0 has them; `fp32` scales are any number. Rounding is to nearest, ties to even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from hitproof.spec.errors import TensorError

__all__ = [
    "CODES",
    "Part",
    "ROUNDING",
    "Rounding",
    "RowFormat",
    "V32_INDEX_ROW",
    "V4_INDEX_ROW",
    "V4_ROW",
    "check_scale",
    "decode",
    "dtype_of",
    "encode",
    "plain_row",
    "scales_for",
]


@dataclass(frozen=True, slots=True)
class Rounding:
    """What one rounding to a format may change: at most `relative` of the value, or `absolute` where it is tiny.

    Args:
        dtype: The format in torch.
        bytes: Of one value.
        relative: Half a unit in the last place of a normal number, relative to it.
        absolute: Half of the smallest subnormal number, before the scale.
        largest: The largest finite number; what is beyond is held there if the format is fp8, else is infinite.
    """

    dtype: torch.dtype
    bytes: int
    relative: float
    absolute: float
    largest: float


ROUNDING: dict[str, Rounding] = {
    "fp32": Rounding(torch.float32, 4, 2.0**-24, 2.0**-150, 3.4028234663852886e38),
    "bf16": Rounding(torch.bfloat16, 2, 2.0**-8, 2.0**-134, 3.3895313892515355e38),
    "fp16": Rounding(torch.float16, 2, 2.0**-11, 2.0**-25, 65504.0),
    "fp8_e4m3": Rounding(torch.float8_e4m3fn, 1, 2.0**-4, 2.0**-10, 448.0),
    "fp8_e5m2": Rounding(torch.float8_e5m2, 1, 2.0**-3, 2.0**-17, 57344.0),
}
"""By the names that repair declarations use: IEEE 754 binary32 and binary16, bfloat16, and fp8 as in
arXiv 2209.05433."""

CODES: dict[str, int] = {name: code for code, name in enumerate(ROUNDING)}
"""Formats as kernels tell them apart, in `triton_numbers.py`."""


def dtype_of(name: str) -> torch.dtype:
    """The torch type of a format's name.

    Raises:
        TensorError: There is no such format here.
    """
    return _rounding(name).dtype


@dataclass(frozen=True, slots=True)
class Part:
    """So many values of one format in a row."""

    dtype: str
    count: int


@dataclass(frozen=True, slots=True)
class RowFormat:
    """The bytes of one head's row.

    Args:
        parts: Values in the order in which they lie.
        scales: Kind of inline scales of all fp8 values of the row; `none` where they have none or lie elsewhere.
        group: Neighbouring fp8 values that share a scale.
        pad: Bytes at the end that hold nothing; written as zeros.
    """

    parts: tuple[Part, ...]
    scales: Literal["none", "fp32", "e8m0"] = "none"
    group: int = 0
    pad: int = 0

    def __post_init__(self) -> None:
        for part in self.parts:
            _rounding(part.dtype)
        if self.scales != "none" and (self.group < 1 or self.small % self.group):
            raise TensorError(
                "scales need whole groups of fp8 values", got=self.group, expected=f"a part of {self.small}"
            )

    @property
    def values(self) -> int:
        """Values of a row (V)."""
        return sum(part.count for part in self.parts)

    @property
    def small(self) -> int:
        """fp8 values of a row."""
        return sum(part.count for part in self.parts if part.dtype.startswith("fp8"))

    @property
    def scale_count(self) -> int:
        """Inline scales of a row (S)."""
        return 0 if self.scales == "none" else self.small // self.group

    @property
    def cell_bytes(self) -> int:
        """Bytes of a row of one head (C)."""
        own = sum(part.count * _rounding(part.dtype).bytes for part in self.parts)
        return own + self.scale_count * (4 if self.scales == "fp32" else 1) + self.pad


def plain_row(dtype: str, count: int) -> RowFormat:
    """Rows of `count` values of one format, without inline scales."""
    return RowFormat((Part(dtype, count),))


def encode(values: torch.Tensor, form: RowFormat, scale: torch.Tensor | float | None = None) -> torch.Tensor:
    """Values to bytes.

    Args:
        values: Float [..., V].
        form: The row's format.
        scale: Scales that lie elsewhere, positive, broadcast over [..., fp8 values]; for formats without inline
            scales.

    Returns:
        uint8 [..., C].

    Raises:
        TensorError: The row has another number of values, or has scales already.
    """
    check_scale(form, scale)
    if values.shape[-1] != form.values or not values.is_floating_point():
        raise TensorError(
            "the rows have another number of values", got=list(values.shape), expected=f"[..., {form.values}]"
        )
    lead = values.shape[:-1]
    wide = values if values.dtype == torch.float64 else values.to(torch.float32)
    parts = list(wide.split([part.count for part in form.parts], dim=-1))
    small = [i for i, part in enumerate(form.parts) if part.dtype.startswith("fp8")]
    tail: list[torch.Tensor] = []
    if form.scale_count:
        scales = _inline_scales(torch.cat([parts[i] for i in small], dim=-1), form)
        tail.append(_scale_bytes(scales, form))
        scale = scales.repeat_interleave(form.group, dim=-1)
    _rescale(parts, small, scale, torch.div)
    rows = [_as_bytes(_cast(part, spec.dtype)) for part, spec in zip(parts, form.parts, strict=True)]
    return torch.cat([*rows, *tail, values.new_zeros((*lead, form.pad), dtype=torch.uint8)], dim=-1)


def decode(cells: torch.Tensor, form: RowFormat, scale: torch.Tensor | float | None = None) -> torch.Tensor:
    """Bytes to values.

    Args:
        cells: uint8 [..., C].
        form: The row's format.
        scale: As in `encode`.

    Returns:
        float32 [..., V].

    Raises:
        TensorError: The row has another number of bytes, or has scales already.
    """
    check_scale(form, scale)
    if cells.dtype != torch.uint8 or cells.shape[-1] != form.cell_bytes:
        raise TensorError(
            "the rows have another number of bytes",
            got=f"{cells.dtype} {list(cells.shape)}",
            expected=f"torch.uint8 [..., {form.cell_bytes}]",
        )
    sizes = [part.count * _rounding(part.dtype).bytes for part in form.parts]
    *rows, rest = cells.split([*sizes, form.cell_bytes - sum(sizes)], dim=-1)
    parts = [_as_type(row, spec.dtype).to(torch.float32) for row, spec in zip(rows, form.parts, strict=True)]
    small = [i for i, part in enumerate(form.parts) if part.dtype.startswith("fp8")]
    if form.scale_count:
        scale = _read_scales(rest, form).repeat_interleave(form.group, dim=-1)
    _rescale(parts, small, scale, torch.mul)
    return torch.cat(parts, dim=-1)


def scales_for(values: torch.Tensor, dtype: str, over: tuple[int, ...]) -> torch.Tensor:
    """Scales with which the largest value of each slice lands on the format's largest: per tensor, head or row.

    Args:
        values: Float, any shape.
        dtype: The fp8 format.
        over: Dimensions that share a scale; they stay with size 1.

    Returns:
        float32; 1 where all values are zero.
    """
    largest = values.abs().amax(dim=over, keepdim=True).to(torch.float32) / _rounding(dtype).largest
    return torch.where(largest > 0, largest, 1.0)


def _inline_scales(values: torch.Tensor, form: RowFormat) -> torch.Tensor:
    """float32 [..., S]; of parts in several fp8 formats the smallest range decides."""
    limit = min(_rounding(part.dtype).largest for part in form.parts if part.dtype.startswith("fp8"))
    groups = values.unflatten(-1, (form.scale_count, form.group))
    exact = groups.abs().amax(dim=-1).to(torch.float32) / limit
    if form.scales == "fp32":
        return torch.where(exact > 0, exact, 1.0)
    # frexp: exact = m * 2**e with m in [0.5, 1), so 2**e is the next power of two, or twice an exact power.
    mantissa, exponent = torch.frexp(exact)
    exponent = (exponent - (mantissa == 0.5).to(exponent.dtype)).clamp(-127, 127)
    return torch.where(exact > 0, torch.ldexp(torch.ones_like(exact), exponent), 1.0)


def _scale_bytes(scales: torch.Tensor, form: RowFormat) -> torch.Tensor:
    if form.scales == "fp32":
        return _as_bytes(scales)
    return (torch.frexp(scales)[1] - 1 + 127).to(torch.uint8)


def _read_scales(rest: torch.Tensor, form: RowFormat) -> torch.Tensor:
    if form.scales == "fp32":
        return _as_type(rest[..., : 4 * form.scale_count], "fp32")
    exponent = rest[..., : form.scale_count].to(torch.int32) - 127
    return torch.ldexp(torch.ones_like(exponent, dtype=torch.float32), exponent)


def _rescale(parts: list[torch.Tensor], small: list[int], scale: torch.Tensor | float | None, by: object) -> None:
    """Multiply or divide the fp8 parts by their scales, in place of the list."""
    if scale is None or not small:
        return
    counts = [parts[i].shape[-1] for i in small]
    wide = torch.as_tensor(scale, dtype=torch.float32)
    whole = wide if wide.dim() and wide.shape[-1] == sum(counts) else wide.expand(*wide.shape[:-1], sum(counts))
    for i, share in zip(small, whole.split(counts, dim=-1), strict=True):
        parts[i] = by(parts[i], share)  # type: ignore[operator]


def _cast(values: torch.Tensor, dtype: str) -> torch.Tensor:
    rounding = _rounding(dtype)
    if dtype.startswith("fp8"):
        values = values.clamp(-rounding.largest, rounding.largest)
    return values.to(rounding.dtype)


def _as_bytes(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view(torch.uint8)


def _as_type(cells: torch.Tensor, dtype: str) -> torch.Tensor:
    # A copy of its own is aligned for every type, wherever the bytes came from.
    return cells.clone(memory_format=torch.contiguous_format).view(_rounding(dtype).dtype)


def check_scale(form: RowFormat, scale: object) -> None:
    """Scales that lie elsewhere are of a format that has none of its own.

    Raises:
        TensorError: The format has its own, or no fp8 values.
    """
    if scale is not None and (form.scales != "none" or not form.small):
        raise TensorError(
            "the format takes no scales from elsewhere", got=form.scales, expected="fp8 without inline scales"
        )


def _rounding(name: str) -> Rounding:
    try:
        return ROUNDING[name]
    except KeyError:
        raise TensorError("there is no such number format", got=name, expected=", ".join(ROUNDING)) from None


V4_ROW = RowFormat((Part("fp8_e4m3", 448), Part("bf16", 64)), "e8m0", 64, 1)
"""A DeepSeek-V4 row of 584 bytes: 448 fp8 values, 64 rotary bf16 values, 7 scales and a byte that holds nothing."""
V4_INDEX_ROW = RowFormat((Part("fp8_e4m3", 128),), "fp32", 128)
"""An index key of DeepSeek-V4 in fp8, 132 bytes."""
V32_INDEX_ROW = V4_INDEX_ROW
"""An index key of DeepSeek-V3.2, the same."""
