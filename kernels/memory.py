"""The memory of the cache manager in torch: pools at fixed addresses on a device, and pinned buffers on its host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from hitproof.kernels.backend import backend_on
from hitproof.kernels.blocks import Pool
from hitproof.kernels.memory_host import TorchRows, as_bytes, as_rows, fence_of, rows_for, rows_of_host
from hitproof.kernels.memory_pool import LayeredPool
from hitproof.kernels.registry import AUTO
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import TensorError, UsageError
from hitproof.spec.memory import Extent, Fence, HostRows, Payload, PoolShape
from hitproof.spec.rows import has_rows, pool_shape

__all__ = ["Captured", "TorchMemory"]


@dataclass(frozen=True, slots=True)
class Captured:
    """What a captured graph knows of one group's pool in one layer; it stays until the pools are rebuilt.

    Args:
        base: Absolute address of block 0.
        stride: Bytes from a block to the next.
        blocks: Number of blocks.
        dtype: Type of the buffer.
    """

    base: int
    stride: int
    blocks: int
    dtype: torch.dtype


class TorchMemory:
    """A `Memory` of torch tensors.

    Pools are made once. Their addresses, strides, types and numbers of blocks never change, so that a graph may be
    captured over them; only `rebuild` makes new ones, and counts `epoch` up. On a GPU all work goes to the current
    stream, and only `read`, `fingerprint`, `digest` and `write` wait for it; on a CPU every call is complete when it
    returns.

    Args:
        bound: The groups; those without bytes get no pool.
        blocks: Blocks of every group's pool, or of each group's by its id.
        device: `cpu` or `cuda`.
        backend: What measures rows where they lie; `auto` for that of the device.

    Raises:
        TensorError: A group with bytes is not in `blocks`.
        ProfileError: A group states no geometry.
        UsageError: There is no such device.
    """

    def __init__(
        self, bound: BoundRulebook, blocks: Mapping[str, int] | int, device: str = "cpu", backend: str = AUTO
    ) -> None:
        self._device = torch.device(device)
        if self._device.type == "cuda" and not torch.cuda.is_available():
            raise UsageError("torch sees no GPU", got=device, expected="cpu")
        self._by_kernel = (backend_on(self._device.type) if backend == AUTO else backend) != "torch"
        self._epoch = 0
        shapes = {}
        for group in bound.groups:
            if has_rows(group):
                count = blocks if isinstance(blocks, int) else blocks.get(group.id)
                if count is None:
                    raise TensorError("nothing says how many blocks the group has", rule=group.id)
                shapes[group.id] = pool_shape(group, count)
        self._shapes = shapes
        self._pools = {group: LayeredPool(shape, self._device) for group, shape in shapes.items()}

    @property
    def epoch(self) -> int:
        """How often the pools were rebuilt: the pool epoch of the run time."""
        return self._epoch

    def rebuild(self) -> None:
        """Make new, empty pools, once all work on the old ones is complete; what those held is gone.

        Every captured graph and every address of before is void.
        """
        self.fence().wait()
        # The old ones go first: a device seldom has room for both.
        self._pools.clear()
        for group, shape in self._shapes.items():
            self._pools[group] = LayeredPool(shape, self._device)
        self._epoch += 1

    def captured(self, group: str) -> tuple[Captured, ...]:
        """What a graph may hold on to, layer by layer."""
        return tuple(
            Captured(pool.buffer.data_ptr(), pool.geometry.stride, pool.blocks, pool.buffer.dtype)
            for pool in self.layers(group)
        )

    def layers(self, group: str) -> tuple[Pool, ...]:
        """The group's blocks as kernels take them, a pool a layer; what they write is written here."""
        return self._pool(group).layers

    def groups(self) -> tuple[str, ...]:
        """As `Memory`."""
        return tuple(self._shapes)

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
        rows = as_rows(pool.shape, payload).to(self._device)
        row = pool.shape.row_bytes
        count = rows.shape[1] // row
        if not 0 <= first <= first + count <= extent.rows:
            raise TensorError("the rows leave the extent", got=f"{count} from {first}", expected=extent.rows)
        at = first
        while at < first + count:
            place, inside = divmod(at, pool.shape.rows)
            some = min(pool.shape.rows - inside, first + count - at)
            part = rows[:, (at - first) * row : (at - first + some) * row]
            pool.used[:, extent.blocks[place], inside * row : (inside + some) * row].copy_(part)
            at += some

    def read(self, extent: Extent) -> bytes:
        """As `Memory`."""
        return bytes(self._of(extent).gathered(extent.blocks, extent.rows).cpu().numpy().tobytes())

    def fingerprint(self, extent: Extent) -> str:
        """As `Memory`."""
        pool = self._of(extent)
        if self._by_kernel:
            return pool.fingerprint_at(extent.blocks, extent.rows)
        if extent.rows and pool.shape.blocks_for(extent.rows) == 1:
            return pool.fingerprint(pool.used[:, extent.blocks[0], : extent.rows * pool.shape.row_bytes])
        return pool.fingerprint(pool.gathered(extent.blocks, extent.rows))

    def digest(self, group: str, payload: Payload) -> str:
        """As `Memory`."""
        pool = self._pool(group)
        return pool.fingerprint(as_rows(pool.shape, payload).to(self._device))

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
        if pool.by_table(target.blocks):
            pool.spread(target.blocks, pool.gathered(source.blocks, source.rows))
            return
        for place, block in enumerate(target.blocks):
            size = pool.size(target, place)
            if size:
                pool.used[:, block, :size].copy_(pool.used[:, source.blocks[place], :size])
            pool.clear(block, size)

    def host(self, group: str, rows: int) -> HostRows:
        """As `Memory`."""
        shape = self._pool(group).shape
        data = torch.zeros(
            (shape.layers, rows * shape.row_bytes), dtype=torch.uint8, pin_memory=self._device.type == "cuda"
        )
        return TorchRows(group, rows, data)

    def save(self, source: Extent, host: HostRows, places: Sequence[int]) -> tuple[int, ...]:
        """As `Memory`."""
        pool, rows = self._of(source), rows_for(host, source)
        if pool.by_table(source.blocks) and pool.is_whole(source, places):
            rows.copy_(pool.gathered(source.blocks, source.rows), non_blocking=True)
            return ()
        for place in places:
            size, begin = pool.size(source, place), place * pool.used.shape[2]
            # Layer by layer both sides are one run of bytes, which a device copies without a stop in between.
            for layer in range(pool.shape.layers):
                read = pool.used[layer, source.blocks[place], :size]
                rows[layer, begin : begin + size].copy_(read, non_blocking=True)
        return ()

    def load(self, host: HostRows, target: Extent, places: Sequence[int]) -> tuple[int, ...]:
        """As `Memory`."""
        pool, rows = self._of(target), rows_for(host, target)
        taken = target.blocks[: pool.shape.blocks_for(target.rows)]
        if pool.by_table(taken) and pool.is_whole(target, places):
            pool.spread(taken, rows.to(self._device, non_blocking=True))
            return ()
        for place in places:
            size, begin = pool.size(target, place), place * pool.used.shape[2]
            for layer in range(pool.shape.layers):
                write = pool.used[layer, target.blocks[place], :size]
                write.copy_(rows[layer, begin : begin + size], non_blocking=True)
            pool.clear(target.blocks[place], size)
        return ()

    def payload(self, host: HostRows) -> memoryview:
        """As `Memory`."""
        return memoryview(rows_of_host(host).numpy().reshape(-1))

    def fill(self, host: HostRows, payload: Payload) -> None:
        """As `Memory`."""
        data, given = rows_of_host(host), as_bytes(payload)
        if given.numel() != data.numel():
            raise TensorError("the payload has another size", got=given.numel(), expected=data.numel())
        data.view(-1).copy_(given)

    def poison(self, group: str, blocks: Sequence[int]) -> None:
        """As `Memory`."""
        self._of(Extent(group, tuple(blocks), 0)).poison(blocks)

    def fence(self) -> Fence:
        """As `Memory`."""
        return fence_of(self._device)

    def _pool(self, group: str) -> LayeredPool:
        try:
            return self._pools[group]
        except KeyError:
            raise TensorError("the group has no bytes", got=group, expected=", ".join(self._shapes)) from None

    def _of(self, extent: Extent) -> LayeredPool:
        """The extent's pool, once the extent is seen to lie in it."""
        pool = self._pool(extent.group)
        blocks = extent.blocks
        if not 0 <= extent.rows <= len(blocks) * pool.shape.rows:
            raise TensorError("the extent has too few blocks", got=len(blocks), expected=f"{extent.rows} rows")
        if blocks and not 0 <= min(blocks) <= max(blocks) < pool.shape.blocks:
            raise TensorError("the extent leaves its pool", got=blocks[:20], expected=f"below {pool.shape.blocks}")
        return pool
