"""Numbers are encoded as their formats say, and rounding stays within the one table of tolerances."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.numbers import (  # noqa: E402
    ROUNDING,
    V4_INDEX_ROW,
    V4_ROW,
    Part,
    RowFormat,
    decode,
    encode,
    plain_row,
    scales_for,
)
from hitproof.spec.errors import TensorError  # noqa: E402

FORMATS = {"fp32": (8, 23), "bf16": (8, 7), "fp16": (5, 10), "fp8_e4m3": (4, 3), "fp8_e5m2": (5, 2)}
"""Bits of exponent and mantissa."""


def slow_value(code: int, dtype: str) -> float:
    """What a bit pattern stands for, from sign, exponent and mantissa."""
    exponent_bits, mantissa_bits = FORMATS[dtype]
    bias = 2 ** (exponent_bits - 1) - 1
    sign = -1 if code >> (exponent_bits + mantissa_bits) else 1
    exponent = code >> mantissa_bits & (2**exponent_bits - 1)
    mantissa = code & (2**mantissa_bits - 1)
    if dtype == "fp8_e4m3":
        if code & 0x7F == 0x7F:
            return math.nan
    elif exponent == 2**exponent_bits - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return math.ldexp(sign * mantissa, 1 - bias - mantissa_bits)
    return math.ldexp(sign * (1 + mantissa / 2**mantissa_bits), exponent - bias)


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def test_every_code_means_what_its_bits_say(dtype: str) -> None:
    """All bit patterns of the small formats decode to the value that sign, exponent and mantissa give."""
    size = ROUNDING[dtype].bytes
    codes = range(256**size)
    cells = torch.tensor(list(b"".join(code.to_bytes(size, "little") for code in codes)), dtype=torch.uint8)
    got = decode(cells, plain_row(dtype, 256**size)).tolist()
    wrong = [
        code
        for code, value in zip(codes, got, strict=True)
        if value != (want := slow_value(code, dtype)) and not (math.isnan(value) and math.isnan(want))
    ]
    assert [] == wrong


@pytest.mark.parametrize("dtype", FORMATS)
@given(st.lists(st.floats(-60000, 60000, width=32), min_size=1, max_size=40))
def test_one_rounding_stays_within_the_table(dtype: str, numbers: list[float]) -> None:
    """A value that is encoded and decoded is off by no more than its format's rounding, or at the format's end."""
    rounding = ROUNDING[dtype]
    form = plain_row(dtype, len(numbers))
    exact = torch.tensor(numbers, dtype=torch.float32)
    got = decode(encode(exact, form), form).double()
    want = exact.double().clamp(-rounding.largest, rounding.largest)
    assert bool(((got - want).abs() <= rounding.relative * want.abs() + rounding.absolute).all())


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_table_is_tight(dtype: str) -> None:
    """Half-way between two numbers the whole tolerance is used, for normal numbers and for subnormal ones."""
    exponent_bits, mantissa_bits = FORMATS[dtype]
    rounding = ROUNDING[dtype]
    assert 2.0 ** -(mantissa_bits + 1) == rounding.relative
    assert 2.0 ** (2 - 2 ** (exponent_bits - 1) - mantissa_bits) / 2 == rounding.absolute


@given(st.integers(0, 2**32 - 1))
def test_a_row_of_v4_is_read_as_its_parts(seed: int) -> None:
    """A row of 584 bytes: fp8 values with a power of two for each 64, then bf16 values, scales, a zero byte."""
    values = torch.randn((2, 512), generator=torch.Generator().manual_seed(seed)) * 3
    cells = encode(values, V4_ROW)
    assert (2, 584) == tuple(cells.shape)
    row = cells[1].tolist()
    want = []
    for i in range(448):
        want.append(slow_value(row[i], "fp8_e4m3") * 2.0 ** (row[576 + i // 64] - 127))
    want += [slow_value(int.from_bytes(row[448 + 2 * i : 450 + 2 * i], "little"), "bf16") for i in range(64)]
    assert want == decode(cells, V4_ROW)[1].tolist()
    assert 0 == row[583]


@given(st.integers(0, 2**32 - 1), st.sampled_from([(V4_ROW, 448), (V4_INDEX_ROW, 128)]))
def test_inline_scales_use_the_range(seed: int, of: tuple[RowFormat, int]) -> None:
    """The largest value of a group lands in the upper half of the format's range, and nothing is cut off."""
    form, small = of
    values = torch.randn((3, form.values), generator=torch.Generator().manual_seed(seed)) * 10
    scales = decode_scales(encode(values, form), form)
    largest = values[:, :small].unflatten(-1, (-1, form.group)).abs().amax(-1) / scales
    assert bool((largest <= 448 * (1 + 2.0**-22)).all())
    assert bool((largest > 223.9).all())


def decode_scales(cells: Any, form: RowFormat) -> Any:
    """The scales of rows, read by hand."""
    found = []
    for row in cells.tolist():
        tail = row[form.cell_bytes - form.pad - form.scale_count * (4 if form.scales == "fp32" else 1) :]
        if form.scales == "fp32":
            found.append([struct.unpack("<f", bytes(tail[4 * i : 4 * i + 4]))[0] for i in range(form.scale_count)])
        else:
            found.append([2.0 ** (tail[i] - 127) for i in range(form.scale_count)])
    return torch.tensor(found)


def test_a_scale_that_is_a_power_of_two_stays() -> None:
    """Where the exact scale is a power of two, no factor of two is given away."""
    values = torch.zeros(1, 512)
    values[0, ::64] = 448 * 4
    assert 129 == int(encode(values, V4_ROW)[0, 576])


def test_zeros_and_ends() -> None:
    """Rows of zeros stay zeros, what is too large is held at the end of fp8, and what is no number stays none."""
    assert not bool(decode(encode(torch.zeros(2, 512), V4_ROW), V4_ROW).any())
    form = plain_row("fp8_e4m3", 3)
    got = decode(encode(torch.tensor([1e9, -1e9, math.nan]), form), form).tolist()
    assert [448.0, -448.0] == got[:2]
    assert math.isnan(got[2])


@pytest.mark.parametrize("over", [(0, 1, 2), (0, 2), (2,)], ids=["tensor", "head", "row"])
def test_scales_apart_are_used_both_ways(over: tuple[int, ...]) -> None:
    """Scales a tensor, a head and a row come back within one rounding of the scaled value."""
    values = torch.randn((9, 3, 64), generator=torch.Generator().manual_seed(1)) * 100
    scale = scales_for(values, "fp8_e4m3", over)
    form = plain_row("fp8_e4m3", 64)
    off = (decode(encode(values, form, scale), form, scale) - values).abs()
    rounding = ROUNDING["fp8_e4m3"]
    assert bool((off <= rounding.relative * 1.001 * values.abs() + rounding.absolute * 1.001 * scale).all())


@pytest.mark.parametrize("dtype", FORMATS)
def test_strided_and_shifted_bytes_are_read(dtype: str) -> None:
    """Bytes at an odd place, and with gaps, decode to the same values."""
    form = plain_row(dtype, 8)
    cells = encode(torch.randn(5, 8), form)
    wide = torch.full((5, form.cell_bytes + 7), 0xA5, dtype=torch.uint8)
    wide[:, 3 : 3 + form.cell_bytes] = cells
    assert torch.equal(decode(cells, form), decode(wide[:, 3 : 3 + form.cell_bytes], form))


def test_what_does_not_fit_is_refused() -> None:
    """Unknown formats, ragged groups, wrong lengths and double scales are errors of input."""
    for wrong in (
        lambda: plain_row("fp4", 8),
        lambda: RowFormat((Part("fp8_e4m3", 100),), "e8m0", 64),
        lambda: encode(torch.zeros(3, 5), plain_row("bf16", 4)),
        lambda: encode(torch.zeros(3, 4, dtype=torch.int32), plain_row("bf16", 4)),
        lambda: decode(torch.zeros(3, 7, dtype=torch.uint8), plain_row("bf16", 4)),
        lambda: encode(torch.zeros(3, 512), V4_ROW, 2.0),
        lambda: decode(torch.zeros(3, 8, dtype=torch.uint8), plain_row("bf16", 4), 2.0),
    ):
        with pytest.raises(TensorError):
            wrong()
