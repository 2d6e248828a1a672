"""The memory of the cache manager in NumPy, written to be read: an array of bytes a group, and no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hitproof.engine.cache.fingerprints import Fingerprints
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import TensorError
from hitproof.spec.memory import Extent, Fence, HostRows, Payload, PoolShape
from hitproof.spec.rows import has_rows, pool_shape

__all__ = ["POISON", "PlainMemory"]

POISON = 0xFF
"""Two bytes of it are a NaN in bfloat16, four in float32, one in both kinds of fp8."""

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A host buffer: uint8 [layers, rows, row_bytes]."""

    group: str
    data: _Bytes

    @property
    def rows(self) -> int:
        return int(self.data.shape[1])

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


class _Done:
    """The fence of a memory whose calls are complete when they return."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass


class _Pool:
    """One group's blocks: uint8 [layers, blocks, stride], its first byte on the group's alignment."""

    __slots__ = ("base", "data", "fingerprints", "shape")

    def __init__(self, shape: PoolShape) -> None:
        self.shape = shape
        size = shape.layers * shape.blocks * shape.stride
        # Zeros of the system, which take no memory before they are touched.
        buffer = np.zeros(size + shape.alignment, dtype=np.uint8)
        slack = -buffer.ctypes.data % shape.alignment
        self.data: _Bytes = buffer[slack : slack + size].reshape(shape.layers, shape.blocks, shape.stride)
        self.base: int = buffer.ctypes.data + slack
        self.fingerprints = Fingerprints(shape.layers, shape.row_bytes)


class PlainMemory:
    """A `Memory` whose device and host are the same machine's memory; every call is complete when it returns.

    Args:
        bound: The groups; those without bytes get no pool.
        blocks: Blocks of every group's pool, or of each group's by its id.

    Raises:
        TensorError: A group with bytes is not in `blocks`.
        ProfileError: A group states no geometry.
    """

    def __init__(self, bound: BoundRulebook, blocks: Mapping[str, int] | int) -> None:
        self._pools: dict[str, _Pool] = {}
        for group in bound.groups:
            if has_rows(group):
                count = blocks if isinstance(blocks, int) else blocks.get(group.id)
                if count is None:
                    raise TensorError("nothing says how many blocks the group has", rule=group.id)
                self._pools[group.id] = _Pool(pool_shape(group, count))

    def groups(self) -> tuple[str, ...]:
        """As `Memory`."""
        return tuple(self._pools)

    def shape(self, group: str) -> PoolShape:
        """As `Memory`."""
        return self._pool(group).shape

    def address(self, group: str, block: int) -> int:
        """As `Memory`."""
        pool = self._pool(group)
        return pool.base + block * pool.shape.stride

    def write(self, extent: Extent, first: int, payload: Payload) -> None:
        """As `Memory`."""
        pool = self._of(extent)
        rows = _as_rows(pool.shape, payload)
        count = rows.shape[1]
        if not 0 <= first <= first + count <= extent.rows:
            raise TensorError("the rows leave the extent", got=f"{count} from {first}", expected=extent.rows)
        step, row = pool.shape.rows, pool.shape.row_bytes
        at = first
        while at < first + count:
            place, inside = divmod(at, step)
            some = min(step - inside, first + count - at)
            part = rows[:, at - first : at - first + some].reshape(pool.shape.layers, some * row)
            pool.data[:, extent.blocks[place], inside * row : (inside + some) * row] = part
            at += some

    def read(self, extent: Extent) -> bytes:
        """As `Memory`."""
        return self._gathered(self._of(extent), extent).tobytes()

    def fingerprint(self, extent: Extent) -> str:
        """As `Memory`."""
        pool = self._of(extent)
        if len(extent.blocks) == 1:
            return pool.fingerprints.of(pool.data[:, extent.blocks[0], : extent.rows * pool.shape.row_bytes])
        return pool.fingerprints.of(self._gathered(pool, extent))

    def digest(self, group: str, payload: Payload) -> str:
        """As `Memory`."""
        pool = self._pool(group)
        return pool.fingerprints.of(_as_rows(pool.shape, payload).reshape(pool.shape.layers, -1))

    def copy(self, source: Extent, target: Extent) -> None:
        """As `Memory`."""
        pool = self._of(source)
        if (source.group, source.rows) != (target.group, target.rows):
            raise TensorError(
                "a copy has the same rows of the same group",
                got=f"{target.rows} of {target.group}",
                expected=f"{source.rows} of {source.group}",
            )
        self._of(target)
        used = pool.shape.rows * pool.shape.row_bytes
        for place, block in enumerate(target.blocks):
            size = self._size(pool, target, place)
            if size:
                pool.data[:, block, :size] = pool.data[:, source.blocks[place], :size]
            pool.data[:, block, size:used] = 0

    def host(self, group: str, rows: int) -> HostRows:
        """As `Memory`."""
        shape = self._pool(group).shape
        return _Rows(group, np.zeros((shape.layers, rows, shape.row_bytes), dtype=np.uint8))

    def save(self, source: Extent, host: HostRows, places: Sequence[int]) -> tuple[int, ...]:
        """As `Memory`."""
        pool, rows = self._of(source), self._buffer(host, source)
        for place in places:
            size = self._size(pool, source, place)
            begin = place * pool.shape.rows * pool.shape.row_bytes
            rows[:, begin : begin + size] = pool.data[:, source.blocks[place], :size]
        return ()

    def load(self, host: HostRows, target: Extent, places: Sequence[int]) -> tuple[int, ...]:
        """As `Memory`."""
        pool, rows = self._of(target), self._buffer(host, target)
        used = pool.shape.rows * pool.shape.row_bytes
        for place in places:
            size = self._size(pool, target, place)
            begin = place * used
            pool.data[:, target.blocks[place], :size] = rows[:, begin : begin + size]
            pool.data[:, target.blocks[place], size:used] = 0
        return ()

    def payload(self, host: HostRows) -> memoryview:
        """As `Memory`."""
        return _data(host).reshape(-1).data

    def fill(self, host: HostRows, payload: Payload) -> None:
        """As `Memory`."""
        data = _data(host)
        given = np.frombuffer(payload, dtype=np.uint8)
        if given.size != data.size:
            raise TensorError("the payload has another size", got=given.size, expected=data.size)
        data[:] = given.reshape(data.shape)

    def poison(self, group: str, blocks: Sequence[int]) -> None:
        """As `Memory`."""
        pool = self._of(Extent(group, tuple(blocks), 0))
        used = pool.shape.rows * pool.shape.row_bytes
        for block in blocks:
            pool.data[:, block, :used] = POISON

    def fence(self) -> Fence:
        """As `Memory`."""
        return _Done()

    def _pool(self, group: str) -> _Pool:
        try:
            return self._pools[group]
        except KeyError:
            raise TensorError("the group has no bytes", got=group, expected=", ".join(self._pools)) from None

    def _of(self, extent: Extent) -> _Pool:
        """The extent's pool, once the extent is seen to lie in it."""
        pool = self._pool(extent.group)
        blocks = extent.blocks
        if not 0 <= extent.rows <= len(blocks) * pool.shape.rows:
            raise TensorError("the extent has too few blocks", got=len(blocks), expected=f"{extent.rows} rows")
        if blocks and not 0 <= min(blocks) <= max(blocks) < pool.shape.blocks:
            raise TensorError("the extent leaves its pool", got=blocks[:20], expected=f"below {pool.shape.blocks}")
        return pool

    def _gathered(self, pool: _Pool, extent: Extent) -> _Bytes:
        """uint8 [layers, rows * row_bytes], a copy."""
        row, used = pool.shape.row_bytes, pool.shape.rows * pool.shape.row_bytes
        table = list(extent.blocks[: pool.shape.blocks_for(extent.rows)])
        return pool.data[:, table, :used].reshape(pool.shape.layers, -1)[:, : extent.rows * row]

    def _size(self, pool: _Pool, extent: Extent, place: int) -> int:
        """Bytes of the extent's rows in one of its blocks, in one layer."""
        if not 0 <= place < len(extent.blocks):
            raise TensorError("the extent has no such block", got=place, expected=f"below {len(extent.blocks)}")
        return max(0, min(pool.shape.rows, extent.rows - place * pool.shape.rows)) * pool.shape.row_bytes

    def _buffer(self, host: HostRows, extent: Extent) -> _Bytes:
        """uint8 [layers, rows * row_bytes]: a view of a buffer that is of the extent's size."""
        data = _data(host)
        if (host.group, host.rows) != (extent.group, extent.rows):
            raise TensorError(
                "the host buffer is of another extent",
                got=f"{host.rows} rows of {host.group}",
                expected=f"{extent.rows} rows of {extent.group}",
            )
        return data.reshape(data.shape[0], -1)


def _data(host: HostRows) -> _Bytes:
    if not isinstance(host, _Rows):
        raise TensorError("the host buffer is of another memory", got=type(host).__name__)
    return host.data


def _as_rows(shape: PoolShape, payload: Payload) -> _Bytes:
    """uint8 [layers, rows, row_bytes], a view of the payload."""
    given = np.frombuffer(payload, dtype=np.uint8)
    rows, left = divmod(given.size, shape.payload_bytes(1))
    if left:
        raise TensorError("the payload is no whole number of rows", got=given.size, expected=shape.payload_bytes(1))
    return given.reshape(shape.layers, rows, shape.row_bytes)
