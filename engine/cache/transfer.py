"""Transfers between tiers: a status for each block, failed ones tried again within a budget, a fence at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hitproof.engine.cache.points import At
from hitproof.engine.store import Found, Store
from hitproof.spec.memory import Extent, HostRows, Memory

__all__ = ["RETRIES", "Transfer", "load_rows", "read_stored", "save_rows"]

RETRIES = 2
"""How often the blocks that failed are tried again."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """How a transfer ended.

    Args:
        arrived: For each block, whether it has arrived.
        tries: How often blocks were sent.
    """

    arrived: tuple[bool, ...]
    tries: int

    @property
    def done(self) -> bool:
        """Whether every block has arrived; a part is never counted as loaded."""
        return all(self.arrived)

    @property
    def late(self) -> str:
        """What is missing, as text."""
        return f"{self.arrived.count(False)} of {len(self.arrived)} blocks have not arrived in {self.tries} tries"


def save_rows(memory: Memory, source: Extent, host: HostRows, at: At, retries: int = RETRIES) -> Transfer:
    """Copy rows from the device to the host."""
    return _run(lambda places: memory.save(source, host, places), memory, len(source.blocks), at, "save", retries)


def load_rows(memory: Memory, host: HostRows, target: Extent, at: At, retries: int = RETRIES) -> Transfer:
    """Copy rows from the host to the device."""
    return _run(lambda places: memory.load(host, target, places), memory, len(target.blocks), at, "load", retries)


def read_stored(disk: Store, key: str, memory: Memory, host: HostRows, at: At) -> str:
    """Read a segment from the disk into a host buffer; every byte is verified.

    Returns:
        Why it cannot be had; empty where it could.
    """
    at("load")
    answer = disk.get(key)
    if not isinstance(answer, Found):
        return f"{answer.reason}: {answer.detail}"
    if len(answer.payload) != host.nbytes:
        return f"{len(answer.payload)} bytes are stored, and the segment has {host.nbytes}"
    memory.fill(host, answer.payload)
    return ""


def _run(
    move: Callable[[Sequence[int]], tuple[int, ...]], memory: Memory, blocks: int, at: At, point: str, retries: int
) -> Transfer:
    failed: tuple[int, ...] = tuple(range(blocks))
    tries = 0
    while failed and tries <= retries:
        at(point)
        failed = move(failed)
        tries += 1
    memory.fence().wait()
    return Transfer(tuple(place not in failed for place in range(blocks)), tries)
