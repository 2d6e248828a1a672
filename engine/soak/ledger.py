"""The ledger of a soak: every fault with what it spoiled, who noticed it, and how the request that met it went on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock, local

__all__ = ["Fault", "KINDS", "Ledger"]

KINDS: dict[str, str] = {
    "bit_flip": "a bit of a block on the device turns",
    "torn_copy": "a copy stops half-way",
    "lost_write": "a write is reported and never happens",
    "wrong_object": "a write lands in a block of another segment or object",
    "swapped_blocks": "two blocks change places behind the tables",
    "wrong_generation": "a block is given out a second time while its owner lives",
    "stale_table": "a page-table entry leads to another block",
    "odd_address": "bytes come back from slower storage at an address that is not aligned",
    "hash_collision": "a key leads to the segments of another identity",
    "other_kernel": "a kernel of another number format or version is loaded",
    "slow_load": "a load takes much longer",
    "failed_load": "a load tells of places that failed",
    "disk_full": "the disk takes nothing more",
    "disk_rot": "a bit of a stored file turns",
    "killed_process": "the process ends at any step; the disk stays",
}
"""Fault kinds, each in a sentence."""

Place = tuple[str, int]
"""Group and block; or `host` and a number, of rows in host memory."""


@dataclass(slots=True, eq=False)
class Fault:
    """One injected fault.

    Args:
        kind: One of `KINDS`.
        places: Blocks whose bytes it spoiled.
        caught: Who noticed it: a moment and a layer's rule; empty as long as nobody has.
        recovered: How the turn ended in which it was noticed.
        void: Why nobody could notice it any more.
        used: Whether wrong bytes of it were used.
    """

    kind: str
    places: set[Place] = field(default_factory=set)
    caught: str = ""
    recovered: str = ""
    void: str = ""
    used: bool = False


class Ledger:
    """Faults of a run, shared between threads.

    Args:
        serial: How often a block was given out; a fault on a block ends when the block is somebody else's.
    """

    def __init__(self, serial: Callable[[str, int], int]) -> None:
        self.serial = serial
        self.lock = RLock()
        self.faults: list[Fault] = []
        self._open: dict[str, list[Fault]] = {kind: [] for kind in KINDS}
        self._spoiled: dict[Place, list[tuple[Fault, int]]] = {}
        self._read: Counter[Place] = Counter()
        self._here = local()

    def inject(self, kind: str, places: Iterable[Place] = ()) -> Fault:
        """Note a fault, and the blocks that it spoils."""
        fault = Fault(kind)
        with self.lock:
            self.faults.append(fault)
            self._open[kind].append(fault)
            self.spoil(fault, places)
        return fault

    def unnoticed(self, kind: str) -> list[Fault]:
        """Faults of a kind that nobody has noticed."""
        with self.lock:
            left = self._open[kind] = [fault for fault in self._open[kind] if not (fault.caught or fault.void)]
            return list(left)

    def spoil(self, fault: Fault, places: Iterable[Place]) -> None:
        """Note that blocks hold what a fault made of them."""
        with self.lock:
            for place in places:
                fault.places.add(place)
                self._spoiled.setdefault(place, []).append((fault, self._serial(place)))

    def of(self, places: Iterable[Place]) -> tuple[Fault, ...]:
        """Faults whose damage lies in these blocks, as these are now."""
        if not self._spoiled:
            return ()
        with self.lock:
            found = {id(fault): fault for place in places for fault in self._live(place)}
        return tuple(found.values())

    def follow(self, source: Iterable[Place], target: Iterable[Place]) -> None:
        """Damage of the source is now in the target too; what the target had is gone."""
        with self.lock:
            moved = self.of(source)
            places = tuple(target)
            self.rewritten(places)
            for fault in moved:
                self.spoil(fault, places)

    def rewritten(self, places: Iterable[Place]) -> None:
        """Blocks were written anew as a whole, so nothing of an earlier fault is left in them."""
        if not self._spoiled:
            return
        with self.lock:
            for place in places:
                for fault, _ in self._spoiled.pop(place, ()):
                    self._gone(fault, place)

    def catch(self, faults: Iterable[Fault], by: str) -> None:
        """Somebody noticed faults, in the turn of this thread."""
        with self.lock:
            for fault in faults:
                if not fault.caught:
                    fault.caught = by
                    self._met().append(fault)

    def name(self, moment: str, by: str) -> None:
        """Say more exactly who noticed what this thread's turn has noticed at a moment; empty where nobody did."""
        with self.lock:
            for fault in self._met():
                if fault.caught == moment:
                    fault.caught = by

    def use(self, faults: Iterable[Fault]) -> None:
        """Wrong bytes of faults were used."""
        with self.lock:
            for fault in faults:
                fault.used = True

    @contextmanager
    def turn(self) -> Iterator[list[str]]:
        """A turn of an actor; what it appends to the list is how it went on, with whatever it has noticed."""
        words: list[str] = []
        self._here.faults = []
        yield words
        for fault in self._here.faults:
            fault.recovered = "; ".join(words)

    @property
    def moment(self) -> str:
        """What this thread is about."""
        return getattr(self._here, "moment", "")

    @contextmanager
    def during(self, moment: str) -> Iterator[None]:
        """This thread is about something, for the time being."""
        before, self._here.moment = self.moment, moment
        try:
            yield
        finally:
            self._here.moment = before

    @contextmanager
    def reading(self, places: Iterable[Place]) -> Iterator[None]:
        """Blocks that are between their last check and the end of their use; no fault is injected into them."""
        held = tuple(places)
        with self.lock:
            # A reader of a dead process may end at any time later; it counts for nothing in the next one.
            read = self._read
            read.update(held)
        try:
            yield
        finally:
            with self.lock:
                read.subtract(held)
                for place in held:
                    if read[place] <= 0:
                        del read[place]

    def spared(self, places: Iterable[Place]) -> bool:
        """Whether somebody reads one of these blocks; asked under the lock."""
        return any(place in self._read for place in places)

    def memory_is_gone(self) -> None:
        """Nothing of what lay in memory is left, and nobody reads it."""
        with self.lock:
            self._read = Counter()
            for fault in self.faults:
                if fault.places and not (fault.caught or fault.void):
                    fault.void = "gone with the process"
            self._spoiled.clear()

    def close(self) -> None:
        """At the end, what nobody has noticed is told apart: gone with its block, or still there and unread."""
        with self.lock:
            for fault in self.faults:
                if not (fault.caught or fault.used or fault.void):
                    fault.void = "unread" if any(self._live(place) for place in fault.places) else "given up unread"

    def _live(self, place: Place) -> list[Fault]:
        entries = self._spoiled.get(place)
        if not entries:
            return []
        serial = self._serial(place)
        if any(then != serial for _, then in entries):
            entries = self._spoiled[place] = [(fault, then) for fault, then in entries if then == serial]
        return [fault for fault, _ in entries]

    def _gone(self, fault: Fault, place: Place) -> None:
        fault.places.discard(place)
        if not fault.places and not fault.caught:
            fault.void = "overwritten unread"

    def _serial(self, place: Place) -> int:
        return 0 if place[0] == "host" else self.serial(*place)

    def _met(self) -> list[Fault]:
        found: list[Fault] | None = getattr(self._here, "faults", None)
        if found is None:
            found = self._here.faults = []
        return found
