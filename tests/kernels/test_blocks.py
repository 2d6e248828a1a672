"""Rows are read from and written to exactly the bytes that the geometry says."""

from __future__ import annotations

import mmap
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.blocks import Geometry, Pool, gather, pool_of, scatter  # noqa: E402
from hitproof.kernels.selftest.trial import slow_address  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.kernels.geometries import geometries  # noqa: E402


@given(geometries(), st.integers(1, 20), st.integers(0, 5), st.randoms(use_true_random=False))
def test_exactly_the_rows_are_written(geometry: Geometry, count: int, first: int, random: Any) -> None:
    """Each byte of each row lands where a spelled-out formula says, and every other byte keeps its poison."""
    first %= geometry.rows
    needed = -(-(first + count) // geometry.rows)
    pool = pool_of(geometry, needed + 2, poison=0xA5, slack=11)
    table = torch.tensor(random.sample(range(needed + 2), needed), dtype=torch.int64)
    rows = torch.tensor([random.randrange(256) for _ in range(count * geometry.heads * geometry.cell_bytes)])
    rows = rows.to(torch.uint8).reshape(count, geometry.heads, geometry.cell_bytes)
    want = pool.buffer.clone()
    for row in range(count):
        block = int(table[(first + row) // geometry.rows])
        for head in range(geometry.heads):
            for byte in range(geometry.cell_bytes):
                place = slow_address(geometry, block, (first + row) % geometry.rows, head, byte)
                want[place] = rows[row, head, byte]
    scatter(pool, table, rows, first)
    assert torch.equal(want, pool.buffer)
    assert torch.equal(rows, gather(pool, table, count, first))


@given(geometries())
def test_extent_is_the_last_byte(geometry: Geometry) -> None:
    """A buffer of the extent holds all blocks, and one that is a byte shorter does not."""
    size = geometry.extent(3)
    Pool(torch.zeros(size, dtype=torch.uint8), geometry, 3)
    with pytest.raises(TensorError):
        Pool(torch.zeros(size - 1, dtype=torch.uint8), geometry, 3)


def test_addresses_are_64_bit() -> None:
    """The formula counts beyond 2**31 and 2**32 bytes, for tables of numbers too."""
    geometry = Geometry(64, 1, 584, block_bytes=37_440, offset=3)
    block, row = 1_000_000, 63
    assert 3 + block * 37_440 + row * 584 == int(geometry.address(block, row))
    many = geometry.address(torch.tensor([0, block]), torch.tensor([0, row]))
    assert torch.int64 == many.dtype
    assert [3, 3 + block * 37_440 + row * 584] == many.tolist()


def test_rows_beyond_two_and_four_gigabytes() -> None:
    """Rows are written and read at more than 2**32 bytes, in memory of which only the touched pages exist."""
    geometry = Geometry(64, 1, 584, block_bytes=37_440)
    blocks = (5 << 30) // 37_440
    size = geometry.extent(blocks)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
    pool = Pool(torch.frombuffer(memory, dtype=torch.uint8), geometry, blocks)
    table = torch.tensor([blocks - 1, (1 << 31) // 37_440 + 1], dtype=torch.int64)
    rows = torch.randint(0, 256, (100, 1, 584), dtype=torch.uint8)
    scatter(pool, table, rows)
    assert torch.equal(rows, gather(pool, table, 100))
    place = (blocks - 1) * 37_440 + 63 * 584
    assert place > 2**32
    assert bytes(rows[63, 0].tolist()) == memory[place : place + 584]


@pytest.mark.parametrize(
    ("table", "count", "first"),
    [([0, 1], 33, 0), ([0, 3], 20, 0), ([-1, 0], 20, 0), ([0, 1], 16, 17), ([0, 0], 20, 0), ([0, 1], 32, 1)],
    ids=["too short", "no such block", "negative", "begins beyond", "twice", "too short from inside"],
)
def test_bad_tables_write_nothing(table: list[int], count: int, first: int) -> None:
    """A table that does not fit is refused before a byte is written."""
    pool = pool_of(Geometry(16, 2, 8), 3, poison=0xA5)
    with pytest.raises(TensorError):
        scatter(pool, torch.tensor(table), torch.zeros((count, 2, 8), dtype=torch.uint8), first)
    assert bool((pool.buffer == 0xA5).all())


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"pitch": 15},
        {"block_bytes": 255},
        {"stride": 255},
        {"offset": -1},
        {"layout": "value_major", "item_bytes": 3},
        {"layout": "value_major", "pitch": 17},
    ],
    ids=str,
)
def test_bad_geometries_are_refused(wrong: dict[str, Any]) -> None:
    """Rows that overlap one another, and blocks that do, are refused."""
    with pytest.raises(TensorError):
        Geometry(**{"rows": 16, "heads": 2, "cell_bytes": 8, **wrong})


@pytest.mark.parametrize(
    "buffer",
    [
        torch.zeros(512, dtype=torch.int8),
        torch.zeros((2, 256), dtype=torch.uint8),
        torch.zeros(1024, dtype=torch.uint8)[::2],
    ],
    ids=["signed", "two rows", "strided"],
)
def test_bad_buffers_are_refused(buffer: Any) -> None:
    """A pool lies in one contiguous row of unsigned bytes."""
    with pytest.raises(TensorError):
        Pool(buffer, Geometry(16, 2, 8), 2)


def test_bad_types_are_refused() -> None:
    """Tables of 32 bits and rows of another shape or type are refused."""
    pool = pool_of(Geometry(16, 2, 8), 3)
    rows = torch.zeros((16, 2, 8), dtype=torch.uint8)
    with pytest.raises(TensorError):
        gather(pool, torch.zeros(1, dtype=torch.int32), 16)
    for wrong in (rows.to(torch.int8), rows[:, :1], rows[..., :7]):
        with pytest.raises(TensorError):
            scatter(pool, torch.zeros(1, dtype=torch.int64), wrong)
