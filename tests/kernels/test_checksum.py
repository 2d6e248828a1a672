"""The fingerprint is that of the rows alone, and sees what goes wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.blocks import Geometry, Layout, gather, pool_of, scatter  # noqa: E402
from hitproof.kernels.checksum import fingerprint, finish, partial  # noqa: E402
from hitproof.kernels.selftest.slow import slow_fingerprint  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402


@st.composite
def some_rows(draw: st.DrawFn, largest: int = 12) -> Any:
    """Rows of bytes, of any small shape."""
    shape = draw(st.tuples(st.integers(1, largest), st.integers(1, 3), st.integers(1, 19)))
    seed = draw(st.integers(0, 2**32 - 1))
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


@given(some_rows())
def test_equals_the_formula_in_whole_numbers(rows: Any) -> None:
    """The vectorised sum is the one that plain loops over Python's whole numbers give."""
    assert slow_fingerprint([rows]) == fingerprint(rows)


def test_known_values() -> None:
    """Values that were written down once stay; a kernel on another machine must give the same."""
    rows = (torch.arange(5 * 2 * 13) % 251).to(torch.uint8).reshape(5, 2, 13)
    assert KNOWN == [fingerprint(rows), fingerprint(rows[:0]), fingerprint(torch.zeros((1, 1, 8), dtype=torch.uint8))]


KNOWN = ["3050a67f9a682bf0", "9ca066f1a4ab2eea", "499173a6ad6dc7ff"]


@given(some_rows(), st.data())
def test_any_flipped_bit_is_seen(rows: Any, data: st.DataObject) -> None:
    """Each bit of each byte changes the fingerprint."""
    place = data.draw(st.integers(0, rows.numel() - 1))
    other = rows.clone()
    other.view(-1)[place] ^= 1 << data.draw(st.integers(0, 7))
    assert fingerprint(rows) != fingerprint(other)


@given(some_rows(), st.data())
def test_any_two_words_that_trade_places_are_seen(rows: Any, data: st.DataObject) -> None:
    """Two different words of eight bytes in each other's place give another fingerprint."""
    words = torch.nn.functional.pad(rows, (0, -rows.shape[2] % 8)).contiguous()
    flat = words.view(-1, 8)
    one, two = (data.draw(st.integers(0, flat.shape[0] - 1)) for _ in range(2))
    assume(not torch.equal(flat[one], flat[two]))
    other = flat.clone()
    other[[one, two]] = flat[[two, one]]
    assert fingerprint(words) != fingerprint(other.view_as(words))


@given(some_rows(), st.data())
def test_rows_out_of_order_are_seen(rows: Any, data: st.DataObject) -> None:
    """Rows in another order, shifted rows and heads that trade places give another fingerprint."""
    order = data.draw(st.permutations(range(rows.shape[0])))
    for other in (rows[list(order)], rows.roll(1, 0), rows.roll(1, 1)):
        assert torch.equal(rows, other) == (fingerprint(rows) == fingerprint(other))


@given(some_rows(), st.data())
def test_torn_tails_are_seen(rows: Any, data: st.DataObject) -> None:
    """Rows that are missing, zeroed or left as they were from some byte on give another fingerprint."""
    cut = data.draw(st.integers(0, rows.numel() - 1))
    assert fingerprint(rows) != fingerprint(rows[:-1])
    for filling in (0, 0xA5):
        torn = rows.clone()
        torn.view(-1)[cut:] = filling
        assert torch.equal(rows, torn) == (fingerprint(rows) == fingerprint(torn))


@given(some_rows())
def test_trailing_zeros_are_not_nothing(rows: Any) -> None:
    """Rows that end in zeros are others than rows without these bytes."""
    assert fingerprint(rows) != fingerprint(torch.nn.functional.pad(rows, (0, 1)))
    assert fingerprint(rows) != fingerprint(torch.cat([rows, torch.zeros_like(rows[:1])]))


@given(some_rows(), st.randoms(use_true_random=False))
def test_parts_add_up_in_any_order(rows: Any, random: Any) -> None:
    """Shares of single rows and of parts of their heads, added in any order, give the whole."""
    count, heads, _ = rows.shape
    shares = [
        partial(rows[t : t + 1, h : h + 1], first=t, head=h, heads=heads) for t in range(count) for h in range(heads)
    ]
    random.shuffle(shares)
    assert fingerprint(rows) == finish(sum(shares), rows.numel())


def test_slabs_join_without_a_seam() -> None:
    """More words than one slab holds give the sum of two halves."""
    rows = torch.randint(0, 256, (3000, 2, 100), dtype=torch.uint8)
    halves = partial(rows[:1700]) + partial(rows[1700:], first=1700)
    assert fingerprint(rows) == finish(halves, rows.numel())


@given(some_rows(), st.integers(1, 5), st.integers(0, 7), st.integers(0, 5))
def test_place_and_layout_do_not_matter(rows: Any, size: int, offset: int, gap: int) -> None:
    """Whatever the block size, the order, the pitch and the first byte, rows that are read have one fingerprint."""
    count, heads, cell = rows.shape
    blocks = -(-count // size)
    orders: tuple[tuple[Layout, int], ...] = (("token_major", heads * cell), ("head_major", cell))
    for layout, least in orders:
        pool = pool_of(Geometry(size, heads, cell, layout, pitch=least + gap, offset=offset), blocks, poison=0xA5)
        table = torch.arange(blocks - 1, -1, -1)
        scatter(pool, table, rows)
        assert fingerprint(rows) == fingerprint(gather(pool, table, count))


def test_other_tensors_are_refused() -> None:
    """Only rows of bytes have a fingerprint."""
    for wrong in (torch.zeros(3, 4, dtype=torch.uint8), torch.zeros((1, 1, 8))):
        with pytest.raises(TensorError):
            fingerprint(wrong)
