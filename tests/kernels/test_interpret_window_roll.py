"""The kernel that rolls rings writes what its twin writes, to the byte, and nothing besides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import hitproof.kernels.window_roll.launch as quick  # noqa: E402
import hitproof.kernels.window_roll.reference as plain  # noqa: E402
from hitproof.kernels.blocks import Geometry, Pool, pool_of  # noqa: E402
from hitproof.kernels.checksum.reference import MASK, partial  # noqa: E402
from hitproof.kernels.spans import gather_slots  # noqa: E402
from hitproof.kernels.window_roll import Boundary, Ring, ring_after  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.kernels.geometries import geometries  # noqa: E402
from tests.kernels.interpreted import copies, filled, poisoned  # noqa: E402
from tests.kernels.test_window_roll import FAULTS, sound  # noqa: E402

ORDERS = st.sampled_from(["by_position", "packed"])


def of_other_place(geometry: Geometry, random: Any) -> Geometry:
    """Blocks of the same rows, of another number of rows a block, with gaps and padding, from another byte."""
    heads, cell = geometry.heads, geometry.cell_bytes
    layout = random.choice(("token_major", "head_major", "value_major"))
    gap = 0 if layout == "value_major" else random.randrange(9)
    pitch = cell * (heads if layout == "token_major" else 1) + gap
    bare = Geometry(random.randint(1, 7), heads, cell, layout, pitch=pitch, item_bytes=geometry.item_bytes)
    block = bare.used_bytes + random.randrange(9)
    return replace(bare, block_bytes=block, stride=block + random.randrange(5), offset=random.randrange(9))


@settings(max_examples=25)
@given(geometries(), st.integers(1, 30), st.integers(1, 80), ORDERS, st.randoms(use_true_random=False))
def test_rolling_is_its_twin(geometry: Geometry, slots: int, position: int, order: Any, random: Any) -> None:
    """From any ring into any blocks: the same rows, zeros and untouched bytes, the same slots, and the same sum."""
    pool, table = filled(geometry, slots, 0, random)
    ring = Ring(pool, table, ring_after(position, slots))
    before = pool.buffer.clone()
    start = random.randint(max(0, position - slots), position - 1)
    end = random.randint(start, position)
    boundary = Boundary(end, random.randint(1, end - start + 1))
    room = end - start + random.randint(0 if end > start else 1, 9)
    target, copy = poisoned(of_other_place(geometry, random), room, 0, random)
    one, two = copies(target)
    heads = 3, geometry.heads + 5
    expected = plain.window_roll_measured(ring, start, end, boundary, one, copy, room, order, *heads)
    made = quick.window_roll_measured(ring, start, end, boundary, two, copy, room, order, *heads)
    assert torch.equal(one.buffer, two.buffer)
    assert torch.equal(before, pool.buffer)
    assert expected[1] == made[1]
    assert expected[0].bytes == made[0].bytes
    assert torch.equal(expected[0].positions, made[0].positions)
    assert torch.equal(expected[0].window, made[0].window)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_what_cannot_be_rolled_is_never_launched(fault: str) -> None:
    """The twin's faults are the kernel's, and nothing is written."""
    case = sound(**FAULTS[fault])
    with pytest.raises(TensorError):
        quick.window_roll_measured(**case)
    assert bool((case["into"].buffer == 0xA5).all())


def test_a_ring_of_a_block_that_is_not_there_is_never_launched() -> None:
    """Also a block that no slot of the segment needs."""
    case = sound()
    ring: Ring = case["ring"]
    case["ring"] = Ring(ring.pool, torch.tensor([0, 1, ring.pool.blocks]), ring.positions)
    for roll in (plain.window_roll_measured, quick.window_roll_measured):
        with pytest.raises(TensorError, match="not there"):
            roll(**case)
        assert bool((case["into"].buffer == 0xA5).all())


class TestMoves:
    """What a launch alone promises, whoever made its tables."""

    geometry = Geometry(4, 2, 24, pitch=50, block_bytes=210, offset=3)

    def moves(self, **changes: Any) -> quick.Moves:
        """Eight rows from another geometry, in order."""
        source = pool_of(Geometry(3, 2, 24, "head_major"), 5)
        source.buffer.copy_(torch.arange(source.buffer.numel()) % 251)
        moves = quick.Moves(
            source,
            torch.tensor([4, 0, 2]),
            pool_of(self.geometry, 4, poison=0xA5, slack=9),
            torch.tensor([3, 1]),
            torch.arange(8),
            torch.arange(8),
        )
        return replace(moves, **changes)

    def test_slots_that_are_left_keep_their_bytes(self) -> None:
        """A slot to be zeroed is, a slot to be left is not written, and neither is counted."""
        slot_from = torch.tensor([5, quick.LEAVE, 0, quick.ZERO, quick.LEAVE, 1, 2])
        moves, total = self.moves(slot_from=slot_from), torch.zeros(1, dtype=torch.int64)
        quick.enqueue(moves, total)
        rows = gather_slots(moves.target, moves.table, torch.arange(8))
        own = [0, 2, 5, 6]
        found = gather_slots(moves.source, moves.source_table, slot_from[own])
        assert torch.equal(found, rows[own])
        assert bool((rows[[1, 4]] == 0xA5).all())
        assert bool((rows[[3, 7]] == 0).all())
        expected = sum(partial(found[i : i + 1], first=slot) for i, slot in enumerate(own)) & MASK
        assert expected == int(total) & MASK

    @pytest.mark.parametrize("wrong", [4, -1, 1 << 40])
    def test_no_block_that_is_not_there_is_touched(self, wrong: int) -> None:
        """A wrong table moves no byte beyond the pools, whatever it names; its rows are zeros and are not counted."""
        moves, total = self.moves(table=torch.tensor([wrong, 1])), torch.zeros(1, dtype=torch.int64)
        before = moves.target.buffer.clone()
        quick.enqueue(moves, total)
        assert bool((moves.target.owned[1] != 0xA5).any())
        before[3 + 210 : 3 + 420] = moves.target.buffer[3 + 210 : 3 + 420]
        assert torch.equal(before, moves.target.buffer)
        moves, total = (
            self.moves(source_table=torch.tensor([wrong + (wrong == 4), 0, 2])),
            torch.zeros(1, dtype=torch.int64),
        )
        quick.enqueue(moves, total)
        rows = gather_slots(moves.target, moves.table, torch.arange(8))
        assert bool((rows[:3] == 0).all())
        assert partial(rows[3:], first=3) == int(total) & MASK

    def test_a_launch_is_repeated_without_being_prepared_anew(self) -> None:
        """What a graph would replay: the same tables, other rows, and the sum added to."""
        moves, total = self.moves(), torch.zeros(1, dtype=torch.int64)
        quick.enqueue(moves, total)
        first = int(total)
        moves.source.buffer.add_(1)
        quick.enqueue(moves, total)
        rows = gather_slots(moves.target, moves.table, torch.arange(8))
        assert torch.equal(gather_slots(moves.source, moves.source_table, torch.arange(8)), rows)
        assert (partial(rows) + first) & MASK == int(total) & MASK


def test_rows_lie_behind_two_gibibytes() -> None:
    """Places are worked out in 64 bits: a ring and its copy at the far end of a buffer of 2.6 GB that nobody fills."""
    page = Geometry(64, 1, 584, block_bytes=37_440, offset=8)
    blocks = 70_000
    pool = Pool(torch.empty(page.extent(blocks), dtype=torch.uint8), page, blocks)
    assert pool.buffer.numel() > 2**31
    ring = Ring(pool, torch.tensor([blocks - 1]), ring_after(70, 64))
    pool.owned[blocks - 1] = (torch.arange(37_440) % 249).to(torch.uint8)
    table = torch.tensor([blocks - 2])
    rolled, share = quick.window_roll_measured(ring, 6, 70, Boundary(70, 64), pool, table, 64, "packed")
    expected = gather_slots(pool, ring.table, torch.arange(6, 70) % 64)
    assert torch.equal(expected, gather_slots(pool, table, torch.arange(64)))
    assert partial(expected) == share
    assert 64 * 584 == rolled.bytes
