"""Index keys, scores and choices written once more, number by number in float64, for trials and tests to compare."""

from __future__ import annotations

import math

import torch

from hitproof.kernels.index_rebuild.reference import TokenIndexer
from hitproof.kernels.norms import Linear
from hitproof.kernels.rotary import Rotary, frequencies

__all__ = ["drawn_indexer", "slow_choice", "slow_hadamard", "slow_keys", "slow_scores"]


def drawn_indexer(inputs: int, size: int, rotary: int, seed: int = 0) -> TokenIndexer:
    """An indexer with random weights, every part of which matters."""
    draw = torch.Generator().manual_seed(seed)
    return TokenIndexer(
        key=Linear(torch.randn((size, inputs), generator=draw) / inputs**0.5),
        norm_weight=1 + 0.3 * torch.randn(size, generator=draw),
        norm_bias=0.3 * torch.randn(size, generator=draw),
        norm_epsilon=1e-6,
        rotary=Rotary(frequencies(rotary, 10000.0)),
    )


def slow_keys(inputs: torch.Tensor, indexer: TokenIndexer, first: int = 0) -> torch.Tensor:
    """One key a token, `[T, X]` to float64 `[T, D]`: projection, layer norm, and halves of the front turned."""
    weight, scale, shift = (x.double().tolist() for x in (indexer.key.weight, indexer.norm_weight, indexer.norm_bias))
    half = len(indexer.rotary.frequencies)
    keys = []
    for token, row in enumerate(inputs.double().tolist()):
        key = [math.fsum(a * b for a, b in zip(row, line, strict=True)) for line in weight]
        mean = math.fsum(key) / len(key)
        spread = math.sqrt(math.fsum((x - mean) ** 2 for x in key) / len(key) + indexer.norm_epsilon)
        key = [(x - mean) / spread * a + b for x, a, b in zip(key, scale, shift, strict=True)]
        for pair, frequency in enumerate(indexer.rotary.frequencies):
            angle = float(torch.tensor(float(first + token)) * frequency)
            point = complex(key[pair], key[pair + half]) * complex(math.cos(angle), math.sin(angle))
            key[pair], key[pair + half] = point.real, point.imag
        keys.append(key)
    return torch.tensor(keys, dtype=torch.float64).reshape(-1, len(weight))


def slow_hadamard(keys: torch.Tensor) -> torch.Tensor:
    """Keys times the matrix whose sign at (i, j) is that of the number of ones that i and j have in common."""
    size = int(keys.shape[-1])
    signs = [[(-1.0) ** (i & j).bit_count() for j in range(size)] for i in range(size)]
    return keys.double() @ torch.tensor(signs, dtype=torch.float64) / math.sqrt(size)


def slow_scores(queries: torch.Tensor, keys: torch.Tensor, head_weights: torch.Tensor) -> torch.Tensor:
    """float64 `[Q, N]` of `[Q, H, D]`, `[N, D]` and `[Q, H]`."""
    scores = []
    for query, weights in zip(queries.double().tolist(), head_weights.double().tolist(), strict=True):
        scale = math.sqrt(len(query) * len(query[0]))
        row = []
        for key in keys.double().tolist():
            products = [math.fsum(a * b for a, b in zip(head, key, strict=True)) for head in query]
            row.append(math.fsum(w * max(0.0, x) for w, x in zip(weights, products, strict=True)) / scale)
        scores.append(row)
    return torch.tensor(scores, dtype=torch.float64)


def slow_choice(scores: torch.Tensor, count: int, visible: torch.Tensor) -> list[list[int]]:
    """The keys that each query reads, best first, by sorting pairs of score and place."""
    chosen = []
    for row, limit in zip(scores.tolist(), visible.tolist(), strict=True):
        ranked = sorted((-score, place) for place, score in enumerate(row[: max(limit, 0)]))
        best = [place for _, place in ranked[:count]]
        chosen.append(best + [-1] * (min(count, len(row)) - len(best)))
    return chosen
