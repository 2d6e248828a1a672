"""Rows that are fetched, moved or converted are the same rows, whatever the geometries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.kernels.blocks import Geometry, gather, pool_of, scatter  # noqa: E402
from hitproof.kernels.checksum import fingerprint, finish  # noqa: E402
from hitproof.kernels.numbers import decode, encode, plain_row  # noqa: E402
from hitproof.kernels.promote import promote  # noqa: E402
from hitproof.kernels.relayout import relayout  # noqa: E402
from hitproof.kernels.requantize import requantize, static_scales  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.kernels.geometries import geometries  # noqa: E402


def poisoned(geometry: Geometry, count: int, first: int, random: Any) -> tuple[Any, Any]:
    """A poisoned pool with room to spare, and a table of its blocks in no order."""
    needed = -(-(first + count) // geometry.rows)
    pool = pool_of(geometry, needed + 2, poison=0xA5, slack=9)
    return pool, torch.tensor(random.sample(range(needed + 2), needed), dtype=torch.int64)


def filled(geometry: Geometry, count: int, first: int, random: Any) -> tuple[Any, Any, Any]:
    """The same with rows in it, and the rows."""
    pool, table = poisoned(geometry, count, first, random)
    draw = torch.Generator().manual_seed(random.randrange(2**31))
    shape = (count, geometry.heads, geometry.cell_bytes)
    rows = torch.randint(0, 256, shape, dtype=torch.uint8, generator=draw)
    scatter(pool, table, rows, first)
    return pool, table, rows


@given(geometries(), geometries(), st.integers(1, 15), st.integers(0, 5), st.randoms(use_true_random=False))
def test_relayout_keeps_rows_and_clears_the_rest(
    ours: Geometry, theirs: Geometry, count: int, first: int, random: Any
) -> None:
    """Between any two geometries; blocks of the copy hold its rows and zeros, and other blocks what they held."""
    source_of: dict[str, Any] = {
        "heads": theirs.heads,
        "cell_bytes": theirs.cell_bytes,
        "pitch": 0,
        "block_bytes": 0,
        "stride": 0,
    }
    ours = replace(ours, **source_of, item_bytes=theirs.item_bytes)
    first %= theirs.rows
    source, held, rows = filled(theirs, count, first, random)
    target, table = poisoned(ours, count, 0, random)
    before = source.buffer.clone()
    relayout(source, held, target, table, count, source_first=first)
    assert torch.equal(before, source.buffer)
    assert torch.equal(rows, gather(target, table, count))
    used = table[: -(-count // ours.rows)].tolist()
    left = sum(int(target.owned[block].count_nonzero()) for block in used) - int(rows.count_nonzero())
    assert 0 == left
    others = [block for block in range(target.blocks) if block not in used]
    assert bool((target.owned[others] == 0xA5).all())


@given(geometries(), st.integers(1, 15), st.integers(0, 5), st.integers(0, 9), st.randoms(use_true_random=False))
def test_promote_measures_what_it_writes(geometry: Geometry, count: int, first: int, shift: int, random: Any) -> None:
    """From any byte; the sum is that of the rows, and a bit that is flipped in staging gives another."""
    first %= geometry.rows
    shifted = replace(geometry, offset=geometry.offset + shift, stride=geometry.stride + shift)
    staging, staged, rows = filled(shifted, count, first, random)
    target, table = poisoned(geometry, count, first, random)
    total = promote(staging, staged, target, table, count, first=first)
    assert fingerprint(rows) == finish(total, rows.numel())
    assert torch.equal(rows, gather(target, table, count, first))
    row, byte = random.randrange(count), random.randrange(geometry.cell_bytes)
    spoiled = rows.clone()
    spoiled[row, 0, byte] ^= 1 << random.randrange(8)
    scatter(staging, staged, spoiled, first)
    again = promote(staging, staged, target, table, count, first=first)
    assert fingerprint(rows) != finish(again, rows.numel())


@given(geometries(), st.integers(1, 15), st.randoms(use_true_random=False))
def test_promoted_parts_add_up(geometry: Geometry, count: int, random: Any) -> None:
    """Two layers that are promoted apart have the fingerprint of both together."""
    total, rows = 0, []
    for layer in range(2):
        staging, staged, some = filled(geometry, count, 0, random)
        target, table = poisoned(geometry, count, 0, random)
        total += promote(staging, staged, target, table, count, head=layer * geometry.heads, heads=2 * geometry.heads)
        rows.append(some)
    together = torch.cat(rows, dim=1)
    assert fingerprint(together) == finish(total, together.numel())


@given(st.sampled_from(["fp8_e4m3", "fp8_e5m2"]), st.integers(0, 2**32 - 1))
def test_what_was_fp8_survives_the_way_to_bf16_and_back(dtype: str, seed: int) -> None:
    """Every fp8 value times a power of two is a bf16 value, so nothing is lost on that way round."""
    draw = torch.Generator().manual_seed(seed)
    small, wide = plain_row(dtype, 24), plain_row("bf16", 24)
    rows = encode(torch.randn((11, 2, 24), generator=draw) * 5, small, 0.25)
    geometry = Geometry(4, 2, 24)
    pools = [pool_of(geometry, 3), pool_of(replace(geometry, cell_bytes=48, pitch=0, block_bytes=0, stride=0), 3)]
    back = pool_of(geometry, 3)
    table = torch.tensor([2, 0, 1])
    scatter(pools[0], table, rows)
    requantize(pools[0], table, pools[1], table, 11, (small, 0.25), (wide, None))
    requantize(pools[1], table, back, table, 11, (wide, None), (small, 0.25))
    assert torch.equal(decode(rows, small), decode(gather(back, table, 11), small))


def test_static_scales_are_those_of_each_head() -> None:
    """The largest value of a head lands on the largest number of the format."""
    values = (
        torch.randn((40, 3, 16), generator=torch.Generator().manual_seed(2)) * torch.tensor([1.0, 10.0, 0.1])[:, None]
    )
    form, table = plain_row("fp32", 16), torch.arange(10)
    pool = pool_of(Geometry(4, 3, 64), 10)
    scatter(pool, table, encode(values, form))
    scales = static_scales(pool, table, 40, form, "fp8_e4m3")
    assert (1, 3, 1) == tuple(scales.shape)
    assert torch.allclose(values.abs().amax((0, 2)) / 448, scales.flatten())


def test_what_does_not_fit_writes_nothing() -> None:
    """Rows of another size, other blocks, other numbers of values and blocks named twice are refused before a write."""
    geometry = Geometry(4, 2, 8)
    source = pool_of(geometry, 3)
    table, twice = torch.tensor([0, 1]), torch.tensor([1, 1])
    form = plain_row("bf16", 4)
    target = pool_of(geometry, 3, poison=0xA5)
    other = pool_of(Geometry(5, 2, 8), 3, poison=0xA5)
    longer = pool_of(Geometry(4, 2, 9), 3, poison=0xA5)
    for wrong in (
        lambda: promote(source, table, other, table, 8),
        lambda: promote(source, table, target, twice, 8),
        lambda: promote(source, table[:1], target, table, 8),
        lambda: relayout(source, table, longer, table, 8),
        lambda: relayout(source, table, target, twice, 8),
        lambda: relayout(source, table, target, table[:1], 8),
        lambda: requantize(source, table, target, table, 8, (form, None), (plain_row("bf16", 5), None)),
        lambda: requantize(source, table, target, twice, 8, (form, None), (form, None)),
    ):
        with pytest.raises(TensorError):
            wrong()
    assert all(bool((pool.buffer == 0xA5).all()) for pool in (target, other, longer))
