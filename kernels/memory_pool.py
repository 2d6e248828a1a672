"""One group's blocks in all layers as one buffer on a device, each layer's first block on the group's alignment."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hitproof.kernels.blocks import Geometry, Pool
from hitproof.kernels.checksum import launch
from hitproof.kernels.checksum.reference import GOLDEN, MASK, finish, mix
from hitproof.spec.errors import TensorError
from hitproof.spec.memory import Extent, PoolShape

__all__ = ["LayeredPool", "POISON"]

POISON = 0xFF
"""Two bytes of it are a NaN in bfloat16, four in float32, one in both kinds of fp8."""

_SLAB_WORDS = {"cpu": 1 << 14, "cuda": 1 << 22}
"""Words that are mixed at a time: as many as a processor's cache holds, or as keep a GPU busy."""
_FEW_BLOCKS = 4
"""Up to so many blocks, a copy for each starts sooner than a table has been sent to a GPU."""


class LayeredPool:
    """The blocks of one group.

    Args:
        shape: Their geometry.
        device: Where they lie.
    """

    __slots__ = ("_keys", "_turns", "_words", "base", "buffer", "device", "layers", "shape", "used")

    def __init__(self, shape: PoolShape, device: torch.device) -> None:
        self.shape, self.device = shape, device
        layer = shape.blocks * shape.stride
        self.buffer = torch.zeros(shape.layers * layer + shape.alignment, dtype=torch.uint8, device=device)
        slack = -self.buffer.data_ptr() % shape.alignment
        self.base: int = self.buffer.data_ptr() + slack
        data = self.buffer[slack : slack + shape.layers * layer].view(shape.layers, shape.blocks, shape.stride)
        self.used = data[:, :, : shape.rows * shape.row_bytes]
        """uint8 [layers, blocks, P * C]: the rows of every block; padding is out of reach."""
        geometry = Geometry(shape.rows, 1, shape.row_bytes, stride=shape.stride)
        runs = self.buffer[slack : slack + shape.layers * layer].view(shape.layers, layer)
        self.layers = tuple(Pool(run, geometry, shape.blocks) for run in runs)
        self._words = -(-shape.row_bytes // 8)
        self._keys = torch.zeros((0, self._words), dtype=torch.int64, device=device)
        turns = torch.arange(shape.layers, device=device)[:, None, None]
        self._turns = turns * _signed(self._words * GOLDEN)

    def by_table(self, blocks: Sequence[int]) -> bool:
        """Whether many blocks are better moved by one launch and a table; on a CPU block by block is faster."""
        return self.device.type != "cpu" and len(blocks) > _FEW_BLOCKS

    def size(self, extent: Extent, place: int) -> int:
        """Bytes of an extent's rows in one of its blocks, in one layer.

        Raises:
            TensorError: The extent has no such block.
        """
        if not 0 <= place < len(extent.blocks):
            raise TensorError("the extent has no such block", got=place, expected=f"below {len(extent.blocks)}")
        return max(0, min(self.shape.rows, extent.rows - place * self.shape.rows)) * self.shape.row_bytes

    def is_whole(self, extent: Extent, places: Sequence[int]) -> bool:
        """Whether the places are all of the extent's blocks, in order."""
        return list(places) == list(range(self.shape.blocks_for(extent.rows)))

    def gathered(self, blocks: Sequence[int], rows: int) -> torch.Tensor:
        """uint8 [layers, rows * C], contiguous, a copy: rows in order."""
        table, row = blocks[: self.shape.blocks_for(rows)], self.shape.row_bytes
        if self.by_table(table):
            taken = self.used.index_select(1, torch.tensor(table, device=self.device))
            return taken.view(self.shape.layers, -1)[:, : rows * row].contiguous()
        found = torch.empty((self.shape.layers, rows * row), dtype=torch.uint8, device=self.device)
        begin = 0
        for block in table:
            some = min(self.used.shape[2], rows * row - begin)
            found[:, begin : begin + some].copy_(self.used[:, block, :some])
            begin += some
        return found

    def spread(self, blocks: Sequence[int], rows: torch.Tensor) -> None:
        """Write rows in order into blocks, and zero what is left of those blocks' rows.

        Args:
            blocks: Each once, enough for the rows; those that are left over are zeroed whole.
            rows: uint8 [layers, rows * C].
        """
        whole = torch.zeros((self.shape.layers, len(blocks), self.used.shape[2]), dtype=torch.uint8, device=self.device)
        whole.view(self.shape.layers, -1)[:, : rows.shape[1]] = rows
        self.used.index_copy_(1, torch.tensor(blocks, device=self.device), whole)

    def clear(self, block: int, begin: int) -> None:
        """Zero a block's rows from a byte on, in all layers."""
        if begin < self.used.shape[2]:
            self.used[:, block, begin:].zero_()

    def poison(self, blocks: Sequence[int]) -> None:
        """Fill all rows of blocks with NaNs of every number format."""
        for block in blocks:
            self.used[:, block].fill_(POISON)

    def fingerprint_at(self, blocks: Sequence[int], rows: int) -> str:
        """The fingerprint of rows where they lie: by the kernel, a launch a layer and one wait at the end.

        The twin of `fingerprint` over `gathered` rows, which it does not gather.
        """
        table = torch.tensor(blocks[: self.shape.blocks_for(rows)], dtype=torch.int64, device=self.device)
        total = torch.zeros(1, dtype=torch.int64, device=self.device)
        for layer, pool in enumerate(self.layers):
            launch.enqueue(total, pool, table, rows, 0, layer, self.shape.layers)
        return finish(int(total) & MASK, self.shape.payload_bytes(rows))

    def fingerprint(self, rows: torch.Tensor) -> str:
        """The fingerprint of rows in order, each layer a head of the formula; waits for the device.

        Args:
            rows: uint8 [layers, rows * C]; a layer's bytes lie together.
        """
        layers, row = self.shape.layers, self.shape.row_bytes
        count = rows.shape[1] // row
        words = self._as_words(rows, count)
        slab = max(1, _SLAB_WORDS[self.device.type] // (layers * self._words))
        total = 0
        for first in range(0, count, slab):
            some = words[:, first : first + slab]
            keys = self._keys_of(some.shape[1])
            if first or layers > 1:
                keys = keys + (self._turns + _signed(first * layers * self._words * GOLDEN))
            total += int(mix(some ^ keys).sum())
        return finish(total & MASK, layers * count * row)

    def _keys_of(self, count: int) -> torch.Tensor:
        """int64 [count, W]: (position + 1) * GOLDEN of the words of the first layer's first rows."""
        keys = self._keys
        if keys.shape[0] < count:
            rows = torch.arange(count, device=self.device)[:, None] * (self.shape.layers * self._words)
            keys = (rows + torch.arange(1, self._words + 1, device=self.device)) * _signed(GOLDEN)
            self._keys = keys
        return keys[:count]

    def _as_words(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """int64 [layers, T, W], little-endian, the last word of a row filled with zero bytes."""
        row = self.shape.row_bytes
        aligned = rows.storage_offset() % 8 == 0 and (self.shape.layers == 1 or rows.stride(0) % 8 == 0)
        if row % 8 == 0 and aligned:
            return rows.view(torch.int64).unflatten(1, (count, self._words))
        padded = torch.zeros((self.shape.layers, count, self._words * 8), dtype=torch.uint8, device=self.device)
        padded[:, :, :row] = rows.unflatten(1, (count, row))
        return padded.view(torch.int64)


def _signed(number: int) -> int:
    low = number & MASK
    return low - 2**64 if low >> 63 else low
