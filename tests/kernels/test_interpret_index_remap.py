"""`index_remap` as the kernels run it: the reference's verdict on every key, and no byte written where it is bad."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.blocks import Geometry, pool_of  # noqa: E402
from hitproof.kernels.index_remap import Move, RowMap, launch, reference  # noqa: E402
from hitproof.kernels.spans import Span, write_span  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402

POISON = 0xA5
KEYS = Geometry(16, 1, 132, block_bytes=2160)
PLACES = (
    KEYS,
    Geometry(8, 1, 132, pitch=144, offset=7),
    Geometry(16, 1, 132, "head_major", pitch=135, block_bytes=2200, offset=1),
)
RATIO = 4


def a_case(count: int, seed: int, rows: Any, move: Move, dtype: Any, place: Geometry, layers: int) -> dict[str, Any]:
    """Keys in poisoned blocks, and a poisoned place for their copy."""
    draw = torch.Generator().manual_seed(seed)
    keys, into = [], []
    for _ in range(layers):
        blocks = -(-(count + 5) // KEYS.rows)
        table = torch.randperm(blocks, generator=draw)
        keys.append(Span(pool_of(KEYS, blocks, poison=POISON), table, 0, count, 5))
        write_span(keys[-1], 0, torch.randint(0, 256, (count, 1, 132), dtype=torch.uint8, generator=draw))
        blocks = -(-count // place.rows) + 2
        table = torch.randperm(blocks, generator=draw)[: blocks - 2]
        into.append(Span(pool_of(place, blocks, poison=POISON, slack=9), table, 0, count))
    found = RowMap(rows.to(dtype), torch.arange(count) * RATIO)
    copy = RowMap(torch.full_like(found.rows, -5), torch.full_like(found.positions, -5))
    return {"keys": keys, "found": found, "move": move, "into": into, "copy": copy}


def outcome(case: dict[str, Any], run: Any) -> dict[str, Any]:
    """What a twin told, and every byte that it may have written."""
    result, share = run(**case)
    told = {"rows": result.rows, "lost": result.lost, "misled": result.misled, "share": share}
    written = [span.pool.buffer for span in (*case["keys"], *case["into"])]
    return {**told, "written": [*written, case["copy"].rows, case["copy"].positions]}


def equal(left: Any, right: Any) -> bool:
    """Tensors, lists of them, and numbers."""
    if isinstance(left, list):
        return all(equal(one, other) for one, other in zip(left, right, strict=True))
    return bool(torch.equal(left, right)) if isinstance(left, torch.Tensor) else bool(left == right)


@settings(max_examples=15, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([torch.int32, torch.int64]), place=st.sampled_from(PLACES))
def test_kernels_judge_every_key_as_the_reference_does(data: st.DataObject, dtype: Any, place: Geometry) -> None:
    """Lost, misled or led; keys that share a row included; and what is written, or is not, is equal to the byte."""
    count = data.draw(st.integers(1, 40))
    rows = data.draw(st.lists(st.integers(-1, 45), min_size=count, max_size=count))
    sound = data.draw(st.booleans())
    if sound:
        rows = data.draw(st.permutations(range(50)))[:count]
    old = sorted(data.draw(st.sets(st.integers(0, 45), max_size=46))) if not sound else list(range(50))
    base = data.draw(st.sampled_from([0, 2**31 - 60]))
    ends = [base + row if sound else data.draw(st.integers(-1, 59)) for row in old]
    stands = {row: RATIO * key for key, row in enumerate(rows)}
    owned = [stands.get(row, 0) if sound else data.draw(st.sampled_from([stands.get(row, 0), 4])) for row in old]
    tables = (torch.tensor(one, dtype=torch.int64) for one in (old, ends, owned))
    arguments = (count, count, torch.tensor(rows), Move(*tables), dtype, place, 2)
    expected = outcome(a_case(*arguments), reference.index_remap_measured)
    found = outcome(a_case(*arguments), launch.index_remap_measured)
    assert {} == {name: (expected[name], found[name]) for name in expected if not equal(expected[name], found[name])}
    assert not sound or not found["lost"].numel()


@pytest.mark.parametrize(
    ("rows", "ends", "misled"),
    [([5, 5, 6], [9, 8], [0, 1]), ([5, 6, 7], [9, 9, 8], [0, 1]), ([6, 5, 5], [9, 9], [0, 1, 2])],
)
def test_of_two_keys_on_one_row_neither_is_right(rows: list[int], ends: list[int], misled: list[int]) -> None:
    """Not even the one whose position is recorded there: which of them it is, the map cannot tell any more."""
    old = sorted(set(rows))
    # The owner records the last key that led there, so that positions alone would find fault with one of the two.
    owned = [RATIO * max(key for key, row in enumerate(rows) if ends[old.index(row)] == end) for end in ends]
    move = Move(torch.tensor(old), torch.tensor(ends), torch.tensor(owned))
    case = a_case(3, 0, torch.tensor(rows), move, torch.int64, KEYS, 1)
    result, _ = launch.index_remap_measured(**case)
    assert misled == result.misled.tolist() == reference.remapped(case["found"], move).misled.tolist()
    assert not result.lost.numel() and bool((case["into"][0].pool.buffer == POISON).all())


def test_keys_whose_rows_meet_in_the_hash_table_all_find_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many places as keys every search is long, and none is lost."""
    monkeypatch.setattr(launch, "places", lambda keys: 64)
    count = 64
    move = Move(torch.arange(count), torch.arange(count) * 2**33, torch.arange(count) * RATIO)
    arguments = (count, 1, torch.arange(count), move, torch.int64, KEYS, 1)
    found = outcome(a_case(*arguments), launch.index_remap_measured)
    assert equal(outcome(a_case(*arguments), reference.index_remap_measured)["written"], found["written"])


def test_a_row_that_the_type_cannot_hold_is_refused_and_nothing_is_written() -> None:
    """The verdict counts such rows on the device, and the copy waits for it there."""
    move = Move(torch.tensor([1]), torch.tensor([2**31]), torch.tensor([0]))
    case = a_case(1, 0, torch.tensor([1]), move, torch.int32, KEYS, 1)
    with pytest.raises(TensorError, match="too large"):
        launch.index_remap_measured(**case)
    assert bool((case["into"][0].pool.buffer == POISON).all()) and [-5] == case["copy"].rows.tolist()


def test_a_workspace_may_hold_anything_before() -> None:
    """What an earlier call, or nobody, left in the buffers does not matter."""
    count = 20
    move = Move(torch.arange(50), torch.arange(50) + 7, torch.arange(50) * RATIO)
    arguments = (count, 3, torch.arange(count), move, torch.int64, KEYS, 2)
    case = a_case(*arguments)
    used = launch.Workspace.of(count, 2, 8, torch.device("cpu"))
    for name in used.__slots__:
        getattr(used, name).fill_(1)
    result, share = launch.index_remap_measured(**case, workspace=used)
    expected, share_expected = reference.index_remap_measured(**a_case(*arguments))
    assert result.whole and torch.equal(expected.rows, result.rows) and share_expected == share


def test_a_table_of_strange_blocks_is_refused_before_a_launch() -> None:
    """A block that is not there is an error of the caller's, as in the reference."""
    move = Move(torch.arange(3), torch.arange(3), torch.arange(3) * RATIO)
    case = a_case(3, 0, torch.arange(3), move, torch.int64, KEYS, 1)
    case["into"][0].table[0] = 99
    with pytest.raises(TensorError):
        launch.index_remap_measured(**case)
