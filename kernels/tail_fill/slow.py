"""Keys and values of a layer, number by number in float64, for trials and tests to compare."""

from __future__ import annotations

import math
from typing import Any

import torch

from hitproof.kernels.norms import Linear, Norm
from hitproof.kernels.rotary import Rotary, frequencies
from hitproof.kernels.tail_fill.projection import CachePath

__all__ = ["drawn_path", "slow_norm", "slow_rotation", "slow_row"]


def drawn_path(
    dtype: torch.dtype, inputs: int, heads: int, size: int, *, latent: bool = False, seed: int = 0, **other: Any
) -> CachePath:
    """Random weights, every part of which matters.

    Args:
        dtype: Type in which the model holds them.
        inputs: N.
        heads, size: H and D of the keys, and of the values where they are no latents.
        latent: One row serves as both, and its end alone is turned.
        seed: Draws them.
        other: Fields to have otherwise.
    """
    draw = torch.Generator().manual_seed(seed)

    def some(*shape: int) -> torch.Tensor:
        return (0.5 * torch.randn(*shape, generator=draw)).to(dtype)

    turned = min(size, 8)
    fields: dict[str, Any] = {
        "input_norm": Norm(some(inputs), 1e-6, plus_one=True),
        "key": Linear(some(heads * size, inputs), some(heads * size)),
        "value": None if latent else Linear(some(heads * size, inputs)),
        "heads": heads,
        "key_norm": Norm(some(size - turned if latent else size), 1e-6, plus_one=True),
        "rotary": Rotary(frequencies(turned, 1000.0), place="trailing" if latent else "leading"),
    }
    return CachePath(**{**fields, **other})


def slow_norm(row: list[float], weight: list[float] | None, eps: float, plus_one: bool) -> list[float]:
    """x / sqrt(mean of squares + eps), times the weight."""
    root = math.sqrt(sum(x * x for x in row) / len(row) + eps)
    gain = [1.0] * len(row) if weight is None else [w + 1.0 if plus_one else w for w in weight]
    return [x / root * g for x, g in zip(row, gain, strict=True)]


def slow_rotation(row: list[float], position: int, rotary: Rotary) -> list[float]:
    """Each pair of numbers as a point of the plane, turned about the origin; the angle alone is float32."""
    pairing, scale, turning = rotary.pairing, rotary.scale, rotary.frequencies
    size, half = len(row), len(row) // 2
    turned = [0.0] * size
    for i, frequency in enumerate(turning):
        left, right = (i, i + half) if pairing == "half" else (2 * i, 2 * i + 1)
        angle = float(torch.tensor(float(position)) * frequency)
        point = complex(row[left], row[right]) * complex(math.cos(angle), math.sin(angle)) * scale
        if pairing == "interleaved_to_half":
            left, right = i, i + half
        turned[left], turned[right] = point.real, point.imag
    return turned


def slow_row(hidden: list[float], position: int, path: CachePath, which: str) -> tuple[list[list[float]], float]:
    """One token's row from its layer input.

    Args:
        hidden: [N].
        position: In tokens.
        path: The layer's weights.
        which: `key` or `value`.

    Returns:
        [H][D], and how large its terms are: what a rounding of all of them may change, as a share of it.
    """
    if path.input_norm is not None:
        before = path.input_norm
        hidden = slow_norm(hidden, _numbers(before.weight), before.eps, before.plus_one)
    linear = path.value if which == "value" and path.value is not None else path.key
    bias = [0.0] * linear.weight.shape[0] if linear.bias is None else linear.bias.double().tolist()
    flat, size = [], 0.0
    for line, start in zip(linear.weight.double().tolist(), bias, strict=True):
        terms = [w * x for w, x in zip(line, hidden, strict=True)]
        flat.append(sum(terms) + start)
        size = max(size, sum(map(abs, terms)) + abs(start))
    width = len(flat) // path.heads
    heads = [flat[head * width : (head + 1) * width] for head in range(path.heads)]
    norm = path.key_norm if which == "key" else path.value_norm
    rotary = path.rotary if which == "key" else None
    for step in ("turn", "norm") if path.norm_after_rotary else ("norm", "turn"):
        if step == "norm" and norm is not None:
            heads, size = _normed(heads, size, norm)
        if step == "turn" and rotary is not None:
            # Both numbers of a pair go into each of them.
            heads, size = [_turned(head, position, rotary) for head in heads], size * 1.5 * max(rotary.scale, 1.0)
    return heads, size


def _normed(heads: list[list[float]], size: float, norm: Norm) -> tuple[list[list[float]], float]:
    weight = _numbers(norm.weight)
    covered = len(heads[0]) if weight is None else len(weight)
    least = min(math.sqrt(sum(x * x for x in head[:covered]) / covered + norm.eps) for head in heads)
    gain = 1.0 if weight is None else max(abs(w + norm.plus_one) for w in weight)
    made = [slow_norm(head[:covered], weight, norm.eps, norm.plus_one) + head[covered:] for head in heads]
    # An error of one number also changes the root that divides all of them, by no more.
    return made, max(size, 2 * size / least * max(gain, 1.0))


def _turned(head: list[float], position: int, rotary: Rotary) -> list[float]:
    rest = len(head) - rotary.size
    if rotary.place == "trailing":
        return head[:rest] + slow_rotation(head[rest:], position, rotary)
    return slow_rotation(head[: rotary.size], position, rotary) + head[rotary.size :]


def _numbers(weight: torch.Tensor | None) -> list[float] | None:
    return None if weight is None else [float(x) for x in weight.double().tolist()]
