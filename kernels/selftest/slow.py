"""The fingerprint by plain loops over whole numbers, to compare implementations with."""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = ["slow_fingerprint"]

_WORD = 2**64


def slow_fingerprint(layers: Sequence[torch.Tensor]) -> str:
    """16 hexadecimal digits, by the formula in the README of `checksum`.

    Args:
        layers: uint8 [T, H, C] a layer.
    """
    count = layers[0].shape[0]
    heads = sum(rows.shape[1] for rows in layers)
    total = size = 0
    first = 0
    for rows in layers:
        cell = rows.shape[2]
        words = (cell + 7) // 8
        for token in range(count):
            for head in range(rows.shape[1]):
                raw = bytes(rows[token, head].tolist()).ljust(words * 8, b"\0")
                for word in range(words):
                    place = (token * heads + first + head) * words + word
                    value = int.from_bytes(raw[8 * word : 8 * word + 8], "little")
                    total += _mixed(value ^ (place + 1) * 0x9E3779B97F4A7C15 % _WORD)
        first += rows.shape[1]
        size += count * rows.shape[1] * cell
    return f"{_mixed((total + (size + 1) * 0x9E3779B97F4A7C15) % _WORD):016x}"


def _mixed(word: int) -> int:
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD % _WORD
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 % _WORD
    return word ^ word >> 33
