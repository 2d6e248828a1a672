"""The 64-bit fingerprint of rows in NumPy, as `kernels/checksum` defines it, with the keys of places kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Fingerprints"]

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_SHIFT = np.uint64(33)
_FACTORS = (np.uint64(_FIRST), np.uint64(_SECOND))
_SLAB_WORDS = 1 << 14

_Words = npt.NDArray[np.uint64]


class Fingerprints:
    """Takes fingerprints of rows of one geometry.

    Args:
        layers: Layers (L); each counts as one head of the formula.
        row_bytes: Bytes of a row in one layer (C).
    """

    __slots__ = ("_keys", "_layers", "_row_bytes", "_slab", "_words")

    def __init__(self, layers: int, row_bytes: int) -> None:
        self._layers, self._row_bytes = layers, row_bytes
        self._words = -(-row_bytes // 8)
        self._slab = max(1, _SLAB_WORDS // self._words)
        self._keys: _Words = np.zeros((0, self._words), dtype=np.uint64)

    def of(self, rows: npt.NDArray[np.uint8]) -> str:
        """The fingerprint of rows in order.

        Args:
            rows: uint8 [L, T * C]; a layer's bytes lie together.

        Returns:
            16 hexadecimal digits.
        """
        count = rows.shape[1] // self._row_bytes
        total = 0
        for layer in range(self._layers):
            words = self._as_words(rows[layer], count)
            for first in range(0, count, self._slab):
                some = words[first : first + self._slab]
                # Position of the slab's first word, less that of the first word of all.
                turn = (first * self._layers + layer) * self._words * _GOLDEN & _MASK
                total += self._share(some, turn)
        return f"{_mix_number(total + (rows.shape[0] * count * self._row_bytes + 1) * _GOLDEN & _MASK):016x}"

    def _share(self, words: _Words, turn: int) -> int:
        """What some rows of one layer add to the sum, modulo 2**64."""
        keys = self._keys_of(len(words))
        mixed = keys + np.uint64(turn) if turn else keys.copy()
        mixed ^= words
        shifted = np.empty_like(mixed)
        for factor in _FACTORS:
            np.right_shift(mixed, _SHIFT, out=shifted)
            mixed ^= shifted
            mixed *= factor
        np.right_shift(mixed, _SHIFT, out=shifted)
        mixed ^= shifted
        return int(mixed.sum())

    def _keys_of(self, count: int) -> _Words:
        """uint64 [count, W]: (position + 1) * GOLDEN of the words of the first layer's first rows."""
        keys = self._keys
        if len(keys) < count:
            rows: _Words = np.arange(count, dtype=np.uint64)[:, None]
            places: _Words = np.arange(1, self._words + 1, dtype=np.uint64)
            keys = rows * np.uint64(self._layers * self._words) + places
            keys *= np.uint64(_GOLDEN)
            self._keys = keys
        return keys[:count]

    def _as_words(self, rows: npt.NDArray[np.uint8], count: int) -> _Words:
        """uint64 [T, W], little-endian, the last word of a row filled with zero bytes."""
        if self._row_bytes % 8 == 0:
            return rows.view("<u8").reshape(count, self._words)
        padded = np.zeros((count, self._words * 8), dtype=np.uint8)
        padded[:, : self._row_bytes] = rows.reshape(count, self._row_bytes)
        return padded.view("<u8")


def _mix_number(word: int) -> int:
    for factor in (_FIRST, _SECOND):
        word = ((word ^ word >> 33) * factor) & _MASK
    return word ^ word >> 33
