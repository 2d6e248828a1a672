"""Steps that kernels share which make rows: scales, and numbers at any byte, to the bit."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from hitproof.kernels.numbers import CODES, Part, RowFormat, decode, dtype_of, encode, plain_row  # noqa: E402
from hitproof.kernels.rotary import Rotary  # noqa: E402
from hitproof.kernels.row_constants import covers, form_constants, set_constants  # noqa: E402
from hitproof.kernels.triton_rows import load_numbers, scale_of  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402


@triton.jit  # type: ignore[untyped-decorator]
def scales_kernel(  # type: ignore[no-untyped-def]
    largest, scales, codes, count, LIMIT: tl.constexpr, SCALES: tl.constexpr, BLOCK: tl.constexpr
):
    """Scale and byte of each group's largest number."""
    at = tl.arange(0, BLOCK)
    scale, code = scale_of(tl.load(largest + at, mask=at < count, other=0.0), LIMIT, SCALES)
    tl.store(scales + at, scale, mask=at < count)
    tl.store(codes + at, code.to(tl.int64), mask=at < count)


@triton.jit  # type: ignore[untyped-decorator]
def numbers_kernel(  # type: ignore[no-untyped-def]
    start, step, values, count, CODE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):
    """Numbers that lie a step apart."""
    at = tl.arange(0, BLOCK)
    tl.store(values + at, load_numbers(start, at * step, at < count, CODE, ALIGNED), mask=at < count)


def awkward_sizes() -> Any:
    """Exact powers of two behind the division, their neighbours, subnormal scales, zero, and the largest numbers."""
    exact = torch.exp2(torch.arange(-148, 120).float())
    around = [exact, exact * 448, exact * 57344, torch.randn(300, generator=torch.Generator().manual_seed(0)).abs()]
    sizes = torch.cat([*around, torch.tensor([0.0, 1e-45, 3.4e38, 2.0**127])])
    every = torch.cat(
        [sizes, torch.nextafter(sizes, torch.tensor(torch.inf)), torch.nextafter(sizes, torch.tensor(0.0))]
    )
    return every[every.isfinite()]


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("kind", ["e8m0", "fp32"])
def test_scales_are_those_of_the_reference(kind: Any, dtype: str) -> None:
    """For a row of one number, scale and stored byte are what `encode` writes, to the bit."""
    form = RowFormat((Part(dtype, 1),), kind, 1)
    sizes = awkward_sizes()
    stored = encode(sizes[:, None], form)[:, 1:]
    expected = stored.contiguous().view(torch.float32)[:, 0] if kind == "fp32" else stored[:, 0]
    limit, scales = form_constants(form)[7], form_constants(form)[5]
    made, codes = torch.empty(sizes.numel()), torch.empty(sizes.numel(), dtype=torch.int64)
    scales_kernel[(1,)](sizes, made, codes, sizes.numel(), LIMIT=limit, SCALES=scales, BLOCK=4096)
    if kind == "fp32":
        assert torch.equal(expected, made)
    else:
        assert torch.equal(expected.long(), codes)
        assert torch.equal(torch.exp2(codes.double() - 127).float(), made)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_numbers_are_read_at_any_byte(dtype: str, shift: int) -> None:
    """All bit patterns of 16-bit formats, and some of float32, whole or byte by byte; what is masked is zero."""
    size = 4 if dtype == "fp32" else 2
    patterns = torch.arange(1 << 16, dtype=torch.int32)
    cells = patterns.to(torch.int16).view(torch.uint8) if size == 2 else (patterns * 65521).view(torch.uint8)
    buffer = torch.cat([torch.full((shift,), 0xA5, dtype=torch.uint8), cells])
    expected = decode(cells.view(1, -1), plain_row(dtype, 1 << 16))[0]
    for aligned in (False, True) if shift % size == 0 else (False,):
        values = torch.full((1 << 16,), -1.0)
        step = 1 if aligned else size
        numbers_kernel[(1,)](buffer[shift:], step, values, 65_000, CODE=CODES[dtype], ALIGNED=aligned, BLOCK=1 << 16)
        same = (values == expected) | (values.isnan() & expected.isnan())
        assert bool(same[:65_000].all())
        assert bool((values[65_000:] == -1).all())
    assert dtype_of(dtype).itemsize == size


@pytest.mark.parametrize("place", ["leading", "trailing"])
@pytest.mark.parametrize(("size", "turning"), [(20, 8), (20, 20), (20, 0)])
@pytest.mark.parametrize("covered", [0, 3, 8, 12, 17, 20])
def test_covered_columns_are_those_below(covered: int, size: int, turning: int, place: Any) -> None:
    """How a norm covers the columns that stay and those that turn, against each column by itself."""
    rotary = Rotary(torch.zeros(turning // 2), place=place) if turning else None
    first = size - turning if place == "trailing" else 0
    turn = set(range(first, first + turning))
    of_sets = covers(size, covered, rotary)
    assert covered == of_sets[0]
    for columns, told in ((set(range(size)) - turn, of_sets[1]), (turn, of_sets[2])):
        below = {column for column in columns if column < covered}
        if columns:
            assert told == (2 if below == columns and covered else 1 if below else 0)
    constants = set_constants(size, rotary)
    assert (constants["STILL"] > 1, constants["PAIRS"] > 1) == (size > turning, turning > 0)


def test_rows_that_kernels_cannot_write_are_refused() -> None:
    """More than two parts, and scales of a part that is not the first."""
    three = RowFormat((Part("bf16", 2), Part("fp16", 2), Part("fp32", 2)))
    second = RowFormat((Part("bf16", 2), Part("fp8_e4m3", 4)), "e8m0", 4)
    for form in (three, second):
        with pytest.raises(TensorError, match="kernels write"):
            form_constants(form)
