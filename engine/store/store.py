"""The store: segments put, got and deleted, each step whole and for good before it is reported."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from types import TracebackType

from hitproof.engine.store.answers import (
    Deleted,
    Entry,
    Found,
    NotStored,
    Opened,
    Receipt,
    Refused,
    Sizes,
)
from hitproof.engine.store.catalogue import Catalogue, open_catalogue
from hitproof.engine.store.files import Files, fault_of
from hitproof.engine.store.format import head_of
from hitproof.engine.store.index import Index
from hitproof.engine.store.keeper import Keeper
from hitproof.engine.store.label import check_name
from hitproof.engine.store.layout import Layout, digest_of
from hitproof.engine.store.lock import lock
from hitproof.engine.store.meaning import Meaning
from hitproof.engine.store.reading import Reader, bytes_of
from hitproof.engine.store.restore import Restored, restore
from hitproof.engine.store.serving import Serving
from hitproof.spec.errors import StoreError, UsageError
from hitproof.spec.facts import Value

__all__ = ["Store"]

_SECRET_LENGTHS = range(16, 65)


class Store:
    """Segments on disk, in one folder that one process has open; its methods may be called from several threads.

    Args:
        root: The folder; it is made where it is absent, its parent is not.
        meaning: The vocabulary of today.
        capacity: Bytes of segment files; None is no limit.
        secret: Key of the authentication code, 16 to 64 bytes from the deployment, for a folder that others can
            write. Files without a code of this key are then refused.
        files: The disk; tests put another in its place.

    Raises:
        StoreLockedError: Another process, or this one, has the store open.
        StoreError: The disk does not let it be opened, or a newer version made it.
        UsageError: The capacity or the secret cannot be used.
    """

    def __init__(
        self,
        root: str | Path,
        meaning: Meaning,
        *,
        capacity: int | None = None,
        secret: bytes | None = None,
        files: Files | None = None,
    ) -> None:
        if capacity is not None and (type(capacity) is not int or capacity < 0):
            raise UsageError("the capacity cannot be used", got=capacity, expected="bytes, at least 0, or None")
        if secret is not None and (type(secret) is not bytes or len(secret) not in _SECRET_LENGTHS):
            raise UsageError("the secret cannot be used", expected="16 to 64 bytes")
        self._files = files or Files()
        self._layout = Layout(Path(os.path.abspath(root)))
        self._meaning, self._capacity, self._secret = meaning, capacity, secret
        self._writing = RLock()
        self._process = os.getpid()
        try:
            self._layout.prepare(self._files)
            self._lock: int | None = lock(self._layout.lock)
        except OSError as error:
            raise StoreError("the store's folder cannot be made", got=error) from error
        try:
            catalogue, found = self._open()
            self._index = Index(found.entries)
            self._keeper = Keeper(self._files, self._layout, catalogue, self._index, capacity)
            reader = Reader(self._files, self._layout, meaning, secret)
            self._serving = Serving(reader, self._index, self._keeper, self._writing)
            self._sequence = max((entry.sequence for entry, _ in found.entries), default=0)
            evicted: list[str] = []
            self._keeper.make_room("", 0, evicted)
            self._keeper.forget()
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, OSError | sqlite3.Error):
                raise StoreError("the store cannot be opened", got=error) from error
            raise
        self._opened = Opened(
            tuple(found.adopted),
            tuple(found.missing),
            tuple(found.upgraded),
            tuple(found.swept),
            tuple(found.quarantined),
            tuple(evicted),
            catalogue.fresh and bool(found.entries),
        )

    @property
    def opened(self) -> Opened:
        """What the start found and mended."""
        return self._opened

    def put(
        self, key: str, group: str, facts: Mapping[str, Value], payload: bytes | bytearray | memoryview
    ) -> Receipt | NotStored:
        """Stores a segment, in place of the one with its key; on the disk for good once a receipt is returned.

        Args:
            key: What it is found by, as `segment_key` gives it.
            group: A group of the model.
            facts: Its facts; those that are not given are unknown.
            payload: Its bytes, contiguous.

        Raises:
            UsageError: Key, group, facts or payload cannot be stored, whatever the disk does.
            InputTooLargeError: The facts are longer than the format allows.
        """
        check_name("key", key)
        content = bytes_of(payload)
        with self._writing:
            self._check_open()
            sequence = self._sequence + 1
            head = head_of(self._meaning.label(key, group, facts, sequence), content, self._secret)
            digest = digest_of(key)
            entry = Entry(key, group, self._layout.name(digest, sequence), len(head) + len(content), sequence)
            if self._capacity is not None and entry.bytes > self._capacity:
                return NotStored(key, "too_large", f"{entry.bytes} bytes, the capacity is {self._capacity}")
            if self._index.pinned(key):
                return NotStored(key, "pinned", "the segment with this key is pinned")
            # A number is never used twice, so that nothing is written over a file whose removal failed.
            self._sequence = sequence
            evicted: list[str] = []
            try:
                if not self._keeper.make_room(key, entry.bytes, evicted):
                    return NotStored(key, "pinned", "pinned segments leave too little room")
                self._layout.write(self._files, entry.name, [memoryview(head), content])
                self._keeper.record(entry)
            except (OSError, sqlite3.Error) as error:
                return NotStored(key, fault_of(error), str(error), tuple(evicted))
            return Receipt(key, entry.name, entry.bytes, tuple(evicted))

    def get(self, key: str, into: bytearray | memoryview | None = None) -> Found | Refused:
        """Reads a segment and verifies every byte of it; what is torn is set aside.

        Args:
            key: Its key.
            into: A writable buffer for the payload; one that is too short is not used. After a refusal it may hold
                anything.

        Raises:
            UsageError: The buffer is not writable, or not contiguous.
        """
        buffer = None if into is None else bytes_of(into)
        if buffer is not None and buffer.readonly:
            raise UsageError("the buffer cannot be written")
        self._check_open()
        answer = self._serving.read(key, buffer)
        if isinstance(answer, Found):
            self._index.touch(key)
        return answer

    def facts(self, key: str) -> Mapping[str, Value] | None:
        """The facts of a segment, its payload unread; None where the key is absent or its label cannot be served.

        Only `get` says whether the bytes can be served.
        """
        self._check_open()
        return self._serving.facts(key)

    def delete(self, key: str) -> Deleted | Refused:
        """Removes a segment for good, unless it is pinned."""
        with self._writing:
            self._check_open()
            entry = self._index.take(key)
            if entry is None and self._index.pinned(key):
                return Refused(key, "pinned", "the segment is pinned")
            if entry is None:
                return Refused(key, "missing", "no segment has this key")
            try:
                self._keeper.delete(entry)
            except OSError as error:
                return Refused(key, "unreadable", f"the disk does not let it go: {error}")
            return Deleted(key)

    def pin(self, key: str) -> bool:
        """Keeps a segment from being evicted, deleted or replaced while this process lives; False where it is absent.

        Pins are counted. A pinned segment that turns out to be torn is set aside all the same.
        """
        return self._index.pin(key)

    def unpin(self, key: str) -> None:
        """Takes one pin back.

        Raises:
            InternalError: The segment is not pinned.
        """
        self._index.unpin(key)

    def __contains__(self, key: str) -> bool:
        """Whether the catalogue has the key; only `get` says whether it can be served."""
        return self._index.get(key) is not None

    def entries(self, group: str | None = None) -> tuple[Entry, ...]:
        """What the catalogue has, of one group or of all, the longest unused first; no order of use is changed."""
        return tuple(entry for entry in self._index.entries() if group is None or entry.group == group)

    def sizes(self) -> Sizes:
        """How much is held.

        Raises:
            OSError: The quarantine cannot be read.
        """
        segments, held, pinned = self._index.sums()
        return Sizes(segments, held, self._capacity, pinned, len(self._files.names(self._layout.quarantine)))

    def scrub(self) -> tuple[Refused, ...]:
        """Reads every segment, sets aside what is torn, and answers all that `get` would refuse; changes no order."""
        self._check_open()
        answers = (self._serving.read(entry.key, None) for entry in self._index.entries())
        return tuple(answer for answer in answers if isinstance(answer, Refused))

    def check_integrity(self) -> None:
        """Proves that memory, catalogue and the names and sizes of files agree; `scrub` looks at the bytes.

        Raises:
            InternalError: They do not, or somebody else has changed the folder.
            OSError: The disk's reason.
        """
        with self._writing:
            self._check_open()
            self._keeper.check_integrity()

    def close(self) -> None:
        """Notes the order of use and gives the lock back; a second call does nothing."""
        with self._writing:
            if self._lock is None or os.getpid() != self._process:
                return
            try:
                self._keeper.forget()
            finally:
                self._keeper.catalogue.close()
                os.close(self._lock)
                self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._lock is None:
            raise UsageError("the store is closed")
        if os.getpid() != self._process:
            raise UsageError("the store was opened by another process", expected="one process a store")

    def _open(self) -> tuple[Catalogue, Restored]:
        files, layout = self._files, self._layout
        catalogue = open_catalogue(files, layout.catalogue, lambda part: layout.set_aside(files, part, "damaged"))
        try:
            return catalogue, restore(files, layout, catalogue, upgrading=self._secret is None)
        except BaseException:
            catalogue.close()
            raise
