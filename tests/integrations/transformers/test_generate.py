"""`generate()` behind the cache answers as the library's own does, row by row, and turns of a conversation reuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")

from hitproof.integrations.transformers.tiny import NAMES, random_tokens  # noqa: E402
from hitproof.spec.errors import UsageError  # noqa: E402
from tests.integrations.transformers.caches import TOKENS, cache_of, cold, of_object  # noqa: E402
from tests.integrations.transformers.live import STEPWISE, error  # noqa: E402

GREEDY: dict[str, Any] = {"max_new_tokens": 10, "do_sample": False, "eos_token_id": None}
EXAMPLE = Path(__file__).parents[3] / "examples" / "transformers_cache.py"


def batch() -> tuple[Any, Any]:
    """Three prompts, two of which share 64 tokens and one of which is shorter and padded, and their mask."""
    first, second = random_tokens(90, 1), random_tokens(26, 5)
    padded = torch.cat([torch.zeros((1, 30), dtype=torch.int64), random_tokens(60, 2)], dim=1)
    ids = torch.cat([first, torch.cat([first[:, :64], second], dim=1), padded])
    return ids, (ids != 0).long()


def alone(model: Any, ids: Any, mask: Any, options: dict[str, Any]) -> list[list[int]]:
    """New tokens of each prompt as the library generates them, without padding and without a cache of ours."""
    found = []
    for row, shown in zip(ids, mask, strict=True):
        prompt = row[shown.bool()][None]
        found.append(model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)[0, prompt.shape[1] :])
    return [answer.tolist() for answer in found]


@pytest.mark.parametrize("ends", [None, [5, 9, 44, 70, 81]])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_answered_as_each_prompt_alone(name: str, ends: list[int] | None) -> None:
    """Rows that share a prefix, rows of another length, rows that end early; the first time and behind what is kept."""
    prefix, (ids, mask) = cache_of(name), batch()
    options = {**GREEDY, "eos_token_id": ends}
    wanted = alone(prefix.model, ids, mask, options)
    for _ in range(2):
        got = prefix.generate(ids, mask, **options)
        assert torch.equal(ids, got[:, : ids.shape[1]])
        for row, answer in zip(got[:, ids.shape[1] :].tolist(), wanted, strict=True):
            assert answer == row[: len(answer)]
            assert not any(row[len(answer) :])
    prefix.manager.check_integrity()


@pytest.mark.parametrize("name", NAMES)
def test_the_next_turn_goes_on_behind_the_answer(name: str) -> None:
    """Prompt and answer are stored up to the last token, whose state nobody has computed."""
    prefix = cache_of(name)
    ids = torch.tensor([TOKENS[:70], TOKENS[50:120]])
    answered = prefix.generate(ids, **GREEDY)
    for row in answered.tolist():
        prompt = [*row, *TOKENS[130:150]]
        served = prefix.prefill(prompt, keep=False)
        assert ("reuse", len(row) - 1) == (served.answer.verdict, served.usable)
        wanted = cache_of(name).prefill(prompt).logits[served.usable :]
        assert error(served.logits, wanted) < STEPWISE[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_prompt_computes_one_token(name: str) -> None:
    """All but the last token of a prompt that was asked before is reused."""
    prefix = cache_of(name)
    ids = torch.tensor([TOKENS[:70]])
    prefix.generate(ids, keep=True, **GREEDY)
    found = prefix.find(TOKENS[:70])
    assert ("reuse", 69) == (found.answer.verdict, found.usable)
    found.release()


def test_nothing_is_stored_where_nothing_shall_be() -> None:
    """With `keep=False` prompts and answers leave nothing behind."""
    prefix = cache_of("gemma-3")
    prefix.generate(torch.tensor([TOKENS[:70]]), keep=False, **GREEDY)
    assert not of_object(prefix, *{group.object for group in prefix.engine.bound.groups})


def test_a_prompt_of_one_token_is_answered() -> None:
    """There is nothing to reuse then."""
    prefix = cache_of("gemma-3")
    got = prefix.generate(torch.tensor([TOKENS[:1]]), **GREEDY)
    assert int(cold("gemma-3")[0].argmax()) == int(got[0, 1])


def test_tenants_do_not_share() -> None:
    """Facts of a call come before those of the cache."""
    prefix = cache_of("gemma-3")
    ids = torch.tensor([TOKENS[:70]])
    prefix.generate(ids, facts={"salt": "one"}, **GREEDY)
    assert not prefix.find(TOKENS[:70], facts={"salt": "two"}).usable
    assert 69 == prefix.find(TOKENS[:70], facts={"salt": "one"}).usable


@pytest.mark.parametrize(
    "options", [{"num_beams": 2}, {"num_return_sequences": 2}, {"use_cache": False}, {"return_dict_in_generate": True}]
)
def test_what_cannot_be_served_is_refused(options: dict[str, Any]) -> None:
    """Several rows for one, and options that the cache sets itself."""
    with pytest.raises(UsageError):
        cache_of("gemma-3").generate(torch.tensor([TOKENS[:20]]), **options)


@pytest.mark.parametrize("mask", [[[1, 1, 0]], [[1, 0, 1]], [[0, 0, 0]], [[1, 1]]])
def test_padding_stands_on_the_left(mask: list[list[int]]) -> None:
    """Any other mask is refused, and one of another shape."""
    with pytest.raises(UsageError):
        cache_of("gemma-3").generate(torch.tensor([TOKENS[:3]]), torch.tensor(mask), max_new_tokens=2)


def test_the_example_runs() -> None:
    """It says that the second turn reuses, and that another adapter finds nothing."""
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True, timeout=300)
    assert "third time: reuse, 119 of 120 tokens reused" in run.stdout
    assert "with another adapter: miss" in run.stdout
