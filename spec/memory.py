"""Where cached rows lie, and what may be done with their bytes: the protocol between cache manager and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Extent", "Fence", "HostRows", "Memory", "Payload", "PoolShape"]

Payload = bytes | bytearray | memoryview
"""Bytes of rows, layer after layer, and in a layer row after row: [layers][rows][row_bytes], without gaps."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows of one segment in blocks of its group's pool; row r lies in `blocks[r // P]`, at r % P.

    Args:
        group: Group id.
        blocks: Blocks in the order of the rows; the same in every layer.
        rows: Number of rows; what the last block has beyond them belongs to nobody.
    """

    group: str
    blocks: tuple[int, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class PoolShape:
    """The geometry of one group's pool. All sizes in bytes, except counts.

    Args:
        blocks: Blocks of the pool (B).
        rows: Rows a block (P).
        layers: Layers that have the pool's blocks, each its own bytes.
        row_bytes: Bytes of one row in one layer.
        stride: From a block to the next in one layer, padding included.
        alignment: What addresses of blocks are multiples of, where the stride is one too.
    """

    blocks: int
    rows: int
    layers: int
    row_bytes: int
    stride: int
    alignment: int

    def payload_bytes(self, rows: int) -> int:
        """Bytes of so many rows in all layers."""
        return self.layers * rows * self.row_bytes

    def blocks_for(self, rows: int) -> int:
        """Blocks that so many rows take."""
        return -(-rows // self.rows)


class Fence(Protocol):
    """Completion of work that a device had been given."""

    def done(self) -> bool:
        """Whether all of it is complete. Never blocks."""
        ...

    def wait(self) -> None:
        """Block until it is."""
        ...


class HostRows(Protocol):
    """Bytes of one extent in host memory: all layers, rows in token order."""

    @property
    def group(self) -> str:
        """Group id."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in all layers."""
        ...


class Memory(Protocol):
    """The bytes of all groups, on a device and in host memory.

    No method locks: calls on different blocks may run at the same time, and who may write a block is the caller's
    business. Padding behind a block's rows is never written. What device work a method starts is ordered after what was
    started before it; `fence` says when it is complete. Every method raises `TensorError` for a group that has no
    bytes, an extent that leaves its pool, or a payload of another size.
    """

    def groups(self) -> tuple[str, ...]:
        """Ids of the groups that have bytes."""
        ...

    def shape(self, group: str) -> PoolShape:
        """Geometry of a group's pool."""
        ...

    def address(self, group: str, block: int) -> int:
        """Absolute address of a block in the group's first layer, in bytes."""
        ...

    def write(self, extent: Extent, first: int, payload: Payload) -> None:
        """Write rows `first` and following, as many as the payload has, and no byte besides."""
        ...

    def read(self, extent: Extent) -> bytes:
        """The rows' bytes as they lie now: [layers][rows][row_bytes]."""
        ...

    def fingerprint(self, extent: Extent) -> str:
        """16 hexadecimal digits of the rows in token order, wherever they lie; one formula for every memory."""
        ...

    def digest(self, group: str, payload: Payload) -> str:
        """The fingerprint that rows of these bytes have; they lie nowhere."""
        ...

    def copy(self, source: Extent, target: Extent) -> None:
        """Copy all rows to other blocks of the same group, and zero what is left of the target's rows."""
        ...

    def host(self, group: str, rows: int) -> HostRows:
        """A new buffer in host memory, pinned where that is possible; its bytes are zero."""
        ...

    def save(self, source: Extent, host: HostRows, places: Sequence[int]) -> tuple[int, ...]:
        """Copy the rows of some blocks from the device into a host buffer.

        Args:
            source: Rows to read, as many as the buffer has.
            host: A buffer of the same group.
            places: Which of the extent's blocks, by their place in its table.

        Returns:
            The places that failed; their rows in the buffer are not to be trusted.
        """
        ...

    def load(self, host: HostRows, target: Extent, places: Sequence[int]) -> tuple[int, ...]:
        """Copy the rows of some blocks from a host buffer to the device, and zero what is left of those blocks' rows.

        Returns:
            The places that failed; those blocks are not to be trusted.
        """
        ...

    def payload(self, host: HostRows) -> memoryview:
        """The bytes of a host buffer, [layers][rows][row_bytes], not copied; complete once a fence after `save` is."""
        ...

    def fill(self, host: HostRows, payload: Payload) -> None:
        """Write all bytes of a host buffer, as they come from a slower tier."""
        ...

    def poison(self, group: str, blocks: Sequence[int]) -> None:
        """Fill all rows of freed blocks with bytes that are a NaN in every number format."""
        ...

    def fence(self) -> Fence:
        """The completion of all device work that was started so far."""
        ...
