"""Pinned memory is a promise to an accelerator; where there is none, memory is just memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

__all__ = ["unpin"]

_MAKERS = ("empty", "full", "tensor", "zeros")


def unpin() -> None:
    """From now on nobody's memory is pinned, in this process. Changes PyTorch."""
    for name in _MAKERS:
        setattr(torch, name, _without(getattr(torch, name)))
    torch.Tensor.pin_memory = lambda self, *args: self


def _without(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @wraps(make)
    def made(*args: Any, **kwargs: Any) -> torch.Tensor:
        kwargs.pop("pin_memory", None)
        return make(*args, **kwargs)

    return made
