"""What is taken and promised of each pool: a ledger over the run-time facts that the rules name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from hitproof.spec.errors import InternalError
from hitproof.spec.policy import Pool

__all__ = ["Ledger"]


class Ledger:
    """Promises, takes and gives back (article 6.1); used plus reserved never exceeds the capacity of a pool.

    Args:
        pools: The rulebook's pools.
        runtime: Carrier of the run-time facts; the ledger writes the used and reserved ones.
    """

    def __init__(self, pools: Mapping[str, Pool], runtime: Any) -> None:
        self._runtime = runtime
        self._pools = dict(pools)
        self._promised: dict[Hashable, dict[str, int]] = {}
        self._taken: dict[Hashable, dict[str, int]] = {}

    def reserve(self, holder: Hashable, amounts: Mapping[str, int]) -> bool:
        """Promise a request all that its plan will take.

        Args:
            holder: The request.
            amounts: What it takes of each pool, as its decision's `promised` says.

        Returns:
            False where a pool is not named, or the amounts do not fit beside what is used and promised; then nothing
            changes.

        Raises:
            InternalError: The holder has a promise already.
        """
        if holder in self._promised:
            raise InternalError(f"{holder!r} has a promise already")
        if any(name not in amounts or not 0 <= amounts[name] <= self._room(name) for name in self._pools):
            return False
        self._promised[holder] = {name: amounts[name] for name in self._pools}
        self._taken[holder] = dict.fromkeys(self._pools, 0)
        for name, amount in self._promised[holder].items():
            self._add(self._pools[name].reserved, amount)
        return True

    def take(self, holder: Hashable, pool: str, amount: int) -> bool:
        """Turn part of a promise into use; False, and no change, where more is asked than was promised.

        Raises:
            InternalError: The holder has no promise.
        """
        promised = self._of(holder)
        if not 0 <= amount <= promised[pool]:
            return False
        promised[pool] -= amount
        self._taken[holder][pool] += amount
        self._add(self._pools[pool].reserved, -amount)
        self._add(self._pools[pool].used, amount)
        return True

    def give_back(self, holder: Hashable, pool: str, amount: int) -> None:
        """Return part of what was taken, as staging does once its bytes have arrived.

        Raises:
            InternalError: More is given back than was taken.
        """
        self._of(holder)
        if not 0 <= amount <= self._taken[holder][pool]:
            raise InternalError(f"{holder!r} gives back what it has not taken")
        self._taken[holder][pool] -= amount
        self._add(self._pools[pool].used, -amount)

    def release(self, holder: Hashable) -> None:
        """The request has ended, or was given up: its promises lapse and what it took is free.

        Raises:
            InternalError: The holder has no promise.
        """
        for name, amount in self._of(holder).items():
            self._add(self._pools[name].reserved, -amount)
            self._add(self._pools[name].used, -self._taken[holder][name])
        del self._promised[holder], self._taken[holder]

    def holds(self, holder: Hashable) -> bool:
        """Whether a request has a promise."""
        return holder in self._promised

    def check_integrity(self) -> None:
        """Used and reserved are what the promises and takes sum to, and within the capacity.

        Raises:
            InternalError: They are not.
        """
        for name, pool in self._pools.items():
            reserved = sum(amounts[name] for amounts in self._promised.values())
            used = sum(amounts[name] for amounts in self._taken.values())
            stated = self._read(pool.used), self._read(pool.reserved), self._read(pool.capacity)
            if None not in stated and (stated[:2] != (used, reserved) or used + reserved > (stated[2] or 0)):
                raise InternalError(
                    f"pool '{name}' has {stated} used, reserved and whole, and {used}, {reserved} summed"
                )

    def _of(self, holder: Hashable) -> dict[str, int]:
        if holder not in self._promised:
            raise InternalError(f"{holder!r} has no promise")
        return self._promised[holder]

    def _room(self, name: str) -> int:
        pool = self._pools[name]
        capacity, used, reserved = (self._read(path) for path in (pool.capacity, pool.used, pool.reserved))
        # What is unknown promises no room.
        return 0 if capacity is None or used is None or reserved is None else capacity - used - reserved

    def _read(self, path: str) -> int | None:
        value = getattr(self._runtime, path.removeprefix("runtime."))
        return value if type(value) is int else None

    def _add(self, path: str, amount: int) -> None:
        value = self._read(path)
        if value is not None:
            setattr(self._runtime, path.removeprefix("runtime."), value + amount)
