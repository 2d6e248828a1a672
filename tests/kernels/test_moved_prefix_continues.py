"""A whole prefix is verified, brought back or laid out anew, and the model goes on as if nothing had happened.

Everything that the model's own cache holds is written into blocks: keys and values of windows and of all tokens, and of
DeepSeek-V4 also entries, index keys and compressor states. The cache is thrown away, each group is repaired by a
request, and a new cache is made of the copies alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.kernels.blocks import Geometry, Pool, gather, scatter  # noqa: E402
from hitproof.kernels.jobs import Held, RepairFault  # noqa: E402
from hitproof.kernels.numbers import encode  # noqa: E402
from hitproof.kernels.promote import Manifest  # noqa: E402
from hitproof.kernels.selftest.slow import slow_fingerprint  # noqa: E402
from tests.kernels.whole_cache import OTHER, SAME, Group, measured, mended, plain, prefix_of, read, room, store  # noqa: E402

MODELS = ["gemma3", "gpt_oss", "v4"]


def by_loops(model: str, group: Group) -> str:
    """The fingerprint of the rows as the model made them, before they were in any block."""
    rows = prefix_of(model).rows
    return slow_fingerprint([encode(rows[place], group.held.form) for place in group.places])


def largest(groups: list[Group]) -> Group:
    """The group with most rows."""
    return max(groups, key=lambda group: group.held.count * len(group.places))


class TestChecksum:
    """Rows are measured where they lie."""

    @pytest.mark.parametrize("model", MODELS)
    def test_a_verified_prefix_answers_as_a_cold_run(self, model: str) -> None:
        """Every group has the fingerprint of the rows as the model made them, and the logits are the cold ones."""
        groups = store(prefix_of(model).rows)
        assert [by_loops(model, group) for group in groups] == [measured(group) for group in groups]
        assert prefix_of(model).error(read(groups)) < SAME

    @pytest.mark.parametrize("model", MODELS)
    def test_a_torn_copy_is_noticed(self, model: str) -> None:
        """Where the last rows of a block are still another prompt's, the fingerprint is another, and the answer too."""
        groups, older = store(prefix_of(model).rows), store(prefix_of(model, seed=1).rows)
        torn, whole = largest(groups), [measured(group) for group in groups]
        place = groups.index(torn)
        block = int(torn.held.table[-1])
        rows = (torn.held.count - 1) % 16 + 1
        for pool, other in zip(torn.held.layers, older[place].held.layers, strict=True):
            pool.cells[block, rows // 2 : rows] = other.cells[block, rows // 2 : rows]
        now = [measured(group) for group in groups]
        assert [place] == [i for i, taken in enumerate(now) if taken != whole[i]]
        assert prefix_of(model).error(read(groups)) > OTHER


def demoted(group: Group) -> tuple[Group, str]:
    """The group in a staging buffer, every block of it at an odd byte, and what was recorded of it before.

    What it lay in is overwritten.
    """
    recorded = measured(group)
    shape = group.held.layers[0].geometry
    odd = replace(shape, offset=7, stride=shape.stride + 6)
    staging = replace(room(group.held, lambda *_: odd), tags={"form": "demoted", "tier": "host", "published": True})
    for pool, lower in zip(group.held.layers, staging.layers, strict=True):
        scatter(lower, staging.table, gather(pool, group.held.table, group.held.count))
        pool.buffer.fill_(0xFF)
    return replace(group, held=staging), recorded


def promoted(group: Group, recorded: str) -> tuple[Group, Any]:
    """Brought back into blocks of its own."""
    manifest = Manifest(group.held.count, torch.ones(group.held.table.numel(), dtype=torch.bool))
    sources = {"demoted_prefix": manifest}
    return mended("promote", group, room(group.held, plain), sources, recorded=recorded)


class TestPromote:
    """Rows come back from a staging buffer at an odd byte."""

    @pytest.mark.parametrize("model", MODELS)
    def test_a_prefix_that_came_back_answers_as_a_cold_run(self, model: str) -> None:
        """All groups are promoted, their fingerprints measured on the way, and the logits are the cold ones."""
        back = []
        for group in store(prefix_of(model).rows):
            lower, recorded = demoted(group)
            assert lower.held.address % 2 == 1
            copy, done = promoted(lower, recorded)
            assert recorded == done.measured["measured"] == measured(copy)
            assert ("full", "device", 7) == tuple(done.assigned[name] for name in ("form", "tier", "pool_epoch"))
            back.append(copy)
        assert prefix_of(model).error(read(back)) < SAME

    @pytest.mark.parametrize("model", MODELS)
    def test_a_flipped_byte_is_refused(self, model: str) -> None:
        """Any group with a byte that changed in staging is refused, though the rest came back whole."""
        for group in store(prefix_of(model).rows):
            lower, recorded = demoted(group)
            pool = lower.held.layers[-1]
            last = lower.held.count - 1
            pool.cells[int(lower.held.table[last // 16]), last % 16, 0, 0, 0] ^= 1
            with pytest.raises(RepairFault, match=recorded) as fault:
                promoted(lower, recorded)
            assert "failed" == fault.value.status

    @pytest.mark.parametrize("model", MODELS)
    def test_unverified_the_flip_would_have_been_used(self, model: str) -> None:
        """Control: brought back without a recorded fingerprint, a spoiled block leads to other logits."""
        back = []
        groups = store(prefix_of(model).rows)
        spoiled = largest(groups)
        for group in groups:
            lower, _ = demoted(group)
            if group is spoiled:
                # A bit of the exponent: each row's first value becomes 16 times as large or as small.
                cells = lower.held.layers[0].cells
                cells[int(lower.held.table[0]), :, :, 0, 3] ^= 2
            manifest = Manifest(lower.held.count, torch.ones(lower.held.table.numel(), dtype=torch.bool))
            back.append(mended("promote", lower, room(lower.held, plain), {"demoted_prefix": manifest})[0])
        assert prefix_of(model).error(read(back)) > OTHER


def strange(heads: int, cell: int) -> Geometry:
    """Blocks of 5 rows, head by head, with a pitch and a first byte of their own."""
    return Geometry(5, heads, cell, "head_major", pitch=cell + 12, block_bytes=5 * heads * (cell + 12) + 20, offset=3)


class TestRelayout:
    """Rows lie head by head in blocks of 5, and the reader wants them by token in blocks of 16."""

    @pytest.mark.parametrize("model", MODELS)
    def test_a_prefix_laid_out_anew_answers_as_a_cold_run(self, model: str) -> None:
        """All groups keep their fingerprint in the reader's layout, and the logits are the cold ones."""
        groups = store(prefix_of(model).rows, strange)
        copies = []
        for group in groups:
            copy, done = mended("relayout", group, room(group.held, plain), {})
            assert by_loops(model, group) == done.measured["measured"]
            assert ("layout of the copy", 7) == tuple(done.assigned[name] for name in ("layout", "pool_epoch"))
            copies.append(copy)
        assert prefix_of(model).error(read(copies)) < SAME

    @pytest.mark.parametrize("model", MODELS)
    def test_the_same_bytes_in_the_reader_s_layout_answer_otherwise(self, model: str) -> None:
        """Control: where the reader takes the bytes for its own layout, the logits are far from a cold run."""
        # No NaN in the gaps, which would be found by any comparison.
        groups = store(prefix_of(model).rows, strange, poison=0x3C)
        assert prefix_of(model).error(read(groups)) < SAME
        wrong = [replace(group, held=misread(group.held)) for group in groups]
        assert prefix_of(model).error(read(wrong)) > OTHER


def misread(held: Held) -> Held:
    """The same buffers from the same first byte, as if rows lay by token in blocks of 16."""
    geometry = held.layers[0].geometry
    wanted = replace(plain(geometry.heads, geometry.cell_bytes), offset=geometry.offset)
    blocks = -(-held.count // wanted.rows)
    room_left = torch.full((wanted.extent(blocks),), 0x3C, dtype=torch.uint8)
    layers = tuple(Pool(torch.cat([pool.buffer, room_left]), wanted, blocks) for pool in held.layers)
    return replace(held, layers=layers, table=torch.arange(blocks))
