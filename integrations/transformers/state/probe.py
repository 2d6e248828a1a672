"""What a layer's cache of the library looks like: shapes and types of its tensors after some tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers

__all__ = ["attention_of", "decoder_layers", "new_cache", "probed", "quiet"]


def new_cache(model: Any) -> Any:
    """An empty cache of the model's own kind."""
    return transformers.DynamicCache(config=model.config)


def probed(model: Any) -> Any:
    """A cache that holds as few tokens as make every tensor that the model will ever keep."""
    ratios = getattr(model.config.get_text_config(decoder=True), "compress_rates", None) or {}
    tokens = torch.zeros((1, max([1, *ratios.values()])), dtype=torch.int64, device=model.device)
    cache = new_cache(model)
    with quiet(model):
        model(tokens, cache=cache, use_cache=True)
    return cache


@contextmanager
def quiet(model: Any) -> Iterator[None]:
    """No gradients, and no dropout, while the model runs for the cache's sake."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def decoder_layers(model: Any) -> Any:
    """The model's blocks in order."""
    base = model.base_model
    return getattr(base, "language_model", base).layers


def attention_of(model: Any, layer: int) -> Any:
    """The module of a block that compresses and attends."""
    return decoder_layers(model)[layer].self_attn
