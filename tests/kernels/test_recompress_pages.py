"""Entries, index keys and states in DeepSeek-V4's pages: read back within rounding, and no byte written besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hitproof.kernels.blocks import Geometry, Pool, pool_of  # noqa: E402
from hitproof.kernels.numbers import ROUNDING, V4_INDEX_ROW, V4_ROW, RowFormat  # noqa: E402
from hitproof.kernels.recompress import live_rows, recompress, state_from_rows  # noqa: E402
from hitproof.kernels.recompress.pages import (  # noqa: E402
    read_rows,
    read_state,
    state_format,
    state_rows,
    write_rows,
    write_state,
)
from hitproof.kernels.recompress.slow import drawn_compressor, drawn_rows  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402

POISON = 0xA5
MAIN = Geometry(64, 1, 584, block_bytes=37_440, offset=7)
HEAVY = Geometry(2, 1, 584, block_bytes=1_728, offset=1)
INDEX = Geometry(64, 1, 132, block_bytes=8_640)
CSA_STATE = Geometry(4, 1, 8_192, block_bytes=32_832, offset=3)
INDEX_STATE = Geometry(4, 1, 2_048, block_bytes=8_640)
HCA_STATE = Geometry(8, 1, 4_096, block_bytes=32_832)


def changed_bytes(pool: Pool) -> set[int]:
    """Every byte of the buffer that may have been written: those that differ from the poison."""
    return set(torch.nonzero(pool.buffer != POISON).flatten().tolist())


def bytes_of_rows(geometry: Geometry, table: list[int], rows: range) -> set[int]:
    """Where rows of a segment lie, from the buffer's start, in whole numbers."""
    found: set[int] = set()
    for row in rows:
        at = geometry.offset + table[row // geometry.rows] * geometry.stride + row % geometry.rows * geometry.pitch
        found |= set(range(at, at + geometry.cell_bytes))
    return found


def allowed(exact: Any, form: RowFormat) -> Any:
    """What one rounding to the row's formats may change; the scale of a group may be up to twice the exact one."""
    small = exact[:, : form.small].unflatten(-1, (-1, form.group))
    eight, sixteen = ROUNDING["fp8_e4m3"], ROUNDING["bf16"]
    scale = 2 * small.abs().amax(-1, keepdim=True) / eight.largest
    first = (small.abs() * eight.relative * 1.001 + scale * eight.absolute).flatten(-2)
    return torch.cat([first, exact[:, form.small :].abs() * sixteen.relative * 1.001], dim=-1)


@pytest.mark.parametrize(
    ("ratio", "size", "geometry", "form", "entries"),
    [(4, 512, MAIN, V4_ROW, 100), (128, 512, HEAVY, V4_ROW, 5), (4, 128, INDEX, V4_INDEX_ROW, 130)],
    ids=["ratio 4", "ratio 128", "index keys"],
)
def test_rows_come_back_within_rounding(
    ratio: int, size: int, geometry: Geometry, form: RowFormat, entries: int
) -> None:
    """Written in two runs through a table in no order, rows come back off by one rounding; nothing else is written."""
    compressor = drawn_compressor(ratio, size, 64, overlap=ratio == 4)
    values, gates = drawn_rows(entries * ratio + 1, compressor)
    cut = entries * ratio // 3
    half = recompress(values[:cut], gates[:cut], compressor)
    rest = recompress(values[cut:], gates[cut:], compressor, half.state)
    exact = torch.cat([half.entries, rest.entries])
    assert entries == exact.shape[0]
    table = [3, 1, 4, 0]
    pool = pool_of(geometry, 5, poison=POISON, slack=64)
    for made in (rest, half):
        write_rows(pool, torch.tensor(table), made.entries, form, made.first)
    got = read_rows(pool, torch.tensor(table), entries, form)
    assert bool(((got - exact).abs() <= allowed(exact, form)).all())
    assert bool((got != exact).any())
    assert changed_bytes(pool) <= bytes_of_rows(geometry, table, range(entries))
    some = read_rows(pool, torch.tensor(table), 2, form, entries - 2)
    assert torch.equal(got[-2:], some)


@pytest.mark.parametrize("length", [0, 3, 4, 21, 23, 128, 200, 255])
@pytest.mark.parametrize(
    ("ratio", "size", "geometry"),
    [(4, 512, CSA_STATE), (4, 128, INDEX_STATE), (128, 512, HCA_STATE)],
    ids=["ratio 4", "index", "ratio 128"],
)
def test_states_resume_from_their_pages(ratio: int, size: int, geometry: Geometry, length: int) -> None:
    """A state read back is the one that was written, to the bit, and the tokens after it make the same entries."""
    compressor = drawn_compressor(ratio, size, 64, overlap=ratio == 4)
    assert geometry.cell_bytes == state_format(compressor).cell_bytes
    values, gates = drawn_rows(length + ratio, compressor)
    state = state_from_rows(values[:length], gates[:length], compressor)
    blocks = -(-state_rows(compressor) // geometry.rows)
    table = torch.arange(blocks, 0, -1)
    pool = pool_of(geometry, blocks + 1, poison=POISON, slack=64)
    write_state(pool, table, state, compressor)
    assert changed_bytes(pool) <= bytes_of_rows(geometry, table.tolist(), range(state_rows(compressor)))
    stored = read_rows(pool, table, state_rows(compressor), state_format(compressor))
    live = live_rows(length, ratio, ratio == 4)
    assert bool((stored[live:, compressor.width :] == -torch.inf).all())
    assert bool((stored[live:, : compressor.width] == 0).all())
    # What lies behind the live rows is nobody's business.
    write_rows(pool, table, torch.full_like(stored[live:], torch.nan), state_format(compressor), live)
    back = read_state(pool, table, length, compressor)
    assert (length, live) == (back.length, back.values.shape[0])
    assert torch.equal(state.values, back.values)
    assert torch.equal(state.scores, back.scores)
    expected = recompress(values, gates, compressor).entries[length // ratio :]
    made = recompress(values[length:], gates[length:], compressor, back).entries
    torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("ratio", "overlap", "expected"), [(4, True, 7), (128, False, 127), (1, False, 0)])
def test_a_stored_state_has_room_for_the_most_live_rows(ratio: int, overlap: bool, expected: int) -> None:
    """No length has more live rows than a stored state, and one length has as many."""
    compressor = drawn_compressor(ratio, 8, 2, overlap)
    assert expected == state_rows(compressor)
    assert expected == max(live_rows(length, ratio, overlap) for length in range(4 * ratio))


def test_pages_lie_behind_two_gibibytes() -> None:
    """The place of a page far back in a large pool is a 64-bit number, worked out without allocating the pool."""
    block = 3_000_000_000 // 37_440
    assert 7 + block * 37_440 + 63 * 584 == int(MAIN.address(block, 63))
    assert int(MAIN.address(torch.tensor(2**20), torch.tensor(5))) == 7 + 2**20 * 37_440 + 5 * 584 > 2**31


@pytest.mark.parametrize(
    "call",
    [
        lambda pool, table, c: write_rows(pool, table, torch.zeros(2, 3, 512), V4_ROW),
        lambda pool, table, c: write_rows(pool, table, torch.zeros(2, 512), V4_ROW, -1),
        lambda pool, table, c: write_rows(pool, table, torch.zeros(2, 512), V4_ROW, 65),
        lambda pool, table, c: write_state(pool, table, recompress(*drawn_rows(5, c), c).state, c),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_a_byte_is_written(call: Callable[..., None]) -> None:
    """Other shapes, rows before the segment or beyond its table are errors, and the pool stays as it was."""
    pool = pool_of(MAIN, 2, poison=POISON)
    with pytest.raises(TensorError):
        call(pool, torch.tensor([1]), drawn_compressor(4, 512, 64, overlap=True))
    assert not changed_bytes(pool)


def test_a_state_of_many_layers_is_refused() -> None:
    """Pages hold one layer and sequence each."""
    compressor = drawn_compressor(4, 512, 64, overlap=True)
    values, gates = (rows.unflatten(0, (2, 5)) for rows in drawn_rows(10, compressor))
    with pytest.raises(TensorError):
        write_state(pool_of(CSA_STATE, 3), torch.arange(3), state_from_rows(values, gates, compressor), compressor)
