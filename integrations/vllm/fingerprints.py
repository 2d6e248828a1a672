"""Fingerprints of cache blocks and of weights where they lie, on whatever device they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import torch

from hitproof.kernels.checksum.reference import GOLDEN, finish, mix

__all__ = ["of_blocks", "of_tensors"]

_WORD = 8
_SLAB_WORDS = 1 << 22
"""Words that are mixed at once, so that the scratch memory stays at 32 MiB a step."""


def of_blocks(layers: Sequence[torch.Tensor], blocks: Sequence[int]) -> list[str]:
    """A fingerprint a block, over its bytes in all layers of its group.

    Args:
        layers: Cache of each layer, with blocks along the first axis.
        blocks: Block ids.

    Returns:
        By block, what `hitproof.kernels.checksum.fingerprint` gives for its bytes as one row, layers one after another.
    """
    found: list[str] = []
    width = sum(layer[0].numel() * layer.element_size() for layer in layers)
    at_once = max(1, _SLAB_WORDS * _WORD // max(width, 1))
    for low in range(0, len(blocks), at_once):
        some = torch.tensor(blocks[low : low + at_once], dtype=torch.int64, device=layers[0].device)
        rows = torch.cat([_bytes(layer.index_select(0, some), len(some)) for layer in layers], dim=1)
        found += [finish(total, width) for total in _sums(rows)]
    return found


def of_tensors(named: Iterable[tuple[str, torch.Tensor]]) -> str:
    """One digest of named tensors: of their names, shapes, types and fingerprints, in the order given."""
    digest = hashlib.sha256()
    for name, tensor in named:
        flat = tensor.detach().reshape(-1)
        total = 0
        step = _SLAB_WORDS * _WORD // max(tensor.element_size(), 1)
        for low in range(0, flat.numel(), step):
            rows = _bytes(flat[low : low + step].contiguous(), 1)
            total += _sums(rows, first=low * tensor.element_size() // _WORD)[0]
        size = flat.numel() * tensor.element_size()
        print_of = f"{name} {tuple(tensor.shape)} {tensor.dtype} {finish(total, size)}\n"
        digest.update(print_of.encode())
    return digest.hexdigest()


def _bytes(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8).view(rows, -1)


def _sums(rows: torch.Tensor, first: int = 0) -> list[int]:
    """The sum of each row's shares, its words counted from `first`."""
    count, width = rows.shape
    words = -(-width // _WORD)
    if width % _WORD:
        padded = torch.zeros((count, words * _WORD), dtype=torch.uint8, device=rows.device)
        padded[:, :width] = rows
        rows = padded
    places = torch.arange(first + 1, first + words + 1, dtype=torch.int64, device=rows.device)
    keys = places * (GOLDEN - 2**64)
    # Bytes that begin at an odd address cannot be read as words.
    whole = rows if rows.data_ptr() % _WORD == 0 else rows.clone()
    totals: list[int] = mix(whole.view(torch.int64) ^ keys).sum(dim=1).tolist()
    return totals
