"""Kernels that measure, fetch, move and convert rows write what their twins write, to the byte, and nothing besides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import hitproof.kernels.checksum.launch as quick_checksum  # noqa: E402
import hitproof.kernels.checksum.reference as plain_checksum  # noqa: E402
import hitproof.kernels.promote.launch as quick_promote  # noqa: E402
import hitproof.kernels.promote.reference as plain_promote  # noqa: E402
import hitproof.kernels.relayout.launch as quick_relayout  # noqa: E402
import hitproof.kernels.relayout.reference as plain_relayout  # noqa: E402
import hitproof.kernels.requantize.launch as quick_requantize  # noqa: E402
import hitproof.kernels.requantize.reference as plain_requantize  # noqa: E402
from hitproof.kernels.blocks import Geometry, Layout, Pool, gather, pool_of, scatter  # noqa: E402
from hitproof.kernels.numbers import (  # noqa: E402
    V4_INDEX_ROW,
    V4_ROW,
    Part,
    RowFormat,
    decode,
    encode,
    plain_row,
)
from hitproof.kernels.requantize.runs import runs_of  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.kernels.geometries import geometries  # noqa: E402
from tests.kernels.interpreted import copies, filled, poisoned  # noqa: E402

FEW = settings(max_examples=25)
# The interpreter divides by way of numpy, which warns of what becomes a NaN on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")


@FEW
@given(geometries(), st.integers(1, 15), st.integers(0, 5), st.integers(0, 9), st.randoms(use_true_random=False))
def test_checksum_is_its_twin(geometry: Geometry, count: int, first: int, shift: int, random: Any) -> None:
    """Any geometry from any byte; other layers' heads before and after."""
    first %= geometry.rows
    pool, table = filled(replace(geometry, offset=geometry.offset + shift), count, first, random)
    place = (count, first, 3, geometry.heads + 5)
    assert plain_checksum.share_of(pool, table, *place) == quick_checksum.share_of(pool, table, *place)


@FEW
@given(geometries(), st.integers(1, 15), st.integers(0, 5), st.integers(0, 9), st.randoms(use_true_random=False))
def test_promote_is_its_twin(geometry: Geometry, count: int, first: int, shift: int, random: Any) -> None:
    """The same bytes in the whole buffer, and the same sum."""
    first %= geometry.rows
    shifted = replace(geometry, offset=geometry.offset + shift, stride=geometry.stride + shift)
    staging, staged = filled(shifted, count, first, random)
    target, table = poisoned(geometry, count, first, random)
    one, two = copies(target)
    heads: dict[str, int] = {"first": first, "head": 1, "heads": geometry.heads + 2}
    expected = plain_promote.promote(staging, staged, one, table, count, **heads)
    assert expected == quick_promote.promote(staging, staged, two, table, count, **heads)
    assert torch.equal(one.buffer, two.buffer)


@FEW
@given(geometries(), geometries(), st.integers(1, 15), st.integers(0, 5), st.randoms(use_true_random=False))
def test_relayout_is_its_twin(ours: Geometry, theirs: Geometry, count: int, first: int, random: Any) -> None:
    """Between any two geometries: rows, zeros and bytes that stay, and the same sum."""
    same: dict[str, Any] = {"heads": theirs.heads, "cell_bytes": theirs.cell_bytes, "pitch": 0, "block_bytes": 0}
    ours = replace(ours, **same, stride=0, item_bytes=theirs.item_bytes)
    if ours.layout != "value_major":
        ours = replace(ours, pitch=ours.pitch + random.randrange(4), block_bytes=0, stride=0)
    ours = replace(ours, block_bytes=ours.block_bytes + random.randrange(9), stride=0)
    first %= theirs.rows
    source, held = filled(theirs, count, first, random)
    target, table = poisoned(ours, count, 0, random)
    one, two = copies(target)
    more: dict[str, int] = {"source_first": first, "head": 2, "heads": ours.heads + 2}
    expected = plain_relayout.relayout(source, held, one, table, count, **more)
    assert expected == quick_relayout.relayout(source, held, two, table, count, **more)
    assert torch.equal(one.buffer, two.buffer)


def formats(values: int) -> list[RowFormat]:
    """Row formats of 8 * `values` values with scales of every kind, of one part and of several."""
    whole = 8 * values
    return [
        *(plain_row(dtype, whole) for dtype in ("fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2")),
        RowFormat((Part("fp8_e4m3", whole),), "fp32", values, 2),
        RowFormat((Part("fp8_e5m2", whole),), "e8m0", 2 * values, 1),
        RowFormat((Part("bf16", 3 * values), Part("fp8_e4m3", 5 * values)), "e8m0", values),
        RowFormat((Part("fp8_e4m3", 4 * values), Part("fp8_e5m2", 4 * values)), "fp32", values, 3),
    ]


def in_one_run(read: RowFormat, write: RowFormat) -> bool:
    """Whether each group of inline scales lies in one run, as the kernel asks."""
    try:
        return bool(runs_of(read, write))
    except TensorError:
        return False


def awkward_values(count: int, heads: int, values: int, random: Any) -> Any:
    """Numbers at scales from 2**-40 to 2**40, with zeros, subnormals and, now and then, a NaN or an infinite one."""
    draw = torch.Generator().manual_seed(random.randrange(2**31))
    found = torch.randn((count, heads, values), generator=draw)
    found *= torch.exp2(torch.randint(-40, 40, (count, heads, 1), generator=draw))
    found[torch.rand(found.shape, generator=draw) < 0.05] = 0
    found[torch.rand(found.shape, generator=draw) < 0.02] = 2.0**-140
    found[torch.rand(found.shape, generator=draw) < 0.01] = random.choice([float("nan"), float("inf"), 1.0])
    return found


@settings(max_examples=30)
@given(st.data(), st.integers(1, 9), st.integers(1, 11), st.integers(0, 4), st.randoms(use_true_random=False))
def test_requantize_is_its_twin(data: st.DataObject, values: int, count: int, first: int, random: Any) -> None:
    """Between any two formats, at any byte and in any order: every byte is the twin's, but for a NaN's payload."""
    read = data.draw(st.sampled_from(formats(values)))
    write = data.draw(st.sampled_from([form for form in formats(values) if in_one_run(read, form)]))
    heads, rows = data.draw(st.integers(1, 2)), 4
    orders: tuple[Layout, ...] = ("token_major", "head_major")
    layouts = [data.draw(st.sampled_from(orders)) for _ in range(2)]
    offset = data.draw(st.integers(0, 8))
    scales = [_apart(form, count, heads, data) for form in (read, write)]
    source, held = poisoned(
        Geometry(rows, heads, read.cell_bytes, layouts[0], offset=offset), count, first % rows, random
    )
    cells = encode(awkward_values(count, heads, read.values, random), read, scales[0])
    scatter(source, held, cells, first % rows)
    geometry = Geometry(rows, heads, write.cell_bytes, layouts[1], offset=offset // 2)
    one, two = copies(poisoned(geometry, count, 1, random)[0])
    table = torch.tensor(random.sample(range(one.blocks), -(-(count + 1) // rows)))
    pairs = (read, scales[0]), (write, scales[1])
    plain_requantize.requantize(source, held, one, table, count, *pairs, first=1, source_first=first % rows)
    quick_requantize.requantize(source, held, two, table, count, *pairs, first=1, source_first=first % rows)
    off = one.buffer != two.buffer
    if bool(off.any()):
        assert _only_payloads(one, two, table, count, write)


def _apart(form: RowFormat, count: int, heads: int, data: st.DataObject) -> Any:
    """Scales for a format that has none of its own: one number, or one for each head, row or value."""
    if form.scale_count or not form.small:
        return None
    shape = data.draw(st.sampled_from([None, (1, heads, 1), (count, heads, 1), (count, heads, form.small)]))
    if shape is None:
        return data.draw(st.sampled_from([0.25, 0.1]))
    return torch.rand(shape, generator=torch.Generator().manual_seed(3)) + 0.01


def _only_payloads(one: Pool, two: Pool, table: Any, count: int, form: RowFormat) -> bool:
    """Whether two pools differ only in which NaN a NaN is; bf16 and fp16 have many."""
    rows = [gather(pool, table, count, 1) for pool in (one, two)]
    plain = RowFormat(form.parts, pad=form.cell_bytes - RowFormat(form.parts).cell_bytes)
    values = [decode(cells, plain) for cells in rows]
    same = (values[0] == values[1]) | (values[0].isnan() & values[1].isnan())
    tail = [cells[..., RowFormat(form.parts).cell_bytes :] for cells in rows]
    scatter(one, table, rows[1], 1)
    return bool(same.all()) and torch.equal(*tail) and torch.equal(one.buffer, two.buffer)


@pytest.mark.parametrize("form", [V4_ROW, V4_INDEX_ROW], ids=["V4 rows", "V4 index keys"])
def test_v4_rows_keep_every_byte(form: RowFormat) -> None:
    """Real row formats, from bf16 and back: the kernel's bytes are the twin's."""
    wide, count = plain_row("bf16", form.values), 70
    values = torch.randn((count, 1, form.values), generator=torch.Generator().manual_seed(8)) * 30
    table = torch.tensor([1, 0])
    source = pool_of(Geometry(64, 1, wide.cell_bytes), 2)
    scatter(source, table, encode(values, wide))
    for read, write in ((wide, form), (form, wide)):
        one, two = copies(pool_of(Geometry(64, 1, write.cell_bytes), 2, poison=0xA5))
        for made, twin in ((one, plain_requantize), (two, quick_requantize)):
            twin.requantize(source, table, made, table, count, (read, None), (write, None))
        assert torch.equal(one.buffer, two.buffer)
        source = one


def test_groups_of_several_runs_are_refused() -> None:
    """A group of inline scales that lies across two formats of the source is told, and nothing is written."""
    read = RowFormat((Part("bf16", 24), Part("fp16", 40)))
    write = RowFormat((Part("fp8_e4m3", 64),), "fp32", 32)
    source, table = pool_of(Geometry(4, 1, read.cell_bytes), 1), torch.tensor([0])
    target = pool_of(Geometry(4, 1, write.cell_bytes), 1, poison=0xA5)
    with pytest.raises(TensorError):
        quick_requantize.requantize(source, table, target, table, 4, (read, None), (write, None))
    assert bool((target.buffer == 0xA5).all())


@pytest.mark.parametrize("block", [-1, 7, 1 << 40])
def test_a_block_that_is_not_there_is_not_touched(block: int) -> None:
    """A table that nobody checked reads and writes nothing beyond its pools, however far its blocks are."""
    geometry = Geometry(4, 2, 24)
    source, right = pool_of(geometry, 3, poison=1), torch.tensor([0, 1, 2])
    wrong = torch.tensor([0, block, 2])
    form = (plain_row("bf16", 12), None)
    ways: tuple[Any, ...] = (
        lambda target, total, one, two: quick_promote.enqueue(total, source, one, target, two, 12),
        lambda target, total, one, two: quick_relayout.enqueue(total, source, one, target, two, 12),
        lambda target, total, one, two: quick_requantize.enqueue(source, one, target, two, 12, form, form),
    )
    for tables in ((right, wrong), (wrong, right)):
        for enqueue in ways:
            target = pool_of(geometry, 3, poison=0xA5, slack=64)
            enqueue(target, torch.zeros(1, dtype=torch.int64), *tables)
            assert bool((target.buffer[-64:] == 0xA5).all())
            assert bool((target.owned[[0, 2]] == 1).all())
            assert 1 not in target.owned[1]
    total = torch.zeros(1, dtype=torch.int64)
    quick_checksum.enqueue(total, source, wrong, 12)
    assert int(total) & (2**64 - 1) != plain_checksum.share_of(source, right, 12)


def test_what_does_not_fit_writes_nothing() -> None:
    """What the twins refuse is refused by the launches, and so is a copy over what it is made from."""
    geometry = Geometry(4, 2, 8)
    source, target = pool_of(geometry, 3), pool_of(geometry, 3, poison=0xA5)
    other, longer = (pool_of(one, 3, poison=0xA5) for one in (Geometry(5, 2, 8), Geometry(4, 2, 9)))
    table, twice = torch.tensor([0, 1]), torch.tensor([1, 1])
    form = (plain_row("bf16", 4), None)
    for wrong in (
        lambda: quick_checksum.share_of(source, table[:1], 8),
        lambda: quick_promote.promote(source, table, other, table, 8),
        lambda: quick_promote.promote(source, table, target, twice, 8),
        lambda: quick_relayout.relayout(source, table, longer, table, 8),
        lambda: quick_relayout.relayout(source, table, target, table[:1], 8),
        lambda: quick_relayout.relayout(target, table, target, table.flip(0), 8),
        lambda: quick_requantize.requantize(source, table, target, twice, 8, form, form),
        lambda: quick_requantize.requantize(source, table, longer, table, 8, form, form),
        lambda: quick_requantize.requantize(target, table, target, table, 8, form, form),
    ):
        with pytest.raises(TensorError):
            wrong()
    assert all(bool((pool.buffer == 0xA5).all()) for pool in (target, other, longer))


def test_a_workspace_is_used() -> None:
    """Sums go into the memory that the caller gives, whatever stood there."""
    pool, table = pool_of(Geometry(4, 2, 8), 2, poison=3), torch.tensor([1, 0])
    workspace = torch.tensor([99])
    found = quick_checksum.share_of(pool, table, 7, workspace=workspace)
    assert plain_checksum.share_of(pool, table, 7) == found == int(workspace) & (2**64 - 1)


def far_apart(cell: int) -> Pool:
    """Three blocks more than 2**31 bytes apart, in memory that is given only where it is touched."""
    geometry = Geometry(2, 1, cell, stride=2**31 + 16)
    return Pool(torch.empty(geometry.extent(3), dtype=torch.uint8), geometry, 3)


def test_addresses_have_64_bits() -> None:
    """Blocks beyond 2**31 and 2**32 bytes are read and written where they are."""
    form, table = plain_row("bf16", 8), torch.tensor([2, 1, 0])
    near = pool_of(Geometry(2, 1, 16), 3)
    rows = torch.arange(6 * 16, dtype=torch.uint8).reshape(6, 1, 16)
    # As bf16 none of these is a NaN.
    scatter(near, table, rows)
    for move in (
        lambda source, target: quick_promote.promote(source, table, target, table, 6),
        lambda source, target: quick_relayout.relayout(source, table, target, table, 6),
        lambda source, target: quick_requantize.requantize(source, table, target, table, 6, (form, None), (form, None)),
    ):
        far, back = far_apart(16), pool_of(near.geometry, 3)
        move(near, far)
        assert torch.equal(rows, gather(far, table, 6))
        assert plain_checksum.share_of(near, table, 6) == quick_checksum.share_of(far, table, 6)
        move(far, back)
        assert torch.equal(near.buffer, back.buffer)
