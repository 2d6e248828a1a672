"""Rotary position embedding: how far each pair of numbers turns a position, and the turning itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch

__all__ = ["Pairing", "Place", "Rotary", "frequencies", "rotated", "stretched", "turns", "yarn"]

Pairing = Literal["half", "interleaved", "interleaved_to_half"]
"""Which numbers turn together: i and i + R/2; 2i and 2i + 1; or the latter, stored apart as the former."""

Place = Literal["leading", "trailing"]
"""Which part of a row turns, where not all of it does."""


@dataclass(frozen=True, slots=True)
class Rotary:
    """How the rows of one layer are turned.

    Args:
        frequencies: [R/2] float32, radians a position; R numbers of each row turn.
        scale: Factor of cosine and sine, YaRN's attention factor; 1 elsewhere.
        pairing: `half` as in Llama, Gemma and gpt-oss; `interleaved` as in Llama 4 and DeepSeek-V4;
            `interleaved_to_half` for the latents of DeepSeek-V3, which are projected in pairs and kept in halves.
        place: `leading` where the first R numbers turn, `trailing` where the last R do, as in latents.
    """

    frequencies: torch.Tensor
    scale: float = 1.0
    pairing: Pairing = "half"
    place: Place = "leading"

    @property
    def size(self) -> int:
        """R, the numbers of a row that turn."""
        return 2 * int(self.frequencies.shape[0])


def frequencies(size: int, theta: float) -> torch.Tensor:
    """theta^(-2i/R) for i < R/2.

    Args:
        size: R, even.
        theta: The base of the layer's kind; local and global layers of one model have different ones.

    Returns:
        [R/2] float32, radians a position.
    """
    return 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size)


def stretched(turning: torch.Tensor, factor: float) -> torch.Tensor:
    """Linear scaling, as in the global layers of large Gemma 3: every pair turns `factor` times more slowly."""
    return turning / factor


def yarn(
    size: int,
    theta: float,
    *,
    factor: float,
    trained: int,
    fast: float = 32.0,
    slow: float = 1.0,
    truncate: bool = True,
    scale: float | None = None,
) -> tuple[torch.Tensor, float]:
    """YaRN (arXiv 2309.00071): pairs that turn fast stay, slow ones are stretched, and a ramp lies between.

    Args:
        size: R, even.
        theta: The base.
        factor: How many times longer the context became.
        trained: Tokens of the context before that.
        fast, slow: Turns within the trained context at which the ramp begins and ends.
        truncate: Round the ramp's ends outward to whole pairs; gpt-oss does not.
        scale: The attention factor, or None for 0.1 * ln(factor) + 1.

    Returns:
        [R/2] float32, radians a position, and the factor of cosine and sine.
    """
    # In this order of operations: a frequency that is off by one bit turns a far position by a visible angle.
    period = theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size)

    def pair_of(turns: float) -> float:
        return size * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_of(fast), pair_of(slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    # A ramp of no length is a step.
    length = high - low or 0.001
    ramp = ((torch.arange(size // 2, dtype=torch.float32) - low) / length).clamp(0, 1)
    if scale is None:
        scale = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    kept = 1 - ramp
    return 1.0 / (factor * period) * (1 - kept) + 1.0 / period * kept, scale


def rotated(rows: torch.Tensor, positions: torch.Tensor, rotary: Rotary) -> torch.Tensor:
    """The rows, turned to their positions.

    Angles, cosines and sines are float32, as in the models' own code: rows made anew must equal those that the model
    wrote, and from position 2^24 on two neighbours have the same angle there as well. The turning itself is done in
    float32, or in float64 for float64 rows, and rounded once.

    Args:
        rows: [T, ..., D], D at least R.
        positions: [T] int64, tokens.
        rotary: How to turn.

    Returns:
        [T, ..., D] in the rows' type.
    """
    size = rotary.size
    wide = torch.float64 if rows.dtype == torch.float64 else torch.float32
    between = (1,) * (rows.dim() - 2)
    cosine, sine = (part.to(wide).view(-1, *between, size // 2) for part in turns(positions, rotary))
    rest = rows.shape[-1] - size
    trailing = rotary.place == "trailing"
    still, part = (rows[..., :rest], rows[..., rest:]) if trailing else (rows[..., size:], rows[..., :size])
    left, right = _pairs(part.to(wide), rotary.pairing)
    turned_left, turned_right = left * cosine - right * sine, right * cosine + left * sine
    if rotary.pairing == "interleaved":
        turned = torch.stack((turned_left, turned_right), dim=-1).flatten(-2)
    else:
        turned = torch.cat((turned_left, turned_right), dim=-1)
    turned = turned.to(rows.dtype)
    return torch.cat((still, turned) if trailing else (turned, still), dim=-1)


def turns(positions: torch.Tensor, rotary: Rotary) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of each pair's angle, times the scale.

    Args:
        positions: [T] int64, tokens.
        rotary: How to turn.

    Returns:
        Two of float32 [T, R/2].
    """
    angles = positions.to(torch.float32)[:, None] * rotary.frequencies.to(torch.float32)
    return angles.cos() * rotary.scale, angles.sin() * rotary.scale


def _pairs(part: torch.Tensor, pairing: Pairing) -> tuple[torch.Tensor, torch.Tensor]:
    """First and second number of each pair: [..., R] -> two of [..., R/2]."""
    if pairing == "half":
        left, right = part.chunk(2, dim=-1)
        return left, right
    return part[..., 0::2], part[..., 1::2]
