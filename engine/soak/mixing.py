"""Rows made from input rows by arithmetic that another input, group, layer or version makes come out otherwise."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mixer", "masked"]

Words = NDArray[np.uint32]


class Mixer:
    """The arithmetic of one group under one version; different names give different rows.

    Args:
        name: Group and version.
        layers: Layers of the group.
        row_bytes: Bytes of a row in one layer.
    """

    def __init__(self, name: str, layers: int, row_bytes: int) -> None:
        lanes = row_bytes // 4
        self._times = _words(f"{name}/times", layers * lanes).reshape(layers, 1, lanes) | np.uint32(1)
        self._plus = _words(f"{name}/plus", layers * lanes).reshape(layers, 1, lanes)
        self._lanes = lanes

    def each(self, inputs: Words) -> NDArray[np.uint8]:
        """One row for each input row: a permutation of its words."""
        lanes = np.arange(self._lanes) % inputs.shape[1]
        return self._mixed(inputs[None, :, lanes])

    def pooled(self, inputs: Words, first: int, start: int, end: int, ratio: int, overlap: int) -> NDArray[np.uint8]:
        """One row for every whole `ratio` tokens of [start, end), made from these and the `overlap` tokens before.

        Args:
            inputs: Input rows from position `first` on.
            first, start, end: Positions; what lies before the prompt is zero.
            ratio, overlap: Tokens.
        """
        begin, count = start // ratio * ratio, end // ratio - start // ratio
        lanes = np.arange(self._lanes) % inputs.shape[1]
        span = np.zeros((overlap + count * ratio, self._lanes), np.uint32)
        held = max(first, begin - overlap)
        span[held - (begin - overlap) :] = inputs[held - first : begin + count * ratio - first][:, lanes]
        weights = _words("pooling", overlap + ratio) | np.uint32(1)
        rows = np.zeros((count, self._lanes), np.uint32)
        for place in range(overlap + ratio):
            rows += span[place : place + count * ratio : ratio][:count] * weights[place]
        return self._mixed(rows[None])

    def _mixed(self, words: Words) -> NDArray[np.uint8]:
        mixed = words * self._times + self._plus
        mixed ^= mixed >> np.uint32(15)
        return np.ascontiguousarray(mixed).view(np.uint8)


def masked(rows: NDArray[np.uint8], encoding: str | None, scale: str | None) -> NDArray[np.uint8]:
    """Rows in a number format; the same call leads back."""
    mask = _mask(str(encoding), str(scale), rows.shape[-1])
    return rows ^ mask


@lru_cache(maxsize=4096)
def _mask(encoding: str, scale: str, size: int) -> NDArray[np.uint8]:
    return _words(f"format/{encoding}/{scale}", size // 4).view(np.uint8)


@lru_cache(maxsize=4096)
def _words(name: str, count: int) -> Words:
    """`count` words that nothing but the name decides; read-only."""
    blocks = (hashlib.blake2b(f"{name}/{n}".encode(), digest_size=64).digest() for n in range(-(-count // 16)))
    return np.frombuffer(b"".join(blocks), np.uint32)[:count]
