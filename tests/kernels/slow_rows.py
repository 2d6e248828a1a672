"""Keys and values of a layer as loops over tokens and numbers in float64: written from the formulas, for comparison."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["slow_norm", "slow_rotation", "slow_row"]


def slow_norm(row: list[float], weight: list[float] | None, eps: float, plus_one: bool) -> list[float]:
    """x / sqrt(mean of squares + eps), times the weight."""
    root = math.sqrt(sum(x * x for x in row) / len(row) + eps)
    gain = [1.0] * len(row) if weight is None else [w + 1.0 if plus_one else w for w in weight]
    return [x / root * g for x, g in zip(row, gain, strict=True)]


def slow_rotation(row: list[float], position: int, turning: list[float], scale: float, pairing: str) -> list[float]:
    """Each pair of numbers as a point of the plane, turned about the origin; the angle alone is float32."""
    size, half = len(row), len(row) // 2
    turned = [0.0] * size
    for i, frequency in enumerate(turning):
        left, right = (i, i + half) if pairing == "half" else (2 * i, 2 * i + 1)
        angle = float(np.float32(position) * np.float32(frequency))
        point = complex(row[left], row[right]) * complex(math.cos(angle), math.sin(angle)) * scale
        if pairing == "interleaved_to_half":
            left, right = i, i + half
        turned[left], turned[right] = point.real, point.imag
    return turned


def slow_row(hidden: list[float], position: int, path: Any, which: str) -> tuple[list[list[float]], float]:
    """[H][D] of one token, and how large its terms are: what one rounding of any of them may change."""
    if path.input_norm is not None:
        norm = path.input_norm
        hidden = slow_norm(hidden, _numbers(norm.weight), norm.eps, norm.plus_one)
    linear = path.key if which == "key" else path.value
    bias = [0.0] * linear.weight.shape[0] if linear.bias is None else linear.bias.double().tolist()
    flat, size = [], 0.0
    for line, start in zip(linear.weight.double().tolist(), bias, strict=True):
        terms = [w * x for w, x in zip(line, hidden, strict=True)]
        flat.append(sum(terms) + start)
        size = max(size, sum(map(abs, terms)) + abs(start))
    width = len(flat) // path.heads
    heads = [flat[head * width : (head + 1) * width] for head in range(path.heads)]
    norm = path.key_norm if which == "key" else path.value_norm
    turn = which == "key" and path.rotary is not None
    steps = [_normed] if norm is not None else []
    steps += [_turned] if turn else []
    for step in reversed(steps) if path.norm_after_rotary else steps:
        heads, size = step(heads, size, position, path, norm)
    return heads, size


def _normed(heads: Any, size: float, _position: int, _path: Any, norm: Any) -> Any:
    weight = _numbers(norm.weight)
    covered = len(heads[0]) if weight is None else len(weight)
    least = min(math.sqrt(sum(x * x for x in head[:covered]) / covered + norm.eps) for head in heads)
    gain = 1.0 if weight is None else max(abs(w + norm.plus_one) for w in weight)
    made = [slow_norm(head[:covered], weight, norm.eps, norm.plus_one) + head[covered:] for head in heads]
    # An error of one number also changes the root that divides all of them, by no more.
    return made, max(size, 2 * size / least * max(gain, 1.0))


def _turned(heads: Any, size: float, position: int, path: Any, _norm: Any) -> Any:
    rotary = path.rotary
    turning, made = rotary.frequencies.double().tolist(), []
    for head in heads:
        rest = len(head) - 2 * len(turning)
        part = head[rest:] if rotary.place == "trailing" else head[: len(head) - rest]
        part = slow_rotation(part, position, turning, rotary.scale, rotary.pairing)
        made.append(head[:rest] + part if rotary.place == "trailing" else part + head[len(head) - rest :])
    return made, size * 1.5 * max(rotary.scale, 1.0)


def _numbers(weight: Any) -> list[float] | None:
    return None if weight is None else [float(x) for x in weight.double().tolist()]
