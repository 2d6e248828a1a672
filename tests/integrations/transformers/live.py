"""Tiny models made once, and caches of theirs after some tokens."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from hitproof.integrations.transformers.state import StateMap
from hitproof.integrations.transformers.tiny import NAMES, TinyModel, random_tokens, tiny_model

__all__ = ["LONGEST", "SAME", "STEPWISE", "SUFFIX", "copied", "error", "logits", "made", "prefilled", "tokens_of"]

LONGEST, SUFFIX = 300, 24
SAME = dict.fromkeys(NAMES, 1e-5) | {"qwen3-next": 5e-4}
"""Of the logits' spread in float32: what a valid continuation differs by at most from a cold run."""
STEPWISE = {name: 10 * bound for name, bound in SAME.items()}
"""The same where tokens came one by one: sums of single rows are taken in another order."""


def made(name: str, dtype: torch.dtype = torch.float32) -> tuple[TinyModel, StateMap]:
    """A model and the map of its state; nobody changes them."""
    return _made(name, dtype)


@cache
def tokens_of(seed: int = 7, batch: int = 1) -> torch.Tensor:
    """[batch, LONGEST + SUFFIX]."""
    return random_tokens(LONGEST + SUFFIX, seed, batch)


def logits(tiny: TinyModel, tokens: torch.Tensor, past: Any) -> torch.Tensor:
    """[batch, T, vocabulary], continuing what the cache holds."""
    with torch.no_grad():
        return tiny.model(tokens, cache=past, use_cache=True).logits


def prefilled(name: str, length: int, tokens: torch.Tensor | None = None, dtype: torch.dtype = torch.float32) -> Any:
    """A live cache after so many tokens in one pass."""
    tiny, state = made(name, dtype)
    past = state.fresh()
    if length:
        logits(tiny, (tokens_of() if tokens is None else tokens)[:, :length], past)
    return past


def copied(state: StateMap, past: Any, row: int = 0) -> Any:
    """A cache made of nothing but the rows that another one has."""
    new = state.fresh()
    for group in state.groups:
        start, end = state.held(past, group)
        state.install(new, group, start, end, state.rows(past, group, start, end, row))
    return state.finish(new, state.length(past))


@cache
def _made(name: str, dtype: torch.dtype) -> tuple[TinyModel, StateMap]:
    tiny = tiny_model(name, dtype=dtype)
    return tiny, StateMap(tiny.model, tiny.profile)


def error(got: torch.Tensor, cold: torch.Tensor) -> float:
    """Largest difference of a logit, as a share of the cold spread."""
    return float((got - cold).abs().max() / cold.std())
