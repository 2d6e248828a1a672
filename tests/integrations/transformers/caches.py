"""Prefix caches of tiny models, and what a cold run of the same tokens gives."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch

from hitproof.engine import Engine, load
from hitproof.integrations.transformers import PrefixCache, Served
from hitproof.integrations.transformers.running import run
from tests.integrations.transformers.live import SAME, error, made, tokens_of

__all__ = ["PREFIX", "TOKENS", "cache_of", "cold", "drop", "of_object", "same"]

PREFIX = 131
"""Tokens of a prefix: amid the windows of both of DeepSeek-V4's ratios."""
TOKENS: list[int] = tokens_of()[0].tolist()


def cache_of(name: str, **settings: Any) -> PrefixCache:
    """An empty prefix cache of a tiny model."""
    return PrefixCache(made(name)[0].model, engine=_engine(name), **settings)


@cache
def _engine(name: str) -> Engine:
    """Loaded once: it does not change."""
    return load(made(name)[0].profile)


@cache
def cold(name: str) -> torch.Tensor:
    """[T, vocabulary] of all tokens, computed from the first one on."""
    tiny, state = made(name)
    return run(tiny.model, TOKENS, state.fresh())


def same(name: str, served: Served) -> bool:
    """Whether the logits are those of a cold run."""
    wanted = cold(name)[served.usable : served.usable + served.logits.shape[0]]
    return error(served.logits, wanted) < SAME[name]


def of_object(prefix: PrefixCache, *names: str) -> list[Any]:
    """The segments of some objects that hold something, in the order of the groups."""
    found = (prefix.manager.slots(group.id) for group in prefix.engine.bound.groups if group.object in names)
    return [slot for slots in found for slot in slots]


def drop(prefix: PrefixCache, *names: str) -> int:
    """Give up the segments of some objects; how many."""
    slots: Iterable[Any] = of_object(prefix, *names)
    return sum(prefix.manager.evict(slot) for slot in slots)
