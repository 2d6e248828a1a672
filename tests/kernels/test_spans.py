"""Rows by token and by slot: where each lies in its blocks, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from hitproof.kernels.blocks import Geometry, Pool, pool_of  # noqa: E402
from hitproof.kernels.selftest.trial import slow_address  # noqa: E402
from hitproof.kernels.spans import (  # noqa: E402
    Span,
    gather_slots,
    own_blocks,
    read_span,
    ring_span,
    scatter_slots,
    write_span,
)
from hitproof.spec.errors import TensorError  # noqa: E402

POISON = 0xA5


@given(
    rows=st.integers(1, 9),
    heads=st.integers(1, 3),
    layout=st.sampled_from(["token_major", "head_major"]),
    start=st.integers(0, 30),
    first=st.integers(0, 8),
    count=st.integers(0, 20),
    data=st.data(),
)
def test_each_byte_lies_where_its_token_says(
    rows: int, heads: int, layout: Any, start: int, first: int, count: int, data: st.DataObject
) -> None:
    """Rows of some tokens of a span are written to the addresses worked out one by one, and read back; no byte else."""
    first %= rows
    geometry = Geometry(rows, heads, 3, layout=layout, offset=2)
    blocks = -(-(first + count) // rows) + 1
    pool = pool_of(geometry, blocks + 2, poison=POISON, slack=5)
    table = torch.randperm(blocks + 2, generator=torch.Generator().manual_seed(count))[:blocks]
    low = data.draw(st.integers(start, start + count))
    high = data.draw(st.integers(low, start + count))
    cells = torch.arange((high - low) * heads * 3).remainder(160).to(torch.uint8).view(high - low, heads, 3)
    span = Span(pool, table, start, start + count, first)

    write_span(span, low, cells)

    expected = torch.full_like(pool.buffer, POISON)
    for t, token in enumerate(range(low, high)):
        place, row = divmod(first + token - start, rows)
        for head in range(heads):
            for byte in range(3):
                expected[slow_address(geometry, int(table[place]), row, head, byte)] = cells[t, head, byte]
    assert torch.equal(expected, pool.buffer)
    assert torch.equal(cells, read_span(span, low, high))
    slots = torch.arange(first + low - start, first + high - start)
    assert torch.equal(cells, gather_slots(pool, table, slots))
    again = Pool(torch.full_like(pool.buffer, POISON), geometry, pool.blocks)
    scatter_slots(again, table, slots.flip(0), cells.flip(0))
    assert torch.equal(expected, again.buffer)


@given(rows=st.integers(1, 7), blocks=st.integers(1, 5), start=st.integers(0, 60), data=st.data())
def test_a_ring_of_whole_blocks_is_a_span(rows: int, blocks: int, start: int, data: st.DataObject) -> None:
    """Rows that lie at their token modulo the ring's slots are read in the order of tokens."""
    slots = rows * blocks
    end = start + data.draw(st.integers(0, slots))
    pool = pool_of(Geometry(rows, 1, 1), blocks + 1, poison=POISON)
    table = torch.randperm(blocks + 1, generator=torch.Generator().manual_seed(rows))[:blocks]
    tokens = torch.arange(start, end)
    cells = tokens.to(torch.uint8).view(-1, 1, 1)
    scatter_slots(pool, table, tokens % slots, cells)
    assert torch.equal(cells, read_span(ring_span(pool, table, start, end), start, end))
    with pytest.raises(TensorError):
        ring_span(pool, table, start, start + slots + 1)


def test_tokens_beyond_a_span_are_refused() -> None:
    """Neither reading nor writing reaches beyond the span, though the table would have room."""
    span = Span(pool_of(Geometry(4, 1, 2), 3, poison=POISON), torch.tensor([2, 0, 1]), 10, 15)
    rows = torch.zeros((2, 1, 2), dtype=torch.uint8)
    for low, high in ((9, 12), (12, 16), (13, 12)):
        with pytest.raises(TensorError):
            read_span(span, low, high)
    for low in (9, 14):
        with pytest.raises(TensorError):
            write_span(span, low, rows)
    assert bool((span.pool.buffer == POISON).all())
    with pytest.raises(TensorError):
        Span(span.pool, span.table, 5, 4)


@pytest.mark.parametrize("slots", [[0, 8], [-1, 3], [3, 3]])
def test_slots_that_are_not_there_are_not_written(slots: list[int]) -> None:
    """A slot beyond the table, before it, or named twice is refused, and nothing is written."""
    pool = pool_of(Geometry(4, 1, 2), 3, poison=POISON)
    with pytest.raises(TensorError):
        scatter_slots(pool, torch.tensor([2, 0]), torch.tensor(slots), torch.zeros((2, 1, 2), dtype=torch.uint8))
    with pytest.raises(TensorError):
        scatter_slots(pool, torch.tensor([2, 2]), torch.tensor([0, 4]), torch.zeros((2, 1, 2), dtype=torch.uint8))
    assert bool((pool.buffer == POISON).all())
    with pytest.raises(TensorError):
        gather_slots(pool, torch.tensor([2, 0]), torch.tensor([0], dtype=torch.int32))


def test_a_copy_shares_no_byte_with_its_source() -> None:
    """Blocks of one buffer are apart where their bytes are, whatever their geometry; other buffers always are."""
    buffer = torch.zeros(200, dtype=torch.uint8)
    source = Pool(buffer, Geometry(4, 1, 5), 5)
    target = Pool(buffer, Geometry(3, 1, 5, offset=7), 5)
    # Block 1 of the source is bytes [20, 40), block b of the target [7 + 15 b, 22 + 15 b).
    held = torch.tensor([1])
    for block in (0, 1, 2):
        with pytest.raises(TensorError, match="lies over"):
            own_blocks(target, torch.tensor([block]), 3, source, held)
    assert [3] == own_blocks(target, torch.tensor([3]), 3, source, held)
    apart = Pool(torch.zeros(200, dtype=torch.uint8), target.geometry, 5)
    assert [1] == own_blocks(apart, torch.tensor([1]), 3, source, held)
