"""A graph that reads a prefix, replayed while the prefix is demoted and promoted on another stream.

On a GPU it is a CUDA graph and streams are streams. Elsewhere the device is played by a queue that does its work as
late as it may: whoever lets go of blocks when the work is launched, and not when it is done, is found out by either.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Protocol

import torch

from hitproof.engine import Engine
from hitproof.engine.lease import Lease
from hitproof.kernels.blocks import Geometry, Pool, pool_of
from hitproof.kernels.checksum import launch as checksum
from hitproof.kernels.checksum.reference import share_of
from hitproof.kernels.memory_host import fence_of
from hitproof.kernels.promote import launch as promote
from hitproof.rules import load_rulebook
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.spec.leasing import COMPARED, Leasing
from hitproof.spec.memory import Fence

__all__ = ["Gpu", "Late", "leasing", "played"]

ROWS, BLOCKS, HELD = 40, 6, 3
PAGE = Geometry(16, 1, 584, block_bytes=9_360)


class Device(Protocol):
    """A main stream with a captured graph, and another stream beside it."""

    place: torch.device

    def captured(self, work: Callable[[], None]) -> Callable[[], None]: ...
    def then(self, work: Callable[[], object]) -> None: ...
    def beside(self, work: Callable[[], object]) -> None: ...
    def fence(self) -> Fence: ...
    def drain(self) -> None: ...


class Late:
    """A device without hardware: the main stream's work waits until somebody asks for it."""

    place = torch.device("cpu")

    def __init__(self) -> None:
        self._waiting: list[Callable[[], object]] = []
        self._given = self._finished = 0

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        return lambda: self.then(work)

    def then(self, work: Callable[[], object]) -> None:
        self._waiting.append(work)
        self._given += 1

    def beside(self, work: Callable[[], object]) -> None:
        work()

    def fence(self) -> Fence:
        mark = self._given
        return SimpleNamespace(done=lambda: self._finished >= mark, wait=lambda: self._until(mark))

    def drain(self) -> None:
        self._until(self._given)

    def _until(self, mark: int) -> None:
        while self._finished < mark:
            self._waiting.pop(0)()
            self._finished += 1


class Gpu:
    """A CUDA graph that sleeps before it reads, so that whoever is too early is early for certain."""

    place = torch.device("cuda")
    _CYCLES = 50_000_000

    def __init__(self) -> None:
        self._beside: Any = torch.cuda.Stream()

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        side: Any = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            # Compiled before it is captured.
            work()
        torch.cuda.current_stream().wait_stream(side)
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.cuda._sleep(self._CYCLES)
            work()
        replay: Callable[[], None] = graph.replay
        return replay

    def then(self, work: Callable[[], object]) -> None:
        work()

    def beside(self, work: Callable[[], object]) -> None:
        with torch.cuda.stream(self._beside):
            work()
        self._beside.synchronize()

    def fence(self) -> Fence:
        return fence_of(self.place)

    def drain(self) -> None:
        torch.cuda.synchronize()


def leasing(*, unpins_at_launch: bool) -> Leasing:
    """What the shipped rulebook declares; or the same with its last two steps in the wrong order."""
    shipped = Engine(bind_rulebook(load_rulebook("mixed_attention"), load_profile("deepseek-v4-flash"))).leasing
    return replace(shipped, release=tuple(reversed(shipped.release))) if unpins_at_launch else shipped


def played(device: Device, rules: Leasing, rounds: int = 5) -> tuple[int, int]:
    """Replay the graph, and move the prefix whenever nobody has pinned it.

    Returns:
        Replays that did not read the prefix, and moves.
    """
    draw = torch.Generator().manual_seed(1)
    pool, staging = (_on(device, pool_of(PAGE, BLOCKS)) for _ in range(2))
    pool.buffer.copy_(torch.randint(0, 256, pool.buffer.shape, dtype=torch.uint8, generator=draw))
    prefix = SimpleNamespace(group="prefix", pins=0, blocks=[4, 0, 2], **dict.fromkeys(COMPARED.values(), 1))
    host = _on(device, Pool(pool.buffer.cpu(), PAGE, BLOCKS), cpu=True)
    expected = share_of(host, torch.tensor(prefix.blocks), ROWS)
    # Addresses are the graph's; what stands there may change between replays.
    table = torch.zeros(HELD, dtype=torch.int64, device=device.place)
    total = torch.zeros(1, dtype=torch.int64, device=device.place)
    seen = torch.zeros((rounds, 1), dtype=torch.int64, device=device.place)

    def use() -> None:
        total.zero_()
        checksum.enqueue(total, pool, table, ROWS)

    replay, moves = device.captured(use), 0
    pending: Lease | None = None
    for number in range(rounds):
        if pending is not None:
            pending.release()
            moves += _moved(device, prefix, pool, staging)
        lease = Lease.take([prefix], rules)
        assert lease.confirm()
        blocks = torch.tensor(prefix.blocks, device=device.place)
        device.then(lambda blocks=blocks: table.copy_(blocks))  # type: ignore[misc]
        replay()
        device.then(lambda row=seen[number]: row.copy_(total))  # type: ignore[misc]
        lease.begin_release(device.fence())
        moves += _moved(device, prefix, pool, staging)
        pending = lease
    device.drain()
    mask = 2**64 - 1
    return sum(int(one) & mask != expected for one in seen.cpu()), moves


def _moved(device: Device, prefix: Any, pool: Pool, staging: Pool) -> int:
    """Demote the prefix, give its blocks to somebody else, and promote it into others; 0 where it is pinned."""
    if prefix.pins:
        return 0
    old, order = prefix.blocks, torch.arange(HELD, device=device.place)
    new = [block for block in range(BLOCKS) if block not in old]
    found, free = (torch.tensor(one, device=device.place) for one in (old, new))
    spare = torch.zeros(1, dtype=torch.int64, device=device.place)

    def move() -> None:
        promote.enqueue(spare, pool, found, staging, order, ROWS)
        pool.owned[found] = 0xEE
        promote.enqueue(spare, staging, order, pool, free, ROWS)

    device.beside(move)
    prefix.blocks = new
    return 1


def _on(device: Device, pool: Pool, cpu: bool = False) -> Pool:
    return Pool(pool.buffer.to("cpu" if cpu else device.place), pool.geometry, pool.blocks)


if __name__ == "__main__":
    print(json.dumps(played(Gpu(), leasing(unpins_at_launch=sys.argv[1] == "launch"))))
