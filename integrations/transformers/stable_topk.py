"""Top-k that breaks ties by place, so that a valid cache and a cold run choose the same entries.

Indexers choose with `topk` after a ReLU that makes many scores zero, and what `topk` does among equals depends on how
many scores there are. As the library has it, a continued prefix and a cold run may choose differently among entries of
equal score, and differ by more than any fault that is looked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["StableTopK", "choosing_stably", "stable_topk"]

_CHOOSING = (torch.topk, torch.Tensor.topk)


class StableTopK(TorchFunctionMode):
    """While open, in the thread that opened it, every `topk` sorts stably and takes the first k."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Every call of torch passes here; only `topk` is changed."""
        options = dict(kwargs or {})
        return _first(*args, **options) if func in _CHOOSING else func(*args, **options)


def stable_topk() -> StableTopK:
    """A context in which `topk` breaks ties by place: of equal values, the one at the lower index comes first."""
    return StableTopK()


def choosing_stably(model: Any) -> Any:
    """Make all indexers of a model choose stably, under `generate()` too; answers the model.

    An indexer is a module with an `index_topk`. Nothing else of the model is touched.
    """
    for module in model.modules():
        if hasattr(module, "index_topk"):
            module.forward = _stably(module.forward)
    return model


def _stably(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def wrapped(*args: Any, **options: Any) -> Any:
        with StableTopK():
            return forward(*args, **options)

    return wrapped


def _first(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """As `torch.topk`; the values come sorted whether asked for or not, which it permits."""
    ordered = input.sort(dim=dim, descending=largest, stable=True)
    return torch.return_types.topk((ordered.values.narrow(dim, 0, k), ordered.indices.narrow(dim, 0, k)))
