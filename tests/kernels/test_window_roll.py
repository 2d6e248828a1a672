"""`window_roll`: rows moved to where the next step looks for them, and the window read off a boundary record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from hitproof.kernels.blocks import Geometry, Pool, pool_of  # noqa: E402
from hitproof.kernels.checksum import fingerprint  # noqa: E402
from hitproof.kernels.jobs import Held, Job, RepairFault  # noqa: E402
from hitproof.kernels.numbers import plain_row  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.spans import gather_slots, scatter_slots  # noqa: E402
from hitproof.kernels.window_roll import Boundary, Ring, lost_rows, members, ring_after, window_roll  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from hitproof.spec.repair import RepairRequest  # noqa: E402

POISON = 0xA5
V4_PAGE = Geometry(64, 1, 584, block_bytes=37440)


def rows_of(positions: Any, heads: int, cell: int) -> Any:
    """A row for each position that tells which one it is: any byte of it depends on position, head and place."""
    places = torch.arange(heads * cell).view(heads, cell)
    return ((positions[:, None, None] * 31 + places * 7 + positions[:, None, None] // 251) % 251).to(torch.uint8)


def written_ring(geometry: Geometry, slots: int, position: int, blocks: int) -> tuple[Ring, dict[int, int]]:
    """A ring into which rows were written one by one, as a serving engine does; and where each row lies."""
    pool = pool_of(geometry, blocks, poison=POISON, slack=11)
    table = torch.randperm(blocks, generator=torch.Generator().manual_seed(slots))
    lies: dict[int, int] = {}
    for token in range(position):
        slot = torch.tensor([token % slots])
        scatter_slots(pool, table, slot, rows_of(torch.tensor([token]), geometry.heads, geometry.cell_bytes))
        lies = {old: place for old, place in lies.items() if place != int(slot)} | {token: int(slot)}
    return Ring(pool, table, ring_after(position, slots)), lies


@given(slots=st.integers(1, 40), position=st.integers(0, 200))
def test_a_ring_holds_what_was_written_last(slots: int, position: int) -> None:
    """Writing rows one by one leaves at each slot the row that `ring_after` names, and -1 where none was written."""
    content = [-1] * slots
    for token in range(position):
        content[token % slots] = token
    assert content == ring_after(position, slots).tolist()


@given(
    length=st.integers(0, 60),
    window=st.integers(1, 70),
    chunk=st.sampled_from([0, 1, 7, 16, 64]),
    separators=st.lists(st.integers(0, 60), max_size=5),
    inside=st.booleans(),
    regions=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=3),
)
def test_members_are_told_one_by_one(
    length: int, window: int, chunk: int, separators: Any, inside: bool, regions: Any
) -> None:
    """A position belongs to the window by its distance, its chunk, and whether it is a separator or passed over."""
    skipped = tuple((first, first + size) for first, size in regions)
    boundary = Boundary(length, window, tuple(separators), inside, skipped, chunk)
    expected = []
    for position in range(length):
        if length - position >= window or (chunk and position // chunk != length // chunk):
            continue
        if position in separators:
            belongs = inside
        else:
            belongs = not any(first <= position < to for first, to in skipped)
        expected += [position] if belongs else []
    assert expected == members(boundary).tolist()


@settings(max_examples=60)
@given(data=st.data(), rows=st.sampled_from([1, 3, 16]), order=st.sampled_from(["by_position", "packed"]))
def test_every_row_lies_where_the_copy_says(data: st.DataObject, rows: int, order: Any) -> None:
    """Each row of the segment is moved byte by byte, the window is its members' rows, and nothing else is written."""
    slots = data.draw(st.integers(1, 30))
    position = data.draw(st.integers(1, 80))
    oldest = max(0, position - slots)
    start = data.draw(st.integers(oldest, position - 1))
    end = data.draw(st.integers(start, position))
    length = data.draw(st.integers(start, end))
    window = data.draw(st.integers(1, length - start + 1))
    separators = tuple(data.draw(st.lists(st.integers(start, end), max_size=3)))
    skipped = tuple(data.draw(st.lists(st.tuples(st.integers(0, 40), st.integers(40, 80)), max_size=1)))
    boundary = Boundary(length, window, separators, data.draw(st.booleans()), skipped)
    found = Geometry(rows, 2, 6, pitch=17, offset=5)
    ring, lies = written_ring(found, slots, position, -(-slots // rows))
    before = ring.pool.buffer.clone()
    room = end - start + data.draw(st.integers(0 if end > start else 1, 9))
    copy = Geometry(4, 2, 6, layout="head_major", block_bytes=53, offset=1)
    into = pool_of(copy, 20, poison=POISON, slack=7)
    table = torch.randperm(20, generator=torch.Generator().manual_seed(room))[: -(-room // 4)]

    rolled = window_roll(ring, start, end, boundary, into, table, room, order)

    assert torch.equal(before, ring.pool.buffer)
    assert rolled.bytes == (end - start) * 2 * 6
    expected = pool_of(copy, 20, poison=POISON, slack=7)
    expected.owned[table] = 0
    for token in range(start, end):
        slot = torch.tensor([token % room if order == "by_position" else token - start])
        assert token == int(rolled.positions[slot])
        scatter_slots(expected, table, slot, gather_slots(ring.pool, ring.table, torch.tensor([lies[token]])))
    assert torch.equal(expected.buffer, into.buffer)
    assert room - (end - start) == int((rolled.positions == -1).sum())
    read = members(boundary)
    assert torch.equal(read, rolled.positions[rolled.window])
    assert torch.equal(rows_of(read, 2, 6), gather_slots(into, table, rolled.window))


def test_a_window_of_real_pages_is_rolled() -> None:
    """Pages of 64 rows of 584 bytes, padded to 37,440: a ring of two moves to a window of 128 that skips a region."""
    ring, _ = written_ring(V4_PAGE, 128, 300, 2)
    into = pool_of(V4_PAGE, 4, poison=POISON)
    boundary = Boundary(300, 128, separators=(250,), skipped=((240, 260),))
    rolled = window_roll(ring, 172, 300, boundary, into, torch.tensor([3, 1]), 128, "packed")
    read = [*range(173, 240), 250, *range(260, 300)]
    assert read == rolled.positions[rolled.window].tolist()
    assert torch.equal(rows_of(torch.tensor(read), 1, 584), gather_slots(into, torch.tensor([3, 1]), rolled.window))
    assert bool((into.owned[[0, 2]] == POISON).all())


def sound(**changes: Any) -> dict[str, Any]:
    """A ring of 10 slots after 15 tokens, rolled to the boundary at 13."""
    ring, _ = written_ring(Geometry(4, 1, 8), 10, 15, 3)
    into = pool_of(Geometry(4, 1, 8), 5, poison=POISON)
    fields = {
        "ring": ring,
        "start": 6,
        "end": 14,
        "boundary": Boundary(13, 8),
        "into": into,
        "table": torch.tensor([4, 0]),
        "slots": 8,
        "order": "by_position",
    }
    return {**fields, **changes}


FAULTS: dict[str, dict[str, Any]] = {
    "a row was overwritten": {"start": 4, "boundary": Boundary(13, 8)},
    "a row was never written": {"end": 16, "slots": 16, "table": torch.tensor([4, 0, 1, 2])},
    "the window reaches further back": {"boundary": Boundary(13, 9)},
    "the window reaches further ahead": {"boundary": Boundary(15, 8)},
    "the copy is too small": {"slots": 7},
    "the copy has too few blocks": {"table": torch.tensor([4])},
    "the copy has a block twice": {"table": torch.tensor([4, 4])},
    "the copy has a block that is not there": {"table": torch.tensor([4, 5])},
    "rows of another size": {"into": pool_of(Geometry(4, 1, 9), 5, poison=POISON)},
    "rows of other heads": {"into": pool_of(Geometry(4, 2, 8), 5, poison=POISON)},
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_what_cannot_be_rolled_leaves_no_trace(fault: str) -> None:
    """Where a row or a place is not there, the answer is a typed error and nothing is written."""
    case = sound(**FAULTS[fault])
    with pytest.raises(TensorError):
        window_roll(**case)
    assert bool((case["into"].buffer == POISON).all())


def test_the_case_without_a_fault_is_rolled() -> None:
    """What the faults are made from is sound; and a ring is never rolled into itself."""
    assert [*range(6, 13)] == (rolled := window_roll(**sound())).positions[rolled.window].tolist()
    case = sound()
    case.update(into=case["ring"].pool, table=torch.tensor([0, 1]))
    before = case["into"].buffer.clone()
    with pytest.raises(TensorError, match="lies over"):
        window_roll(**case)
    assert torch.equal(before, case["into"].buffer)


def test_lost_rows_are_named() -> None:
    """What the ring no longer holds, or does not hold yet, is told by position."""
    ring, lies = written_ring(Geometry(4, 1, 8), 10, 15, 3)
    assert [3, 4, 15] == lost_rows(ring, 3, 16).tolist()
    assert sorted(lies) == [*range(5, 15)]


def test_a_ring_says_where_each_row_lies_once() -> None:
    """A position at two slots, and more slots than rows, are refused."""
    pool: Pool = pool_of(Geometry(4, 1, 8), 1)
    for positions in ([1, 1], [0, 1, 2, 3, 4]):
        with pytest.raises(TensorError):
            Ring(pool, torch.tensor([0]), torch.tensor(positions))
    with pytest.raises(TensorError):
        Ring(pool, torch.tensor([0]), torch.tensor([0], dtype=torch.int32))


@pytest.mark.parametrize("into_order", ["by_position", "packed"])
def test_a_copy_is_measured_in_the_order_of_tokens(into_order: str) -> None:
    """Whatever the order of the copy, the fingerprint is that of its rows by token, as it was taken at commit."""
    ring, _ = written_ring(Geometry(4, 1, 8), 10, 15, 3)
    held = Held((ring.pool,), ring.table, 10, plain_row("bf16", 4))
    copy = Held((pool_of(Geometry(4, 1, 8), 5),), torch.tensor([4, 0, 1]), 11, held.form, tags={"published": False})
    copy = replace(copy, tags={**copy.tags, "pool_epoch": 1})
    facts = {"start": 6, "end": 14, "position": 15, "write_sequence": 1}
    request = RepairRequest("window_roll", "window", 0, 14, 7, 14, facts, {}, {})
    job = Job(held, copy, {"window_boundary": Boundary(14, 8, version="new")}, {"into_order": into_order})
    assert fingerprint(rows_of(torch.arange(6, 14), 1, 8)) == run_repair(request, job).measured["measured"]


@pytest.mark.parametrize("name", ["start", "end", "position", "write_sequence"])
def test_a_ring_of_unknown_place_is_not_rolled(name: str) -> None:
    """Where a fact that tells what the ring holds is unknown, the repair fails."""
    ring, _ = written_ring(Geometry(4, 1, 8), 10, 15, 3)
    held = Held((ring.pool,), ring.table, 10, plain_row("bf16", 4))
    copy = replace(held, layers=(pool_of(Geometry(4, 1, 8), 3),))
    facts = {"start": 6, "end": 14, "position": 15, "write_sequence": 1, name: None}
    request = RepairRequest("window_roll", "window", 0, 14, 7, 14, facts, {}, {})
    with pytest.raises(RepairFault) as fault:
        run_repair(request, Job(held, copy, {"window_boundary": Boundary(14, 8)}))
    assert "failed" == fault.value.status
