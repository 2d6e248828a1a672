"""Traps of the interpreter are avoided: narrow formats, hashes of 64 bits, and accesses at any byte."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.launching import unit_of  # noqa: E402
from hitproof.kernels.numbers import CODES, ROUNDING, encode, plain_row  # noqa: E402
from tests.kernels.interpreted import decoded, encoded, total  # noqa: E402

_LOW = (0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xF000, 0xFFFF)
"""Lower halves of float32 numbers: ties, their neighbours, and the ends."""


def awkward_numbers() -> Any:
    """Every upper half of a float32 number, with lower halves at and around ties, and with random ones."""
    upper = torch.arange(1 << 16, dtype=torch.int64) << 16
    draw = torch.Generator().manual_seed(4)
    some = [torch.randint(0, 1 << 16, (1 << 16,), generator=draw) for _ in range(2)]
    bits = torch.cat([upper | low for low in (*_LOW, *some)])
    return torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32).view(torch.float32)


def bits_of(cells: Any) -> Any:
    """int64: little-endian numbers of the last dimension's bytes."""
    places = torch.tensor([1 << (8 * byte) for byte in range(cells.shape[-1])])
    return (cells.to(torch.int64) * places).sum(-1)


@pytest.mark.parametrize("dtype", CODES)
def test_rounding_is_that_of_the_reference(dtype: str) -> None:
    """All upper halves at all ties: every bit is that of torch, but for which of its NaNs a NaN becomes."""
    numbers = awkward_numbers()
    got = encoded(numbers, CODES[dtype])
    expected = bits_of(encode(numbers[:, None], plain_row(dtype, 1)))
    no_number = numbers.isnan()
    assert torch.equal(expected[~no_number], got[~no_number])
    assert bool(decoded(got[no_number], CODES[dtype]).isnan().all())


@pytest.mark.parametrize("dtype", [name for name in CODES if name.startswith("fp8")])
def test_fp8_has_one_nan_of_each_sign(dtype: str) -> None:
    """What is no number has torch's bits in fp8 too, the sign included."""
    numbers = awkward_numbers()
    numbers = numbers[numbers.isnan()]
    expected = bits_of(encode(numbers[:, None], plain_row(dtype, 1)))
    assert torch.equal(expected, encoded(numbers, CODES[dtype]))


@pytest.mark.parametrize("dtype", CODES)
def test_every_pattern_is_read_as_it_is(dtype: str) -> None:
    """All patterns of narrow formats, and all upper halves of float32, have the value that torch reads."""
    size = ROUNDING[dtype].bytes
    patterns = torch.arange(1 << (8 * min(size, 2)), dtype=torch.int64) << (16 if size == 4 else 0)
    raw = torch.stack([(patterns >> (8 * byte)) & 255 for byte in range(size)], dim=-1).to(torch.uint8)
    expected = raw.view(ROUNDING[dtype].dtype).flatten().to(torch.float32)
    got = decoded(patterns, CODES[dtype])
    assert torch.equal(expected.isnan(), got.isnan())
    number = ~expected.isnan()
    assert torch.equal(expected[number].view(torch.int32), got[number].view(torch.int32))


def mixed(word: int) -> int:
    """The finaliser over whole numbers, spelled out."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ word >> 33) * factor % 2**64
    return word ^ word >> 33


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=64))
def test_hashes_are_unsigned(pairs: list[tuple[int, int]]) -> None:
    """Shares of words with and without the highest bit, at any position, are those of whole numbers."""
    places, words = (torch.tensor(column, dtype=torch.int64) for column in zip(*pairs, strict=True))
    expected = sum(mixed(word % 2**64 ^ (place + 1) * 0x9E3779B97F4A7C15 % 2**64) for place, word in pairs) % 2**64
    assert expected == total(places, words)


@given(st.lists(st.integers(0, 2**48), max_size=6), st.sampled_from([1, 2, 4, 8]))
def test_an_access_divides_every_number(numbers: list[int], largest: int) -> None:
    """The unit is the largest power of two, up to the bound, of which all numbers are multiples."""
    unit = unit_of(largest, *numbers)
    assert all(number % unit == 0 for number in numbers)
    assert unit == largest or any(number % (2 * unit) for number in numbers)
