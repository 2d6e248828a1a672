"""Files, catalogue and memory changed together, in the order in which a kill between two steps does no harm."""

from __future__ import annotations

import sqlite3

from hitproof.engine.store.answers import Entry
from hitproof.engine.store.catalogue import Catalogue
from hitproof.engine.store.files import Files
from hitproof.engine.store.index import Index
from hitproof.engine.store.layout import Layout, digest_of
from hitproof.spec.errors import InternalError

__all__ = ["Keeper"]


class Keeper:
    """Changes what a store holds; one thread at a time calls it.

    A file is on the disk before its row is, and gone before its row is. So a row never vouches for what was not yet
    written, and what was reported deleted does not come back when the catalogue is made anew of the files.
    """

    def __init__(self, files: Files, layout: Layout, catalogue: Catalogue, index: Index, capacity: int | None) -> None:
        self.catalogue = catalogue
        self._files, self._layout, self._index, self._capacity = files, layout, index, capacity
        self._gone: set[str] = set()

    def make_room(self, key: str, need: int, evicted: list[str]) -> bool:
        """Removes the longest unused segments that are not pinned, until so many bytes fit under a key.

        Args:
            key: The key that they are for; what it has already counts as room.
            need: Bytes.
            evicted: Gets the keys of the removed ones, also where an error ends it.

        Returns:
            False, with nothing removed, where pins leave too little room.

        Raises:
            OSError: The disk's reason.
        """
        if self._capacity is None:
            return True
        leaving = self._index.take_oldest(need, self._capacity, key)
        if leaving is None:
            return False
        for i, entry in enumerate(leaving):
            try:
                self._layout.remove(self._files, digest_of(entry.key))
            except OSError:
                for left in leaving[i:]:
                    self._index.place(left)
                raise
            evicted.append(entry.key)
            self._gone.add(entry.key)
        return True

    def record(self, entry: Entry) -> None:
        """Makes a file that is on the disk the one of its key, and removes the key's earlier one.

        Raises:
            sqlite3.Error: The file is removed again, and the earlier one is still the key's.
        """
        try:
            self.catalogue.apply([(entry, self._index.touch(entry.key))], self._gone, self._index.touched())
        except sqlite3.Error:
            self._layout.discard(self._files, entry.name)
            raise
        self._gone.clear()
        self._index.place(entry)
        try:
            self._layout.remove(self._files, digest_of(entry.key), keep=entry.name)
        except OSError:
            # The larger sequence counts, and the next start removes the other.
            return

    def delete(self, entry: Entry) -> None:
        """Removes the file of an entry that was taken from the index, for good.

        Raises:
            OSError: The disk's reason; the entry is in the index again.
        """
        try:
            self._layout.remove(self._files, digest_of(entry.key))
        except OSError:
            self._index.place(entry)
            raise
        self.forget(entry.key)

    def set_aside(self, entry: Entry, reason: str) -> None:
        """Moves the file of a broken segment to the quarantine, and forgets it; one that is missing is forgotten.

        Raises:
            OSError: The disk's reason; nothing was forgotten.
        """
        if reason != "missing":
            self._layout.set_aside(self._files, self._layout.segments / entry.name, reason)
        self._index.take(entry.key, even_pinned=True)
        self.forget(entry.key)

    def forget(self, *keys: str) -> None:
        """Drops the rows of keys whose files are gone; where that fails, a later call or the next start does it."""
        self._gone.update(keys)
        try:
            self.catalogue.apply((), self._gone, self._index.touched())
        except sqlite3.Error:
            return
        self._gone.clear()

    def check_integrity(self) -> None:
        """Proves that memory, catalogue and files agree, but for what a failing disk has left to the next start.

        Raises:
            InternalError: They do not.
            OSError: The disk's reason.
        """
        held = {entry.key: entry for entry in self._index.entries()}
        rows = {entry.key: entry for entry, _ in self.catalogue.rows() if entry.key not in self._gone}
        if rows != held:
            raise InternalError("the catalogue and the memory of a store differ")
        if self._index.sums()[:2] != (len(held), sum(entry.bytes for entry in held.values())):
            raise InternalError("a store has counted its bytes wrongly")
        for entry in held.values():
            if self._files.size(self._layout.segments / entry.name) != entry.bytes:
                raise InternalError(f"the file of segment {entry.key[:16]} has another size")
