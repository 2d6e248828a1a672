"""What the torch memory holds on the host: buffers of rows, payloads as tensors, and fences of its device."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hitproof.spec.errors import TensorError
from hitproof.spec.memory import Extent, Fence, HostRows, Payload, PoolShape

__all__ = ["TorchRows", "as_bytes", "as_rows", "fence_of", "rows_for", "rows_of_host"]


@dataclass(frozen=True, slots=True)
class TorchRows:
    """A host buffer: uint8 [layers, rows * row_bytes], pinned where there is a GPU."""

    group: str
    rows: int
    data: torch.Tensor

    @property
    def nbytes(self) -> int:
        return int(self.data.numel())


class _Done:
    """The fence of a device whose calls are complete when they return."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass


class _Recorded:
    """The fence of a GPU: an event after all that its current stream had been given."""

    __slots__ = ("_event",)

    def __init__(self, device: torch.device) -> None:
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(device))

    def done(self) -> bool:
        return bool(self._event.query())

    def wait(self) -> None:
        self._event.synchronize()


def fence_of(device: torch.device) -> Fence:
    """The completion of what a device's current stream has been given so far."""
    return _Recorded(device) if device.type == "cuda" else _Done()


def rows_of_host(host: HostRows) -> torch.Tensor:
    """uint8 [layers, rows * row_bytes]: the bytes of a buffer.

    Raises:
        TensorError: It is a buffer of another memory.
    """
    if not isinstance(host, TorchRows):
        raise TensorError("the host buffer is of another memory", got=type(host).__name__)
    return host.data


def rows_for(host: HostRows, extent: Extent) -> torch.Tensor:
    """uint8 [layers, rows * row_bytes]: the bytes of a buffer for an extent.

    Raises:
        TensorError: It is of another memory, group or size.
    """
    data = rows_of_host(host)
    if (host.group, host.rows) != (extent.group, extent.rows):
        raise TensorError(
            "the host buffer is of another extent",
            got=f"{host.rows} rows of {host.group}",
            expected=f"{extent.rows} rows of {extent.group}",
        )
    return data


def as_bytes(payload: Payload) -> torch.Tensor:
    """uint8 [bytes], a copy: torch takes no buffer that may not be written."""
    own = bytearray(payload)
    return torch.frombuffer(own, dtype=torch.uint8) if own else torch.empty(0, dtype=torch.uint8)


def as_rows(shape: PoolShape, payload: Payload) -> torch.Tensor:
    """uint8 [layers, rows * row_bytes]: a payload's rows, a copy.

    Raises:
        TensorError: They are no whole number of rows.
    """
    given = as_bytes(payload)
    rows, left = divmod(given.numel(), shape.payload_bytes(1))
    if left:
        raise TensorError("the payload is no whole number of rows", got=given.numel(), expected=shape.payload_bytes(1))
    return given.view(shape.layers, rows * shape.row_bytes)
