"""The plain memory does with bytes what the protocol says, at the addresses that it names."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.cache.plain_memory import PlainMemory
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile, shipped_profiles
from hitproof.rules.profiles.slim import slimmed
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.errors import TensorError
from hitproof.spec.memory import Extent
from tests.memory_story import (
    BLOCKS,
    SHAPES,
    answers,
    expected,
    fingerprint_by_hand,
    small_model,
    stories,
)


@given(stories())
def test_equals_a_dictionary_of_rows(story: list[Any]) -> None:
    """Any story of calls gives the answers and the bytes that a dictionary of rows gives."""
    assert expected(story) == answers(PlainMemory(small_model(), BLOCKS), story)


@given(stories())
def test_padding_is_never_written(story: list[Any]) -> None:
    """Whatever is written, the bytes between a block's last row and the next block stay."""
    memory = PlainMemory(small_model(), BLOCKS)
    for group, shape in SHAPES.items():
        ctypes.memset(memory.address(group, 0), 0xA5, shape.layers * shape.blocks * shape.stride)
    answers(memory, story)
    for group, shape in SHAPES.items():
        raw = ctypes.string_at(memory.address(group, 0), shape.layers * shape.blocks * shape.stride)
        for begin in range(0, len(raw), shape.stride):
            used = shape.rows * shape.row_bytes
            assert b"\xa5" * (shape.stride - used) == raw[begin + used : begin + shape.stride]


def test_geometry_is_that_of_the_constants() -> None:
    """Each group with bytes has a pool of its own shape, and a record without bytes none."""
    memory = PlainMemory(small_model(), BLOCKS)
    assert SHAPES == {group: memory.shape(group) for group in memory.groups()}


def test_rows_lie_at_their_address() -> None:
    """A row of the first layer is found in memory at the block's address, a row's length after the one before."""
    memory, shape = PlainMemory(small_model(), BLOCKS), SHAPES["full"]
    payload = bytes(range(shape.payload_bytes(6) % 256)) + bytes(shape.payload_bytes(6) - shape.payload_bytes(6) % 256)
    memory.write(Extent("full", (3, 1), 6), 0, payload)
    for row in range(6):
        block, inside = (3, 1)[row // 4], row % 4
        got = ctypes.string_at(memory.address("full", block) + inside * 13, 13)
        assert payload[row * 13 : row * 13 + 13] == got


@pytest.mark.parametrize("profile", shipped_profiles())
def test_blocks_of_every_model_are_aligned(profile: str) -> None:
    """Each block of each group of a slimmed model lies on the group's alignment, one stride after another."""
    bound = bind_rulebook(load_rulebook("mixed_attention"), slimmed(load_profile(profile)))
    memory = PlainMemory(bound, 2)
    for group in memory.groups():
        shape = memory.shape(group)
        addresses = [memory.address(group, block) for block in range(2)]
        assert [0, 0] == [address % shape.alignment for address in addresses]
        assert shape.stride == addresses[1] - addresses[0]


@pytest.mark.parametrize("group", sorted(SHAPES))
def test_fingerprint_of_many_rows_has_no_seam(group: str) -> None:
    """More words than are mixed at a time give the formula's sum, in one layer and in several."""
    count, shape = 9000, SHAPES[group]
    blocks = {other: shape.blocks_for(count) if other == group else 1 for other in SHAPES}
    memory, extent = PlainMemory(small_model(), blocks), Extent(group, tuple(reversed(range(blocks[group]))), count)
    payload = bytes(place * 7 % 251 for place in range(shape.payload_bytes(count)))
    memory.write(extent, 0, payload)
    assert fingerprint_by_hand(group, payload) == memory.fingerprint(extent) == memory.digest(group, payload)


@given(st.data())
def test_any_flipped_bit_changes_the_fingerprint(data: st.DataObject) -> None:
    """A bit that is flipped in memory, in any row of any layer, is seen."""
    memory, group = PlainMemory(small_model(), BLOCKS), data.draw(st.sampled_from(sorted(SHAPES)))
    shape = SHAPES[group]
    extent = Extent(group, tuple(range(shape.blocks)), shape.blocks * shape.rows)
    before = memory.fingerprint(extent)
    block, layer = data.draw(st.integers(0, shape.blocks - 1)), data.draw(st.integers(0, shape.layers - 1))
    byte = data.draw(st.integers(0, shape.rows * shape.row_bytes - 1))
    place = memory.address(group, block) + layer * shape.blocks * shape.stride + byte
    ctypes.memset(place, 1 << data.draw(st.integers(0, 7)), 1)
    assert before != memory.fingerprint(extent)


def _refused(memory: PlainMemory) -> list[Any]:
    extent, shape = Extent("full", (0,), 3), SHAPES["full"]
    host = memory.host("full", 3)
    return [
        lambda: memory.shape("prefix_manifest"),
        lambda: memory.read(Extent("full", (BLOCKS,), 1)),
        lambda: memory.read(Extent("full", (-1,), 1)),
        lambda: memory.read(Extent("full", (0,), 5)),
        lambda: memory.write(extent, 1, bytes(shape.payload_bytes(3))),
        lambda: memory.write(extent, 0, bytes(shape.payload_bytes(1) + 1)),
        lambda: memory.digest("full", bytes(1)),
        lambda: memory.copy(extent, Extent("full", (1,), 2)),
        lambda: memory.copy(extent, Extent("keys", (0, 1), 3)),
        lambda: memory.save(Extent("full", (0,), 2), host, (0,)),
        lambda: memory.save(extent, host, (1,)),
        lambda: memory.load(host, extent, (-1,)),
        lambda: memory.fill(host, bytes(1)),
        lambda: memory.payload(PlainMemory),  # type: ignore[arg-type]
        lambda: memory.poison("full", (BLOCKS,)),
        lambda: PlainMemory(small_model(), {"full": 1}),
    ]


@pytest.mark.parametrize("case", range(16))
def test_what_does_not_fit_is_refused(case: int) -> None:
    """Blocks that are not there, payloads of another size and buffers of another extent are typed errors."""
    cases = _refused(PlainMemory(small_model(), BLOCKS))
    assert 16 == len(cases)
    with pytest.raises(TensorError):
        cases[case]()


def test_needs_no_torch() -> None:
    """A process that uses the plain memory has not loaded torch."""
    code = "import sys, hitproof.engine.cache.plain_memory; sys.exit('torch' in sys.modules)"
    assert (
        0
        == subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
    )
