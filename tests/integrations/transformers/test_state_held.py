"""What a live cache holds is told truly, and what it does not hold is not handed out."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from transformers import DynamicCache  # noqa: E402

from hitproof.integrations.transformers.state import NotHeldError, StateMap  # noqa: E402
from hitproof.integrations.transformers.tiny import NAMES, random_tokens, tiny_model  # noqa: E402
from hitproof.spec.errors import TensorError, UsageError  # noqa: E402
from tests.integrations.transformers.live import (  # noqa: E402
    SAME,
    STEPWISE,
    SUFFIX,
    copied,
    error,
    logits,
    made,
    prefilled,
    tokens_of,
)

RECURRENT = ("nemotron-h", "qwen3-next")


@pytest.mark.parametrize("name", NAMES)
class TestEveryModel:
    """All groups of a model."""

    def test_an_empty_cache_holds_nothing(self, name: str) -> None:
        """Neither a fresh one nor one that was reset."""
        state, past = made(name)[1], prefilled(name, 30)
        past.reset()
        for cache in (state.fresh(), past):
            assert {(0, 0)} == {state.held(cache, group) for group in state.groups}

    def test_rows_that_are_not_held_are_refused(self, name: str) -> None:
        """Those of later tokens in any group, and the error says which are there."""
        state, past = made(name)[1], prefilled(name, 131)
        for group in state.groups:
            start, _ = state.held(past, group)
            with pytest.raises(NotHeldError) as caught:
                state.rows(past, group, start, 131 + 128)
            assert group == caught.value.rule

    def test_a_batch_has_rows_of_its_own(self, name: str) -> None:
        """Each row of a batch gives the rows of its own prompt, and a stack of copies continues as the batch does."""
        tiny, state = made(name)
        tokens = tokens_of(batch=3)
        past = prefilled(name, 131, tokens)
        alone = [prefilled(name, 131, tokens[row : row + 1]) for row in range(3)]
        for group in state.groups:
            for row, one in enumerate(alone):
                span = state.held(one, group)
                got, wanted = (
                    torch.frombuffer(bytearray(part), dtype=torch.float32)
                    for part in (state.rows(past, group, *span, row), state.rows(one, group, *span))
                )
                torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
        stacked = state.stack([copied(state, past, row) for row in range(3)])
        assert state.held(past, state.groups[-1]) == state.held(stacked, state.groups[-1])
        rest = tokens[:, 131 : 131 + SUFFIX]
        assert torch.equal(logits(tiny, rest, past), logits(tiny, rest, stacked))

    def test_what_generate_left_behind_continues(self, name: str) -> None:
        """Rows of a cache that `generate()` filled make a cache that answers as a cold run of the same tokens."""
        tiny, state = made(name)
        past = state.fresh()
        ids = tiny.model.generate(tokens_of()[:, :70], max_new_tokens=9, do_sample=False, cache=past, eos_token_id=None)
        seen = state.length(past)
        assert ids.shape[1] - 1 == seen
        assert all(seen - 4 < state.held(past, group)[1] <= seen or group == "hca_entries" for group in state.groups)
        tokens = torch.cat([ids[:, :seen], random_tokens(SUFFIX, 9)], dim=1)
        cold = logits(tiny, tokens, state.fresh())[0, seen:]
        got = logits(tiny, tokens[:, seen:], copied(state, past))[0]
        assert error(got, cold) <= STEPWISE[name]

    def test_missing_rows_are_named(self, name: str) -> None:
        """A group that was not handed over, or not wholly, is refused where the length reads it."""
        state, past = made(name)[1], prefilled(name, 131)
        for left_out in state.groups:
            new = state.fresh()
            for group in state.groups:
                start, end = state.held(past, group)
                if group != left_out:
                    state.install(new, group, start, end, state.rows(past, group, start, end))
            with pytest.raises(NotHeldError) as caught:
                state.finish(new, 131)
            assert left_out == caught.value.rule

    def test_unchecked_nothing_is_asked_for(self, name: str) -> None:
        """What was not handed over is left out, and a state of another length goes in as it lies."""
        state, past = made(name)[1], prefilled(name, 130)
        new = state.fresh()
        for group in state.groups:
            start, end = state.held(past, group)
            state.install(new, group, start, end, state.rows(past, group, start, end))
        assert state.length(state.finish(new, 131, check=False)) in (130, 131)
        assert 0 <= state.length(state.finish(state.fresh(), 131, check=False)) <= 131


class TestWindows:
    """Rows of the last tokens."""

    @pytest.mark.parametrize(("name", "window"), [("deepseek-v4", 12), ("gemma-3", 12), ("gpt-oss", 16)])
    def test_a_window_keeps_all_but_one_of_its_rows(self, name: str, window: int) -> None:
        """The query is one of the W; earlier rows have slid out."""
        state = made(name)[1]
        for length in (1, window - 1, window, 131):
            past = prefilled(name, length)
            first = max(0, length - window + 1)
            assert (first, length) == state.held(past, "window")
            if first:
                with pytest.raises(NotHeldError):
                    state.rows(past, "window", first - 1, length)

    @pytest.mark.parametrize(("name", "window"), [("gemma-3", 12), ("gpt-oss", 16)])
    def test_a_recorded_past_is_held_and_cropped(self, name: str, window: int) -> None:
        """With the library's recording, more rows than the window's are there until a crop; both are told truly."""
        tiny, state = made(name)
        past = prefilled(name, 100)
        past.activate_past_recording()
        logits(tiny, tokens_of()[:, 100:131], past)
        assert (100 - window + 1, 131) == state.held(past, "window")
        past.crop(-11)
        assert (120 - window + 1, 120) == state.held(past, "window")
        cold = logits(tiny, tokens_of()[:, : 120 + SUFFIX], state.fresh())[0, 120:]
        got = logits(tiny, tokens_of()[:, 120 : 120 + SUFFIX], copied(state, past))[0]
        assert error(got, cold) <= SAME[name]

    def test_several_segments_make_one_window(self) -> None:
        """In any order, with more rows than are read, and with rows in two of them."""
        tiny, state = made("gemma-3")
        early, past = prefilled("gemma-3", 125), prefilled("gemma-3", 131)
        new = state.fresh()
        state.install(new, "window", 123, 131, state.rows(past, "window", 123, 131))
        state.install(new, "window", 114, 125, state.rows(early, "window", 114, 125))
        state.install(new, "full", 64, 131, state.rows(past, "full", 64, 131))
        state.install(new, "full", 0, 64, state.rows(past, "full", 0, 64))
        state.finish(new, 130)
        cold = logits(tiny, tokens_of()[:, : 130 + SUFFIX], state.fresh())[0, 130:]
        assert error(logits(tiny, tokens_of()[:, 130 : 130 + SUFFIX], new)[0], cold) <= SAME["gemma-3"]


class TestCrops:
    """The library takes rows away and leaves states where they are."""

    def test_a_v4_state_is_still_of_the_length_it_was_computed_at(self) -> None:
        """Inside the window a crop raises nothing; windows are shorter, states and entries are not."""
        state, past = made("deepseek-v4")[1], prefilled("deepseek-v4", 11)
        past.crop(-3)
        assert (0, 8) == state.held(past, "window")
        assert {"csa_state": (4, 11), "csa_index_state": (4, 11), "hca_state": (0, 11)} == {
            group: state.held(past, group) for group in ("csa_state", "csa_index_state", "hca_state")
        }
        assert (0, 8) == state.held(past, "csa_entries")
        with pytest.raises(NotHeldError):
            state.rows(past, "csa_state", 4, 8)

    @pytest.mark.parametrize("name", RECURRENT)
    def test_a_recurrent_state_is_still_of_the_length_it_was_computed_at(self, name: str) -> None:
        """The library's length is that of the attention rows; the state's is counted."""
        tiny, state = made(name)
        past = prefilled(name, 100)
        past.activate_past_recording()
        logits(tiny, tokens_of()[:, 100:131], past)
        past.crop(-11)
        assert (120, (0, 120), (131, 131)) == (
            state.length(past),
            state.held(past, "full"),
            state.held(past, "linear"),
        )
        with pytest.raises(NotHeldError):
            state.rows(past, "linear", 120, 120)
        logits(tiny, tokens_of()[:, 120:125], past)
        assert (136, 136) == state.held(past, "linear")

    # Its older name is told to be going away.
    @pytest.mark.filterwarnings("ignore:.past_key_values:FutureWarning")
    @pytest.mark.parametrize("name", RECURRENT)
    def test_tokens_are_counted_whoever_made_the_cache(self, name: str) -> None:
        """By the model itself, under its older name, and for a map that is made later."""
        tiny = made(name)[0]
        with torch.no_grad():
            own = tiny.model(tokens_of()[:, :20], use_cache=True).cache
        late = StateMap(tiny.model, tiny.profile)
        assert (20, 20) == late.held(own, "linear")
        with torch.no_grad():
            tiny.model(tokens_of()[:, 20:23], past_key_values=own, use_cache=True)
        assert (23, 23) == late.held(own, "linear")

    @pytest.mark.parametrize("name", RECURRENT)
    def test_a_state_that_nobody_counted_is_of_no_length(self, name: str) -> None:
        """What was computed before anybody watched, or was copied behind the map's back, is not handed out."""
        tiny = tiny_model(name)
        past = DynamicCache(config=tiny.model.config)
        logits(tiny, tokens_of()[:, :20], past)
        state = StateMap(tiny.model, tiny.profile)
        for _ in range(2):
            assert ((0, 0), (0, state.length(past))) == (state.held(past, "linear"), state.held(past, "full"))
            with pytest.raises(NotHeldError):
                state.rows(past, "linear", state.length(past), state.length(past))
            with pytest.raises(NotHeldError):
                state.rows(past, "linear", 0, 0)
            logits(tiny, tokens_of()[:, 20:30], past)

    def test_layers_that_a_crop_left_with_different_rows_are_told_apart(self) -> None:
        """V4's compressing layers keep no past, whatever is asked: of the window only what all layers have is held."""
        tiny, state = made("deepseek-v4")
        past = state.fresh()
        past.activate_past_recording()
        logits(tiny, tokens_of()[:, :131], past)
        past.crop(-6)
        assert [11, 5, 5, 5] == [layer.keys.shape[-2] for layer in past.layers]
        assert (120, 125) == state.held(past, "window")
        fresh = prefilled("deepseek-v4", 125)
        got, wanted = (
            torch.frombuffer(bytearray(state.rows(one, "window", 120, 125)), dtype=torch.float32)
            for one in (past, fresh)
        )
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
        with pytest.raises(NotHeldError):
            state.rows(past, "window", 119, 125)


class TestRefusals:
    """Bad usage is told."""

    def test_only_groups_with_rows_can_be_asked_for(self) -> None:
        """A record has none, and the error names those that do."""
        state = made("gemma-3")[1]
        for ask in (state.held, lambda cache, group: state.install(cache, group, 0, 1, b"")):
            with pytest.raises(UsageError) as caught:
                ask(state.fresh(), "window_boundary")
            assert "full, window" == caught.value.expected

    def test_a_payload_of_another_size_is_refused(self) -> None:
        """One byte more, one less, none."""
        state = made("gemma-3")[1]
        payload = state.rows(prefilled("gemma-3", 8), "full", 0, 8)
        for wrong in (payload + b"\0", payload[:-1], b""):
            with pytest.raises(TensorError):
                state.install(state.fresh(), "full", 0, 8, wrong)

    def test_a_cache_that_holds_something_is_not_made_anew(self) -> None:
        """Else its counters would be of two histories."""
        state, past = made("gemma-3")[1], prefilled("gemma-3", 8)
        with pytest.raises(UsageError):
            state.finish(past, 8)

    def test_only_equal_lengths_are_stacked(self) -> None:
        """A batch stands at one length; empty caches make an empty one."""
        state = made("gemma-3")[1]
        with pytest.raises(UsageError):
            state.stack([prefilled("gemma-3", 8), prefilled("gemma-3", 9)])
        with pytest.raises(UsageError):
            state.stack([])
        empty: Any = state.stack([state.fresh(), state.fresh()])
        assert 0 == state.length(empty)

    def test_a_length_of_nothing_is_an_empty_cache(self) -> None:
        """Whatever was handed over for it."""
        state = made("gemma-3")[1]
        assert 0 == state.length(state.finish(state.fresh(), 0))
