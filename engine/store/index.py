"""What the store holds, in memory: entries in the order of use, pins, and the sum of bytes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from threading import Lock

from hitproof.engine.store.answers import Entry
from hitproof.spec.errors import InternalError

__all__ = ["Index"]


class Index:
    """Entries by key, the longest unused first; safe for several threads.

    Args:
        entries: The entries with their places in the order of use.
    """

    def __init__(self, entries: Iterable[tuple[Entry, int]]) -> None:
        ordered = sorted(entries, key=lambda pair: (pair[1], pair[0].sequence, pair[0].key))
        self.lock = Lock()
        self._entries = OrderedDict((entry.key, entry) for entry, _ in ordered)
        self._bytes = sum(entry.bytes for entry in self._entries.values())
        self._pins: Counter[str] = Counter()
        self._clock = ordered[-1][1] if ordered else 0
        self._touched: dict[str, int] = {}

    def get(self, key: str) -> Entry | None:
        """The entry, or None; changes nothing."""
        return self._entries.get(key)

    def touch(self, key: str) -> int:
        """Makes a key the last in the order of use; answers its place."""
        with self.lock:
            self._clock += 1
            if key in self._entries:
                self._entries.move_to_end(key)
                self._touched[key] = self._clock
            return self._clock

    def touched(self) -> dict[str, int]:
        """Keys whose places no catalogue has noted yet; they count as noted from now on."""
        with self.lock:
            touched, self._touched = self._touched, {}
            return touched

    def place(self, entry: Entry) -> None:
        """Puts an entry last, in place of the one with its key."""
        with self.lock:
            self._take(entry.key)
            self._entries[entry.key] = entry
            self._bytes += entry.bytes

    def take(self, key: str, *, even_pinned: bool = False) -> Entry | None:
        """Removes an entry unless it is pinned; None where nothing was removed."""
        with self.lock:
            return None if self._pins[key] and not even_pinned else self._take(key)

    def take_oldest(self, need: int, limit: int, spare: str) -> list[Entry] | None:
        """Removes the longest unused entries that are not pinned, until so many bytes find room.

        Args:
            need: Bytes that are to be added.
            limit: The capacity in bytes.
            spare: The key that they are added under: its own bytes count as room, and it does not leave.

        Returns:
            The entries that were removed; None, with nothing removed, where pins keep too much.
        """
        with self.lock:
            own = self._entries.get(spare)
            excess = self._bytes - (own.bytes if own else 0) + need - limit
            leaving: list[Entry] = []
            for key, entry in self._entries.items():
                if excess <= 0:
                    break
                if key != spare and not self._pins[key]:
                    leaving.append(entry)
                    excess -= entry.bytes
            if excess > 0:
                return None
            for entry in leaving:
                self._take(entry.key)
            return leaving

    def pin(self, key: str) -> bool:
        """Keeps an entry from leaving; False where there is none."""
        with self.lock:
            if key not in self._entries:
                return False
            self._pins[key] += 1
            return True

    def unpin(self, key: str) -> None:
        """Takes one pin back.

        Raises:
            InternalError: There is none.
        """
        with self.lock:
            if self._pins[key] < 1:
                raise InternalError(f"segment {key[:16]} is not pinned")
            self._pins[key] -= 1
            if not self._pins[key]:
                del self._pins[key]

    def pinned(self, key: str) -> bool:
        """Whether an entry is pinned."""
        return self._pins[key] > 0

    def entries(self) -> tuple[Entry, ...]:
        """All entries, the longest unused first."""
        with self.lock:
            return tuple(self._entries.values())

    def sums(self) -> tuple[int, int, int]:
        """How many entries, how many bytes, how many pinned entries."""
        with self.lock:
            return len(self._entries), self._bytes, sum(key in self._entries for key in self._pins)

    def _take(self, key: str) -> Entry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.bytes
            self._touched.pop(key, None)
        return entry
