"""How kernels reach the rows of a pool: where block 0 begins, and how many bytes one access may take."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.launching import unit_of

__all__ = ["Access", "access_of", "fitting", "start_of"]

_WORD = 8


@dataclass(frozen=True, slots=True)
class Access:
    """What is known of rows when a kernel is compiled.

    Args:
        rows: Rows a block.
        heads: KV heads.
        cell: Bytes of a cell.
        item: Bytes that lie together: of one value in `value_major`, else of a cell.
        unit: Bytes of one access: 1, 2, 4 or 8; divides all addresses of values.
        dense: 1 where the words of a block, by row, head and word, lie one after the other.
    """

    rows: int
    heads: int
    cell: int
    item: int
    unit: int
    dense: int

    @property
    def words(self) -> int:
        """Words of a block."""
        return self.rows * self.heads * -(-self.cell // _WORD)


def start_of(pool: Pool) -> torch.Tensor:
    """uint8: the buffer from the first byte of block 0 on."""
    return pool.buffer[pool.geometry.offset :]


def access_of(geometry: Geometry, address: int) -> Access:
    """How rows are reached that begin at an address.

    Args:
        geometry: Where rows lie; its offset stands in the address.
        address: Of the first byte of block 0.
    """
    by_block, by_row, by_head, by_value, _ = geometry.steps
    item = geometry.shape[3]
    unit = unit_of(_WORD, address, by_block, by_row, by_head, item, item if item == geometry.cell_bytes else by_value)
    together = geometry.layout == "token_major" and by_row == geometry.heads * geometry.cell_bytes
    dense = int(together and unit == _WORD)
    return Access(geometry.rows, geometry.heads, geometry.cell_bytes, item, unit, dense)


def fitting(pool: Pool) -> Access:
    """How a pool's rows are reached."""
    return access_of(pool.geometry, start_of(pool).data_ptr())
