"""`index_remap`: every key leads to its own entry again, and what no longer does is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from hitproof.kernels.blocks import Geometry, pool_of  # noqa: E402
from hitproof.kernels.index_remap import Move, RowMap, index_remap, remapped  # noqa: E402
from hitproof.kernels.jobs import Held, Job, RepairFault  # noqa: E402
from hitproof.kernels.numbers import plain_row  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.spans import Span, read_span, write_span  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from hitproof.spec.repair import RepairRequest  # noqa: E402

POISON = 0xA5
KEYS = Geometry(64, 1, 132, block_bytes=8640)
RATIO = 4


def a_map(rows: Any, dtype: Any = torch.int64) -> RowMap:
    """A map of keys that stand for every fourth token."""
    return RowMap(torch.tensor(rows, dtype=dtype), torch.arange(len(rows)) * RATIO)


def a_move(moves: dict[int, int], positions: dict[int, int] | None = None) -> Move:
    """A move from old rows to new ones; positions are those of the rows as the owner has them."""
    old = sorted(moves)
    held = [0 if positions is None else positions[row] for row in old]
    new = [moves[row] for row in old]
    first, second, third = (torch.tensor(table, dtype=torch.int64) for table in (old, new, held))
    return Move(first, second, third, generation=7)


@given(data=st.data(), dtype=st.sampled_from([torch.int32, torch.int64]))
def test_keys_follow_their_entries(data: st.DataObject, dtype: Any) -> None:
    """By hand, key by key: the new row, or lost, or misled; and whole means that every key leads to its own entry."""
    count = data.draw(st.integers(1, 12))
    rows = data.draw(st.lists(st.integers(-1, 15), min_size=count, max_size=count))
    mapped = data.draw(st.lists(st.integers(0, 15), unique=True, max_size=16))
    moves = {row: data.draw(st.integers(-1, 30)) for row in mapped}
    stands = {row: RATIO * key for key, row in enumerate(rows)}
    positions = {row: data.draw(st.sampled_from([stands.get(row, 0), 4])) for row in mapped}
    found = a_map(rows, dtype)
    result = remapped(found, a_move(moves, positions))

    new = [moves.get(row, -1) if row >= 0 else -1 for row in rows]
    lost = [key for key, row in enumerate(rows) if row >= 0 and new[key] < 0]
    misled = [
        key
        for key, row in enumerate(rows)
        if new[key] >= 0 and (positions[row] != RATIO * key or new.count(new[key]) > 1)
    ]
    assert (new, lost, misled) == (result.rows.tolist(), result.lost.tolist(), result.misled.tolist())
    assert result.rows.dtype == dtype
    assert result.whole == (not lost and not misled)


@settings(max_examples=25)
@given(count=st.integers(1, 200), seed=st.integers(0, 99), layers=st.integers(1, 3), first=st.integers(0, 63))
def test_only_the_copy_is_written(count: int, seed: int, layers: int, first: int) -> None:
    """Keys are copied byte by byte into other blocks, the map leads to the moved entries, all else is untouched."""
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randperm(500, generator=draw)[:count]
    new = torch.randperm(900, generator=draw)[:500] + 2**31 * 5
    found = RowMap(rows, torch.arange(count) * RATIO)
    positions = torch.full((500,), -99, dtype=torch.int64)
    positions[rows] = found.positions
    move = Move(torch.arange(500), new, positions)
    keys, into = [], []
    for _ in range(layers):
        table = torch.randperm(6, generator=draw)
        keys.append(Span(pool_of(KEYS, 6, poison=POISON), table, 0, count, first))
        write_span(keys[-1], 0, torch.randint(0, 255, (count, 1, 132), dtype=torch.uint8, generator=draw))
        other = Geometry(16, 1, 132, pitch=144, offset=7)
        into.append(Span(pool_of(other, 20, poison=POISON, slack=5), torch.randperm(20, generator=draw), 0, count))
    before = [span.pool.buffer.clone() for span in keys]
    copy = RowMap(torch.full_like(rows, -5), torch.full_like(rows, -5))

    assert index_remap(keys, found, move, into, copy).whole

    assert all(torch.equal(was, span.pool.buffer) for was, span in zip(before, keys, strict=True))
    # Rows beyond 2**31 keep all their bits.
    assert torch.equal(new[rows], copy.rows) and torch.equal(found.positions, copy.positions)
    for source, place in zip(keys, into, strict=True):
        expected = pool_of(place.pool.geometry, 20, poison=POISON, slack=5)
        expected.owned[place.table[: -(-count // 16)]] = 0
        write_span(Span(expected, place.table, 0, count), 0, read_span(source, 0, count))
        assert torch.equal(expected.buffer, place.pool.buffer)


def small_case(**changes: Any) -> dict[str, Any]:
    """Three keys in one layer, whose entries move by 100."""
    keys = Span(pool_of(KEYS, 1), torch.tensor([0]), 0, 3)
    rows = [5, 9, 2]
    fields = {
        "keys": [keys],
        "found": a_map(rows),
        "move": a_move({row: row + 100 for row in rows}, {row: RATIO * key for key, row in enumerate(rows)}),
        "into": [Span(pool_of(KEYS, 2, poison=POISON), torch.tensor([1]), 0, 3)],
        "copy": a_map([-5] * 3),
    }
    return {**fields, **changes}


UNSOUND = {
    "a row is no more": a_move({2: 1, 5: -1, 9: 3}, {2: 8, 5: 0, 9: 4}),
    "the move says nothing of a row": a_move({2: 1, 9: 3}, {2: 8, 9: 4}),
    "the move is empty": Move(*(torch.zeros(0, dtype=torch.int64) for _ in range(3))),
    "two entries fell on one row": a_move({2: 1, 5: 1, 9: 3}, {2: 8, 5: 0, 9: 4}),
    "two entries changed places": a_move({2: 1, 5: 7, 9: 3}, {2: 8, 5: 4, 9: 0}),
}


@pytest.mark.parametrize("fault", sorted(UNSOUND))
def test_an_index_that_cannot_be_led_is_not_written(fault: str) -> None:
    """Lost and misled keys are told, and neither keys nor map of the copy are touched."""
    case = small_case(move=UNSOUND[fault])
    result = index_remap(**case)
    assert not result.whole
    assert bool((case["into"][0].pool.buffer == POISON).all())
    assert [-5] * 3 == case["copy"].rows.tolist()


WRONG: dict[str, dict[str, Any]] = {
    "other layers": {"into": []},
    "other keys": {"into": [Span(pool_of(KEYS, 2, poison=POISON), torch.tensor([1]), 0, 4)]},
    "keys of another size": {
        "into": [Span(pool_of(Geometry(64, 1, 68), 2, poison=POISON), torch.tensor([1]), 0, 3)],
    },
    "a map of another type": {"copy": a_map([-5] * 3, torch.int32)},
    "a map of other keys": {"copy": a_map([-5] * 4)},
    "fewer rows than keys": {"found": a_map([5, 9]), "copy": a_map([-5] * 2)},
}


@pytest.mark.parametrize("fault", sorted(WRONG))
def test_what_does_not_fit_is_refused(fault: str) -> None:
    """A copy of another shape is a typed error, and nothing is written."""
    case = small_case(**WRONG[fault])
    with pytest.raises(TensorError):
        index_remap(**case)
    assert all(bool((span.pool.buffer == POISON).all()) for span in case["into"])
    assert {-5} == set(case["copy"].rows.tolist())


def test_the_case_without_a_fault_is_led() -> None:
    """What the faults are made from is sound; and an index is never copied over itself."""
    case = small_case()
    assert index_remap(**case).whole
    assert [105, 109, 102] == case["copy"].rows.tolist()
    with pytest.raises(TensorError, match="lies over"):
        index_remap(**small_case(into=[(keys := Span(pool_of(KEYS, 1), torch.tensor([0]), 0, 3))], keys=[keys]))


def test_a_row_that_the_type_cannot_hold_is_refused() -> None:
    """A map of 32 bits takes rows up to 2**31 - 1, and says so of the next."""
    found = RowMap(torch.tensor([1], dtype=torch.int32), torch.tensor([0]))
    assert [2**31 - 1] == remapped(found, a_move({1: 2**31 - 1})).rows.tolist()
    with pytest.raises(TensorError, match="too large"):
        remapped(found, a_move({1: 2**31}))


def test_shapes_are_checked_at_the_door() -> None:
    """Maps and moves of other types, lengths or orders are refused."""
    rows, ones = torch.arange(3), torch.ones(3)
    for make in (
        lambda: RowMap(ones, rows),
        lambda: RowMap(rows, rows[:2]),
        lambda: RowMap(rows, ones),
        lambda: Move(rows, rows[:2], rows),
        lambda: Move(rows.to(torch.int32), rows, rows),
        lambda: Move(rows.flip(0), rows, rows),
        lambda: Move(torch.tensor([1, 1]), rows[:2], rows[:2]),
    ):
        with pytest.raises(TensorError):
            make()


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("a row is no more", "source_lost"),
        ("the move says nothing of a row", "source_lost"),
        ("two entries fell on one row", "failed"),
        ("two entries changed places", "failed"),
    ],
)
def test_a_fault_says_whether_a_source_is_gone(fault: str, status: str) -> None:
    """By the protocol, entries that are no more are a lost source, and entries at wrong places a failure."""
    case = small_case()
    keys, place = case["keys"][0], case["into"][0]
    form = plain_row("fp8_e4m3", 132)
    held, copy = (Held((span.pool,), span.table, 3, form) for span in (keys, place))
    sources = {"self": (case["found"], case["copy"]), "kv": replace(UNSOUND[fault], generation=7)}
    with pytest.raises(RepairFault) as caught:
        run_repair(RepairRequest("index_remap", "index", 0, 12, 0, 12, {}, {}, {}), Job(held, copy, sources))
    assert status == caught.value.status
    assert bool((place.pool.buffer == POISON).all())
