"""SGLang's real radix cache behind the gate, with faults in its pages, tables and keys."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("with_sglang")

PAGE = 4
PROMPT = (1, 2, 3, 4, 5, 6)
LONGER = (*PROMPT, 7)
HIT = len(PROMPT) * PAGE


def small_cache(verify: str | None = "use") -> Any:
    """A cache with one prompt in it, served twice."""
    from .small_cache import SmallCache

    made = SmallCache(verify)  # type: ignore[arg-type]
    assert (0, True) == made.serve(PROMPT)
    return made


def tear(small: Any, rows: torch.Tensor) -> None:
    """One number of a page of the full pool was overwritten."""
    small.pool.full_kv_pool.v_buffer[1][rows[PAGE + 1], 1, 7] = -1


def give_away(small: Any, rows: torch.Tensor) -> None:
    """The last window page goes to another owner, who writes into it."""
    inner = small.allocator.swa_attn_allocator
    page = small.allocator.translate_loc_from_full_to_swa(rows)[-PAGE:][:1] // PAGE
    free, inner.free_pages = inner.free_pages, page
    given = inner.alloc(PAGE)
    inner.free_pages = free
    for half in (*small.pool.swa_kv_pool.k_buffer, *small.pool.swa_kv_pool.v_buffer):
        half[given] = -2


def lead_astray(small: Any, rows: torch.Tensor) -> None:
    """The window's table leads one page back."""
    window = small.allocator.translate_loc_from_full_to_swa(rows)
    small.allocator.set_full_to_swa_mapping(rows[-PAGE:], window[-2 * PAGE : -PAGE].clone())


FAULTS = {"torn": tear, "stale": give_away, "moved": lead_astray}


class TestFaults:
    """Each fault, with the gate and without."""

    def test_a_faultless_hit_is_as_long_as_without_the_gate(self) -> None:
        """And what the gate counts is what was reused."""
        gated, plain = small_cache(), small_cache(None)
        assert (HIT, True) == gated.serve(LONGER) == plain.serve(LONGER)
        state = gated.cache.tally.state()
        assert (HIT, HIT, 0) == (state["logical"], state["effective"], state["recomputed"])

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_planted_fault_is_used_without_the_gate_and_refused_with_it(self, fault: str) -> None:
        """Logical hits stay, effective ones fall."""
        plain, gated = small_cache(None), small_cache()
        for small in (plain, gated):
            FAULTS[fault](small, small.path(PROMPT))
        assert (HIT, False) == plain.serve(LONGER)
        reused, right = gated.serve(LONGER)
        assert right and reused < HIT
        state = gated.cache.tally.state()
        assert (HIT, reused, HIT - reused) == (state["logical"], state["effective"], state["recomputed"])

    def test_pages_of_another_adapter_are_refused(self) -> None:
        """An adapter that the tree's keys leave out is still told apart."""
        plain, gated = small_cache(None), small_cache()
        other = (9, 8, 7, 6, 5, 4)
        for small in (plain, gated):
            small.serve(other, adapter="a", filed="nobody")
        assert (HIT, False) == plain.serve((*other, 1), adapter="b", filed="nobody")
        assert (0, True) == gated.serve((*other, 1), adapter="b", filed="nobody")

    def test_weights_that_were_replaced_without_a_flush_end_every_hit(self) -> None:
        """What the old weights computed is not used by the new ones."""
        from hitproof.integrations.sglang.identity import weights_changed

        gated = small_cache()
        weights_changed()
        assert (0, True) == gated.serve(LONGER)
        assert (HIT + PAGE, True) == gated.serve((*LONGER, 8))

    def test_a_torn_page_leaves_the_tree_and_its_prompt_is_cached_anew(self) -> None:
        """The next request has its hit back."""
        gated = small_cache()
        tear(gated, gated.path(PROMPT))
        gated.serve(LONGER)
        assert (HIT + PAGE, True) == gated.serve((*LONGER, 8))
        gated.cache.sanity_check()

    @pytest.mark.parametrize("fault", ["stale", "moved"])
    def test_a_page_that_others_may_hold_is_never_freed(self, fault: str) -> None:
        """It stays where it is, is refused again, and whoever was refused does not join it."""
        gated = small_cache()
        FAULTS[fault](gated, gated.path(PROMPT))
        before = gated.allocator.swa_attn_allocator.available_size()
        for _ in range(2):
            assert (True, True) == (gated.serve(LONGER)[0] < HIT, gated.serve(LONGER)[1])
        assert before == gated.allocator.swa_attn_allocator.available_size()

    def test_an_emptied_tree_promises_nothing(self) -> None:
        """After a flush nothing is found, and new pages are as good as ever."""
        gated = small_cache()
        gated.allocator.clear()
        gated.cache.reset()
        assert (0, True) == gated.serve(PROMPT)
        assert (HIT, True) == gated.serve(LONGER)


PROMPTS = st.lists(st.integers(0, 1), min_size=1, max_size=7).map(tuple)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("serve"), PROMPTS, st.sampled_from([None, "a"])),
        st.tuples(st.just("evict"), st.integers(1, 30), st.none()),
        st.tuples(st.sampled_from(sorted(FAULTS)), PROMPTS, st.sampled_from([None, "a"])),
    ),
    max_size=14,
)


class TestHistories:
    """Random histories on SGLang's own classes."""

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(STEPS)
    def test_what_is_reused_is_what_would_have_been_computed(self, steps: list[tuple[str, Any, Any]]) -> None:
        """Whatever was served, evicted and damaged before."""
        from sglang.srt.mem_cache.base_prefix_cache import EvictParams

        from .small_cache import SmallCache

        small = SmallCache("use")
        for kind, what, adapter in steps:
            if kind == "serve":
                assert small.serve(what, adapter)[1]
            elif kind == "evict":
                if not small.damaged:
                    small.cache.evict(EvictParams(num_tokens=what * PAGE))
            else:
                rows = small.path(what, adapter)
                if len(rows) >= 2 * PAGE and (small.window_of(rows) > 0).all():
                    FAULTS[kind](small, rows)
                    # Where two hold one page, SGLang's own eviction frees it for both.
                    small.damaged |= kind != "torn"

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(STEPS)
    def test_without_faults_every_hit_is_as_long_as_without_the_gate(self, steps: list[tuple[str, Any, Any]]) -> None:
        """The gate refuses nothing that is in order."""
        from sglang.srt.mem_cache.base_prefix_cache import EvictParams

        from .small_cache import SmallCache

        gated, plain = SmallCache("use"), SmallCache(None)
        for kind, what, adapter in steps:
            if kind == "serve":
                assert plain.serve(what, adapter) == gated.serve(what, adapter)
            elif kind == "evict":
                for small in (gated, plain):
                    small.cache.evict(EvictParams(num_tokens=what * PAGE))
