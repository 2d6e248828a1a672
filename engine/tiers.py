"""A tiered least-recently-used cache of block ids: device, then host, then disk, then lost."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from hitproof.spec.errors import InternalError, UsageError

__all__ = ["DEVICE", "DISK", "HOST", "TIER_NAMES", "TieredLru"]

DEVICE, HOST, DISK = 0, 1, 2
TIER_NAMES = ("device", "host", "disk")


class TieredLru:
    """Holds each known block in exactly one tier; what a tier cannot hold moves to the next one.

    A block that is touched goes to the device, wherever it was. The three tiers together are one order of
    recency, cut at the capacities, so a tier holds a block only where every tier above it is full, unless blocks
    were demoted early.

    Args:
        device: Capacity of the device in blocks; None is unlimited.
        host: Capacity of the host in blocks; None is unlimited, 0 leaves the tier out.
        disk: Capacity of the disk in blocks; None is unlimited, 0 leaves the tier out.
        on_demote: Called as (block id, from tier, to tier) after a block has moved down.
        on_lost: Called as (block id) after a block has left the last tier.

    Raises:
        UsageError: A capacity is neither None nor a whole number of at least 0.
    """

    __slots__ = ("_below", "_capacities", "_early", "_on_demote", "_on_lost", "_tiers")

    def __init__(
        self,
        device: int | None,
        host: int | None = 0,
        disk: int | None = 0,
        *,
        on_demote: Callable[[int, int, int], object] | None = None,
        on_lost: Callable[[int], object] | None = None,
    ) -> None:
        self._capacities = (device, host, disk)
        for name, capacity in zip(TIER_NAMES, self._capacities, strict=True):
            if capacity is not None and (type(capacity) is not int or capacity < 0):
                raise UsageError(
                    f"the capacity of the {name} tier cannot be used",
                    got=capacity,
                    expected="a whole number of blocks, at least 0, or None for unlimited",
                )
        self._tiers: tuple[OrderedDict[int, None], ...] = (OrderedDict(), OrderedDict(), OrderedDict())
        used = [tier for tier in (HOST, DISK) if self._capacities[tier] != 0]
        self._below = tuple(next((low for low in used if low > tier), None) for tier in (DEVICE, HOST, DISK))
        self._early = False
        self._on_demote = on_demote
        self._on_lost = on_lost

    def lookup(self, hash_ids: Sequence[int]) -> list[int]:
        """The tiers of the longest contiguous prefix whose blocks are all known; changes nothing.

        Args:
            hash_ids: A request's block ids in path order.

        Returns:
            One code a block (0 device, 1 host, 2 disk), ending before the first unknown block.
        """
        device, host, disk = self._tiers
        codes: list[int] = []
        found = codes.append
        for block in hash_ids:
            if block in device:
                found(DEVICE)
            elif block in host:
                found(HOST)
            elif block in disk:
                found(DISK)
            else:
                break
        return codes

    def admit(self, hash_ids: Sequence[int]) -> None:
        """Touches a request's blocks in path order and brings them to the device; changes the cache.

        What overflows is settled once, after the last block: a block that the request itself reads is never
        demoted to make room for an earlier one of its blocks. The tiers end as if each touch had been settled
        alone.

        Args:
            hash_ids: The request's block ids in path order; unknown ones are inserted.
        """
        device, host, disk = self._tiers
        renew = device.move_to_end
        for block in hash_ids:
            if block in device:
                renew(block)
                continue
            if block in host:
                del host[block]
            elif block in disk:
                del disk[block]
            device[block] = None
        self._settle()

    def oldest(self) -> int | None:
        """The block of the device that was touched longest ago, or None; changes nothing."""
        return next(iter(self._tiers[DEVICE]), None)

    def demote_oldest(self) -> bool:
        """Moves the device's oldest block down before its room is needed; False where no tier lies below."""
        below = self._below[DEVICE]
        if below is None or not self._tiers[DEVICE]:
            return False
        block = self._tiers[DEVICE].popitem(False)[0]
        self._tiers[below][block] = None
        self._early = True
        if self._on_demote is not None:
            self._on_demote(block, DEVICE, below)
        self._settle()
        return True

    def tier_of(self, block: int) -> int | None:
        """The tier code of a block, or None where it is unknown; changes nothing."""
        return next((code for code, held in enumerate(self._tiers) if block in held), None)

    def sizes(self) -> tuple[int, int, int]:
        """How many blocks the device, the host and the disk hold now."""
        device, host, disk = self._tiers
        return len(device), len(host), len(disk)

    def check_integrity(self) -> None:
        """Proves the cache's own promises.

        Raises:
            InternalError: A block is in two tiers, a tier is over its capacity, or, where nothing was demoted early,
                a tier holds blocks while one above it has room.
        """
        seen: set[int] = set()
        room_in: str | None = None
        for name, capacity, held in zip(TIER_NAMES, self._capacities, self._tiers, strict=True):
            if not seen.isdisjoint(held):
                raise InternalError(f"block {min(seen.intersection(held))} is in the {name} tier and above it")
            if capacity is not None and len(held) > capacity:
                raise InternalError(f"the {name} tier holds {len(held)} blocks, its capacity is {capacity}")
            if held and room_in is not None and not self._early:
                raise InternalError(f"the {name} tier holds blocks while the {room_in} tier has room")
            if capacity is None or len(held) < capacity:
                room_in = name
            seen.update(held)

    def _settle(self) -> None:
        for tier, capacity in enumerate(self._capacities):
            held = self._tiers[tier]
            if capacity is None or len(held) <= capacity:
                continue
            oldest, below, demoted, lost = held.popitem, self._below[tier], self._on_demote, self._on_lost
            leaving = range(len(held) - capacity)
            if below is not None:
                lower = self._tiers[below]
                for _ in leaving:
                    block = oldest(False)[0]
                    lower[block] = None
                    if demoted is not None:
                        demoted(block, tier, below)
            else:
                for _ in leaving:
                    block = oldest(False)[0]
                    if lost is not None:
                        lost(block)
