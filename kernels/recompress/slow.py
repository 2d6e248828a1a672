"""Gated pooling written once more, number by number in float64, for trials and tests to compare."""

from __future__ import annotations

import math

import torch

from hitproof.kernels.norms import Norm
from hitproof.kernels.recompress import Compressor
from hitproof.kernels.rotary import Rotary, frequencies

__all__ = ["drawn_compressor", "drawn_rows", "slow_entries"]


def drawn_compressor(ratio: int, size: int, rotary: int, overlap: bool, seed: int = 0) -> Compressor:
    """A compressor with random weights, every part of which matters."""
    draw = torch.Generator().manual_seed(seed)
    return Compressor(
        position_bias=torch.randn((ratio, size * (2 if overlap else 1)), generator=draw),
        norm=Norm(1 + 0.3 * torch.randn(size, generator=draw), 1e-6),
        rotary=Rotary(frequencies(rotary, 160000.0), pairing="interleaved", place="trailing"),
        overlap=overlap,
    )


def drawn_rows(tokens: int, compressor: Compressor, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and gates of some tokens, float32."""
    draw = torch.Generator().manual_seed(seed)
    shape = (tokens, compressor.width)
    return torch.randn(shape, generator=draw), 2 * torch.randn(shape, generator=draw)


def slow_entries(values: torch.Tensor, gates: torch.Tensor, compressor: Compressor) -> torch.Tensor:
    """Entries of rows from the first token on, `[T, W]` to `[E, D]`, as sums over single numbers."""
    ratio, size = compressor.ratio, compressor.size
    value, gate, bias = values.double().tolist(), gates.double().tolist(), compressor.position_bias.double().tolist()
    weight = [1.0] * size if compressor.norm.weight is None else compressor.norm.weight.double().tolist()
    entries = []
    for window in range(len(value) // ratio):
        pooled = []
        for number in range(size):
            own = number + size if compressor.overlap else number
            slots = [(window * ratio + place, place, own) for place in range(ratio)]
            if compressor.overlap and window:
                slots += [((window - 1) * ratio + place, place, number) for place in range(ratio)]
            shares = [math.exp(gate[token][column] + bias[place][column]) for token, place, column in slots]
            total = math.fsum(shares)
            pooled.append(
                math.fsum(
                    share / total * value[token][column]
                    for share, (token, _, column) in zip(shares, slots, strict=True)
                )
            )
        root = math.sqrt(math.fsum(x * x for x in pooled) / size + compressor.norm.eps)
        normed = [x / root * w for x, w in zip(pooled, weight, strict=True)]
        entries.append(_turned(normed, window * ratio, compressor))
    return torch.tensor(entries, dtype=torch.float64).reshape(-1, size)


def _turned(entry: list[float], position: int, compressor: Compressor) -> list[float]:
    """The last numbers of an entry, pair by pair, as complex numbers times a unit vector."""
    turning = compressor.rotary.frequencies
    plain = len(entry) - 2 * len(turning)
    turned = entry[:plain]
    for pair, frequency in enumerate(turning):
        angle = float(torch.tensor(float(position)) * frequency)
        at = plain + 2 * pair
        point = complex(entry[at], entry[at + 1]) * complex(math.cos(angle), math.sin(angle))
        turned += [point.real, point.imag]
    return turned
