"""A cache made of nothing but rows continues as the uninterrupted run does."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.engine.load import load  # noqa: E402
from hitproof.integrations.transformers.tiny import NAMES  # noqa: E402
from hitproof.spec.rows import has_rows, pool_shape, rows_of  # noqa: E402
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

LENGTHS = (1, 3, 4, 5, 8, 11, 12, 13, 15, 16, 17, 63, 64, 66, 127, 128, 129, 131, 132, 255, 256, 258)
"""Inside and outside the windows of 12 and 16, on both sides of multiples of the ratios 4 and 128, and of chunks."""


def cold(name: str, length: int, dtype: Any = torch.float32) -> Any:
    """[SUFFIX, vocabulary]: what the whole prompt in one pass gives behind a length."""
    tiny, state = made(name, dtype)
    return logits(tiny, tokens_of()[:, : length + SUFFIX], state.fresh())[0, length:]


def continued(name: str, length: int, past: Any, dtype: Any = torch.float32) -> Any:
    """[SUFFIX, vocabulary]: what the tokens behind a length give in one pass behind a cache."""
    return logits(made(name, dtype)[0], tokens_of()[:, length : length + SUFFIX], past)[0]


@pytest.mark.parametrize("name", NAMES)
class TestEveryModel:
    """Prefill, take the rows, put them into a new cache, and go on."""

    @pytest.mark.parametrize("length", LENGTHS)
    def test_the_suffix_is_answered_as_in_a_cold_run(self, name: str, length: int) -> None:
        """And to the last bit as by the cache that the rows were taken from."""
        past = prefilled(name, length)
        answers = continued(name, length, copied(made(name)[1], past))
        assert error(answers, cold(name, length)) <= SAME[name]
        assert torch.equal(answers, continued(name, length, past))

    def test_it_goes_on_token_by_token(self, name: str) -> None:
        """Single tokens take other paths through the library: states are updated in place."""
        length, (tiny, state) = 131, made(name)
        past = prefilled(name, length)
        new = copied(state, past)
        steps, own = (
            torch.cat([logits(tiny, tokens_of()[:, at : at + 1], one)[0] for at in range(length, length + SUFFIX)])
            for one in (new, past)
        )
        assert torch.equal(own, steps)
        assert error(steps, cold(name, length)) <= STEPWISE[name]

    def test_rows_after_single_tokens_are_those_of_one_pass(self, name: str) -> None:
        """Whether tokens came at once or one by one, a cache made of the rows continues alike."""
        tiny, state = made(name)
        past, length = prefilled(name, 120), 133
        for at in range(120, length):
            logits(tiny, tokens_of()[:, at : at + 1], past)
        assert all(state.held(past, group)[1] in (length, length // 4 * 4, 128) for group in state.groups)
        assert error(continued(name, length, copied(state, past)), cold(name, length)) <= STEPWISE[name]

    def test_a_new_cache_has_the_rows_that_it_was_given(self, name: str) -> None:
        """To the byte, apart from the bias that is added to scores of states and taken off again."""
        state, past = made(name)[1], prefilled(name, 131)
        new = copied(state, past)
        for group in state.groups:
            assert state.held(past, group) == state.held(new, group)
            one, other = (state.rows(cache, group, *state.held(past, group)) for cache in (past, new))
            if group.endswith("_state"):
                got, wanted = (torch.frombuffer(bytearray(part), dtype=torch.float32) for part in (other, one))
                torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)
            else:
                assert one == other

    def test_rows_are_those_that_the_cache_manager_counts(self, name: str) -> None:
        """A payload has the bytes of the pool's rows, for spans that begin and end anywhere."""
        (tiny, state), past = made(name), prefilled(name, 131)
        for group in load(tiny.profile).bound.groups:
            if not has_rows(group) or group.id not in state.groups:
                continue
            start, end = state.held(past, group.id)
            for first in {start, end} if "state_bytes" in group.constants else range(start, end):
                rows = state.rows(past, group.id, first, end)
                assert pool_shape(group, 1).payload_bytes(rows_of(group, first, end)) == len(rows)

    def test_in_bfloat16_too(self, name: str) -> None:
        """The element type of the rows is that of the model; its own cache and a copy continue alike."""
        tiny, state = made(name, torch.bfloat16)
        past = prefilled(name, 131, dtype=torch.bfloat16)
        new = copied(state, past)
        wanted = continued(name, 131, past, torch.bfloat16).float()
        assert error(continued(name, 131, new, torch.bfloat16).float(), wanted) <= 0.05
        assert tiny.profile.group("layer_inputs").constants["row_bytes"] == 48 * 2 * tiny.profile.layers
