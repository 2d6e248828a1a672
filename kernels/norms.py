"""The two small parts that the cache path of every layer is made of: root-mean-square norms and linear projections."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

__all__ = ["Linear", "Norm", "normed", "projected"]


@dataclass(frozen=True, slots=True)
class Norm:
    """A root-mean-square norm.

    Args:
        weight: [N], or None where the norm has none.
        eps: Added to the mean square.
        plus_one: The weight is kept as its distance from one, as in Gemma.
        rounds_first: The rows are rounded to their type before the weight is applied, as in Llama, Qwen and DeepSeek,
            and not behind it, as in Gemma and gpt-oss.
    """

    weight: torch.Tensor | None
    eps: float
    plus_one: bool = False
    rounds_first: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear projection: weight [out, in], and a bias [out] where the model has one, as gpt-oss has."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None


def normed(rows: torch.Tensor, norm: Norm) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last axis.

    The mean is float32 whatever the rows' type: models' own code does that even in float64, and rows made anew must
    equal those that the model wrote.

    Args:
        rows: [..., N].
        norm: Its weight has N numbers.

    Returns:
        [..., N] in the rows' type.
    """
    wide = rows.to(torch.float32)
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + norm.eps)
    if norm.rounds_first:
        scaled = scaled.to(rows.dtype)
    if norm.weight is not None:
        scaled = scaled * (1.0 + norm.weight if norm.plus_one else norm.weight)
    return scaled.to(rows.dtype)


def projected(rows: torch.Tensor, linear: Linear) -> torch.Tensor:
    """[..., in] -> [..., out], in the type of the rows."""
    bias = None if linear.bias is None else linear.bias.to(rows.dtype)
    return functional.linear(rows, linear.weight.to(rows.dtype), bias)
