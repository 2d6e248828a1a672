"""`window_roll` against real caches: the state of a sliding layer, and a model that continues from a rolled ring."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import DynamicCache  # noqa: E402
from transformers.cache_utils import DynamicSlidingWindowLayer  # noqa: E402

from hitproof.kernels.jobs import Held, Job, RepairFault  # noqa: E402
from hitproof.kernels.numbers import decode, encode, plain_row  # noqa: E402
from hitproof.kernels.run import run_repair  # noqa: E402
from hitproof.kernels.spans import gather_slots, scatter_slots  # noqa: E402
from hitproof.kernels.window_roll import Boundary, Ring, ring_after, window_roll  # noqa: E402
from hitproof.spec.errors import TensorError  # noqa: E402
from tests.kernels.stored_prefix import (  # noqa: E402
    cache_of,
    cache_rows,
    error_in_logits,
    held_rows,
    numbers,
    request,
    room_for,
)
from tests.kernels.tiny_models import WINDOW, logits, random_tokens, tiny  # noqa: E402

PREFIX, SUFFIX = 130, 24
SAME, OTHER = 1e-5, 1e-2
FORM = plain_row("fp32", 16)


def all_rows(count: int, seed: int) -> Any:
    """[T, 2, 16] keys of a whole history."""
    return torch.randn(count, 2, 16, generator=torch.Generator().manual_seed(seed))


def ring_of(rows: Any, slots: int) -> Ring:
    """A ring into which the whole history was written, the youngest rows over the oldest."""
    held = room_for(0, slots, 1, FORM, 2)
    positions = ring_after(rows.shape[0], slots)
    lies = positions >= 0
    scatter_slots(held.layers[0], held.table, torch.nonzero(lies).flatten(), encode(rows[positions[lies]], FORM))
    return Ring(held.layers[0], held.table, positions)


def rolled_rows(ring: Ring, start: int, end: int, length: int, window: int, order: Any) -> Any:
    """[M, 2, 16]: what the query at a length reads off a rolled copy."""
    copy = room_for(0, max(end - start, 1), 1, FORM, 2, seed=5)
    boundary = Boundary(length, window)
    rolled = window_roll(ring, start, end, boundary, copy.layers[0], copy.table, copy.count, order)
    return decode(gather_slots(copy.layers[0], copy.table, rolled.window), FORM)


@settings(max_examples=40)
@given(
    window=st.integers(2, 40),
    chunks=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    spare=st.integers(0, 12),
    back=st.integers(0, 12),
    order=st.sampled_from(["by_position", "packed"]),
)
def test_a_roll_is_the_state_of_a_sliding_layer(
    window: int, chunks: list[int], spare: int, back: int, order: Any
) -> None:
    """However a prefix came in, and however far it is taken back, the layer's rows are those of a rolled ring."""
    count = sum(chunks)
    back = min(back, spare, count)
    rows = all_rows(count, seed=window)
    layer = DynamicSlidingWindowLayer(window)
    layer.activate_past_recording()
    for part in rows.split(chunks):
        layer.update(part.transpose(0, 1)[None], part.transpose(0, 1)[None])
    layer.crop(-back)
    ring = ring_of(rows, window - 1 + spare)
    start = max(0, count - (window - 1 + spare))
    made = rolled_rows(ring, start, count, count - back, window, order)
    assert torch.equal(layer.keys[0].transpose(0, 1), made)


def test_what_the_ring_has_overwritten_is_not_rolled() -> None:
    """One token more than the ring has to spare, and the boundary is out of reach: an error and no older rows."""
    ring = ring_of(all_rows(60, seed=1), WINDOW - 1 + 4)
    start = 60 - (WINDOW - 1 + 4)
    assert WINDOW - 1 == rolled_rows(ring, start, 60, 56, WINDOW, "packed").shape[0]
    with pytest.raises(TensorError, match="beyond"):
        rolled_rows(ring, start, 60, 55, WINDOW, "packed")
    with pytest.raises(TensorError, match="lost"):
        rolled_rows(ring, start - 1, 60, 55, WINDOW, "packed")


class Moved:
    """A prefix whose rings a continuation of other tokens has moved on; everything lies in blocks."""

    def __init__(self, name: str, seed: int, spare: int, moved: int) -> None:
        self.model, self.end = tiny(name, seed=seed), PREFIX + moved
        self.tokens, others = random_tokens(PREFIX + SUFFIX, seed), random_tokens(moved, seed + 50)
        cache = DynamicCache(config=self.model.config)
        for layer in cache.layers:
            if layer.is_sliding:
                # The cache keeps all rows, and the rings below keep what rings keep of them.
                layer.activate_past_recording()
        logits(self.model, self.tokens[:, :PREFIX], cache)
        logits(self.model, others, cache)
        self.slots = WINDOW - 1 + spare
        self.sliding = [i for i, layer in enumerate(cache.layers) if layer.is_sliding]
        self.global_ = [i for i in range(len(cache.layers)) if i not in self.sliding]
        self.full = held_rows(cache_rows(cache, self.global_), 0)
        kept = ring_after(self.end, self.slots)
        # The rows of a ring lie by slot: `start` has no meaning for it.
        self.rings = held_rows([rows[kept] for rows in cache_rows(cache, self.sliding)], 0)

    def rolled(self, boundary: Boundary, lost: int = 0) -> Held:
        """All rings after `window_roll`, oldest row first; with `lost`, asked for rows that were written over."""
        start = self.end - self.slots - lost
        copy = room_for(start, self.slots, len(self.rings.layers), self.rings.form, 2, seed=3)
        facts = {"start": start, "end": self.end, "position": self.end, "write_sequence": 8}
        job = Job(self.rings, copy, {"window_boundary": boundary}, {"into_order": "packed"})
        done = run_repair(request("window_roll", PREFIX, boundary.first, PREFIX, facts), job)
        assert (boundary.version, 9, 9) == tuple(
            done.assigned[name] for name in ("boundary_version", "write_sequence", "committed_sequence")
        )
        return copy

    def continued(self, windows: dict[int, tuple[Any, Any]]) -> Any:
        """Logits of the suffix behind these windows, with the full layers' rows of the prefix."""
        full = {
            layer: (numbers(self.full, 2 * place, 0, PREFIX), numbers(self.full, 2 * place + 1, 0, PREFIX))
            for place, layer in enumerate(self.global_)
        }
        return logits(self.model, self.tokens[:, PREFIX:], cache_of(self.model, PREFIX, {**full, **windows}))

    def windows(self, held: Held, first: int, to: int) -> dict[int, tuple[Any, Any]]:
        """Keys and values [first, to) of every sliding layer, by the rows of the blocks."""
        return {
            layer: (numbers(held, 2 * place, first, to), numbers(held, 2 * place + 1, first, to))
            for place, layer in enumerate(self.sliding)
        }

    def cold(self) -> Any:
        """Logits of the suffix when everything is computed."""
        return logits(self.model, self.tokens, DynamicCache(config=self.model.config))[PREFIX:]


@pytest.mark.parametrize("moved", [1, 7, 16])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
def test_a_rolled_ring_answers_as_a_cold_run(name: str, seed: int, moved: int) -> None:
    """After another continuation moved the rings, a roll back to the prefix gives the logits of a cold run."""
    case = Moved(name, seed, spare=16, moved=moved)
    copy = case.rolled(Boundary(PREFIX, WINDOW, version="w1"))
    windows = case.windows(copy, PREFIX - WINDOW + 1, PREFIX)
    assert error_in_logits(case.continued(windows), case.cold()) < SAME


@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
def test_a_ring_that_was_not_rolled_answers_otherwise(name: str) -> None:
    """Control: the youngest rows of the moved ring, and its rows as they lie, are both far from a cold run."""
    case = Moved(name, 0, spare=16, moved=7)
    copy = case.rolled(Boundary(PREFIX, WINDOW, version="w1"))
    cold = case.cold()
    youngest = case.windows(copy, case.end - WINDOW + 1, case.end)
    as_they_lie = case.windows(case.rings, 0, WINDOW - 1)
    assert error_in_logits(case.continued(youngest), cold) > OTHER
    assert error_in_logits(case.continued(as_they_lie), cold) > OTHER


def test_a_continuation_that_went_too_far_leaves_no_source() -> None:
    """Once a row of the segment was written over, the source is lost, and the copy stays as it was."""
    case = Moved("gemma3", 0, spare=4, moved=5)
    with pytest.raises(RepairFault) as fault:
        case.rolled(Boundary(PREFIX, WINDOW, version="w1"), lost=1)
    assert "source_lost" == fault.value.status
