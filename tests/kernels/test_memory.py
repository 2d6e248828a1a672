"""The memory of torch tensors equals the plain one, and its pools stay where they are."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from hitproof.engine.cache.plain_memory import PlainMemory  # noqa: E402
from hitproof.kernels.blocks import gather  # noqa: E402
from hitproof.kernels.checksum import fingerprint  # noqa: E402
from hitproof.kernels.memory import TorchMemory  # noqa: E402
from hitproof.kernels.memory_pool import LayeredPool  # noqa: E402
from hitproof.rules.bind import bind_rulebook  # noqa: E402
from hitproof.rules.profiles import load_profile, shipped_profiles  # noqa: E402
from hitproof.rules.profiles.slim import slimmed  # noqa: E402
from hitproof.rules.resolve import load_rulebook  # noqa: E402
from hitproof.spec.errors import TensorError, UsageError  # noqa: E402
from hitproof.spec.memory import Extent  # noqa: E402
from tests.memory_story import BLOCKS, SHAPES, answers, small_model, stories  # noqa: E402

DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


@pytest.mark.parametrize("device", DEVICES)
@given(story=stories())
def test_equals_the_plain_memory(device: str, story: list[Any]) -> None:
    """Any story of calls gives the same answers and the same bytes in both memories."""
    memory = TorchMemory(small_model(), BLOCKS, device)
    assert answers(PlainMemory(small_model(), BLOCKS), story) == answers(memory, story)


@given(story=stories())
def test_moving_by_table_equals_moving_block_by_block(story: list[Any]) -> None:
    """The way that a GPU goes for many blocks, on a CPU: the same answers and the same bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LayeredPool, "by_table", lambda pool, blocks: len(blocks) > 0)
        by_table = answers(TorchMemory(small_model(), BLOCKS), story)
    assert answers(PlainMemory(small_model(), BLOCKS), story) == by_table


@given(story=stories())
def test_padding_is_never_written(story: list[Any]) -> None:
    """Whatever is written, the bytes around the rows of all blocks of all layers stay."""
    memory = TorchMemory(small_model(), BLOCKS)
    for group in SHAPES:
        for pool in memory.layers(group):
            pool.buffer.fill_(0xA5)
    answers(memory, story)
    for group, shape in SHAPES.items():
        for pool in memory.layers(group):
            beside = pool.buffer.view(shape.blocks, shape.stride)[:, shape.rows * shape.row_bytes :]
            assert (beside == 0xA5).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("profile", shipped_profiles())
def test_blocks_of_every_model_are_aligned(profile: str, device: str) -> None:
    """Each layer's first block lies on the group's alignment, strides apart as the plain memory has them."""
    bound = bind_rulebook(load_rulebook("mixed_attention"), slimmed(load_profile(profile), 2))
    memory, plain = TorchMemory(bound, 2, device), PlainMemory(bound, 2)
    assert plain.groups() == memory.groups()
    for group in memory.groups():
        shape = memory.shape(group)
        assert plain.shape(group) == shape
        bases = [one.base for one in memory.captured(group)]
        assert [0] * shape.layers == [base % shape.alignment for base in bases]
        assert bases[0] + shape.stride == memory.address(group, 1)


@given(story=stories())
def test_pools_stay_where_they_are(story: list[Any]) -> None:
    """No call moves a pool or changes its type, stride or size, so a graph may be captured over it."""
    memory = TorchMemory(small_model(), BLOCKS)
    before = {group: memory.captured(group) for group in memory.groups()}
    answers(memory, story)
    assert before == {group: memory.captured(group) for group in memory.groups()}
    assert 0 == memory.epoch


def test_rebuilding_is_a_new_epoch_of_empty_pools() -> None:
    """Only rebuilding moves the epoch; what was held before is gone, and shapes stay."""
    memory = TorchMemory(small_model(), BLOCKS)
    extent, shape = Extent("keys", (2,), 2), SHAPES["keys"]
    memory.write(extent, 0, b"\x01" * shape.payload_bytes(2))
    memory.rebuild()
    assert 1 == memory.epoch
    assert bytes(shape.payload_bytes(2)) == memory.read(extent)
    assert SHAPES == {group: memory.shape(group) for group in memory.groups()}
    for group in memory.groups():
        assert 0 == memory.captured(group)[0].base % SHAPES[group].alignment


@given(st.sampled_from(sorted(SHAPES)), st.permutations(range(BLOCKS)), st.integers(1, BLOCKS), st.randoms())
def test_fingerprint_is_that_of_the_repair(group: str, order: list[int], rows: int, random: Any) -> None:
    """What is measured here is what `checksum` measures of the same pools, layers as heads."""
    memory, shape = TorchMemory(small_model(), BLOCKS), SHAPES[group]
    extent = Extent(group, tuple(order[: shape.blocks_for(rows)]), rows)
    memory.write(extent, 0, random.randbytes(shape.payload_bytes(rows)))
    parts = [gather(pool, torch.tensor(extent.blocks), rows) for pool in memory.layers(group)]
    assert fingerprint(torch.cat(parts, dim=1)) == memory.fingerprint(extent)


@pytest.mark.parametrize("group", sorted(SHAPES))
def test_fingerprint_of_many_rows_has_no_seam(group: str) -> None:
    """More words than are mixed at a time give what the plain memory measures, in one layer and in several."""
    count, shape = 9000, SHAPES[group]
    blocks = {other: shape.blocks_for(count) if other == group else 1 for other in SHAPES}
    extent = Extent(group, tuple(reversed(range(blocks[group]))), count)
    payload = bytes(place * 7 % 251 for place in range(shape.payload_bytes(count)))
    found = []
    for memory in (PlainMemory(small_model(), blocks), TorchMemory(small_model(), blocks)):
        memory.write(extent, 0, payload)
        found.append(memory.fingerprint(extent))
    assert found[0] == found[1]


@settings(max_examples=5)
@given(st.sampled_from(sorted(SHAPES)), st.permutations(range(BLOCKS)), st.integers(0, BLOCKS), st.randoms())
def test_kernel_measures_rows_where_they_lie(group: str, order: list[int], rows: int, random: Any) -> None:
    """The kernel, interpreted, measures what PyTorch measures of gathered rows."""
    plain, kernel = (TorchMemory(small_model(), BLOCKS, "cpu", backend) for backend in ("torch", "interpret"))
    extent = Extent(group, tuple(order), rows)
    payload = random.randbytes(SHAPES[group].payload_bytes(rows))
    for memory in (plain, kernel):
        memory.write(extent, 0, payload)
    assert plain.fingerprint(extent) == kernel.fingerprint(extent)


def test_fence_of_a_processor_is_done_at_once() -> None:
    """Calls on a CPU are complete when they return."""
    fence = TorchMemory(small_model(), BLOCKS).fence()
    fence.wait()
    assert fence.done()


def _refused(memory: TorchMemory) -> list[Any]:
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
        lambda: memory.payload(PlainMemory(small_model(), 1).host("full", 3)),
        lambda: memory.poison("full", (BLOCKS,)),
        lambda: TorchMemory(small_model(), {"full": 1}),
    ]


@pytest.mark.parametrize("case", range(16))
def test_what_does_not_fit_is_refused(case: int) -> None:
    """Blocks that are not there, payloads of another size and buffers of another memory are typed errors."""
    cases = _refused(TorchMemory(small_model(), BLOCKS))
    assert 16 == len(cases)
    with pytest.raises(TensorError):
        cases[case]()


@pytest.mark.skipif("cuda" in DEVICES, reason="there is a GPU")
def test_a_device_that_is_missing_is_told() -> None:
    """Asking for a GPU where torch sees none is a mistake of the caller."""
    with pytest.raises(UsageError):
        TorchMemory(small_model(), BLOCKS, "cuda")
