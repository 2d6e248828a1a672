"""The fingerprint in PyTorch; README.md beside it has the formula."""

from __future__ import annotations

import torch

from hitproof.kernels.blocks import Pool, gather
from hitproof.spec.errors import TensorError

__all__ = ["GOLDEN", "MASK", "fingerprint", "finish", "mix", "partial", "share_of"]

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio, made odd: its multiples are far from one another."""
_FIRST, _SECOND = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_LOW_31 = 2**31 - 1
_SLAB_WORDS = 1 << 14


def fingerprint(rows: torch.Tensor) -> str:
    """The fingerprint of whole rows in order.

    Args:
        rows: uint8 [T, H, C], the bytes of each row of each head, without gaps.

    Returns:
        16 hexadecimal digits, as the facts `recorded` and `measured` hold it.

    Raises:
        TensorError: Another shape or type.
    """
    return finish(partial(rows), rows.numel())


def partial(rows: torch.Tensor, first: int = 0, head: int = 0, heads: int | None = None) -> int:
    """The share of some rows in the sum; shares of disjoint rows are added in any order, modulo 2**64.

    Args:
        rows: uint8 [T, H, C]; a part of a larger whole.
        first: Row of the whole at which the part begins.
        head: Head of the whole at which the part begins; layers count as further heads.
        heads: Heads of the whole; those of the part where left out.

    Returns:
        A number below 2**64.

    Raises:
        TensorError: Another shape or type.
    """
    if rows.dtype != torch.uint8 or rows.dim() != 3:
        raise TensorError("rows are bytes", got=f"{rows.dtype} {list(rows.shape)}", expected="torch.uint8 [T, H, C]")
    count, own, cell = rows.shape
    whole = own if heads is None else heads
    words = -(-cell // 8)
    # Position of each word of one row in the whole, then keyed: position * GOLDEN, taken modulo 2**64.
    places = (head + torch.arange(own))[:, None] * words + torch.arange(words) + 1
    keys = places * _signed(GOLDEN)
    step = _signed(whole * words * GOLDEN)
    slab = max(1, _SLAB_WORDS // max(1, own * words))
    total = 0
    for low in range(0, count, slab):
        some = rows[low : low + slab]
        padded = torch.zeros((some.shape[0], own, words * 8), dtype=torch.uint8)
        padded[..., :cell] = some
        turn = (first + low + torch.arange(some.shape[0])) * step
        total += int(mix(padded.view(torch.int64) ^ (keys + turn[:, None, None])).sum())
    return total & MASK


def share_of(
    pool: Pool, table: torch.Tensor, count: int, first: int = 0, head: int = 0, heads: int | None = None
) -> int:
    """The share of rows where they lie in blocks.

    Args:
        pool: The blocks.
        table: int64: the segment's blocks in order.
        count: Rows (T).
        first: Row of the first block at which they begin; it is row 0 of the whole.
        head, heads: As in `partial`.

    Raises:
        TensorError: The table does not fit.
    """
    return partial(gather(pool, table, count, first), head=head, heads=heads)


def finish(total: int, size: int) -> str:
    """The fingerprint of the sum of all shares.

    Args:
        total: The sum, taken modulo 2**64 here.
        size: Bytes of all rows, so that a shorter row is not taken for one that ends in zeros.
    """
    return f"{_mix_number((total + (size + 1) * GOLDEN) & MASK):016x}"


def mix(words: torch.Tensor) -> torch.Tensor:
    """The finaliser, a bijection of 64-bit words; changes `words` (int64) in place and returns them."""
    for factor in (_FIRST, _SECOND):
        # The shift of int64 copies the sign; the mask makes it that of unsigned words.
        words ^= (words >> 33) & _LOW_31
        words *= _signed(factor)
    words ^= (words >> 33) & _LOW_31
    return words


def _mix_number(word: int) -> int:
    for factor in (_FIRST, _SECOND):
        word = ((word ^ word >> 33) * factor) & MASK
    return word ^ word >> 33


def _signed(number: int) -> int:
    low = number & MASK
    return low - 2**64 if low >> 63 else low
