"""What the disk has promised: every segment that was reported stored, and what is found of it later."""

from __future__ import annotations

import errno
import hashlib
from random import Random
from threading import RLock
from typing import Any

from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.ledger import Ledger
from hitproof.engine.store import Deleted, Found, NotStored, Receipt, Refused, Store
from hitproof.engine.store.files import Files
from hitproof.engine.store.layout import digest_of
from hitproof.spec.errors import InternalError

__all__ = ["FaultyFiles", "LostSegment", "NotedStore", "Promised"]

_LOST = ("missing", "torn", "wrong_fingerprint")


class LostSegment(InternalError):
    """A segment that was reported stored is gone, or is another one, and no fault has hit it."""


class Promised:
    """Segments that were reported stored; it outlives the processes of a run.

    Args:
        strict: What is lost or served wrongly is raised; else it is counted.
    """

    def __init__(self, *, strict: bool) -> None:
        self.lock = RLock()
        self.strict = strict
        self.reported = 0
        self.lost = 0
        self._stored: dict[str, bytes] = {}
        self._put: dict[str, set[bytes]] = {}
        self._refused: dict[str, set[bytes]] = {}
        self._last = b""
        self._excused: set[str] = set()
        self._told_since: set[str] = set()
        self._unsure = False

    def __len__(self) -> int:
        return len(self._stored)

    def begin(self, key: str, payload: Any) -> None:
        """A put begins; should it be cut short or refused, either what was there or this may be found."""
        self._last = _digest(payload)
        self._put.setdefault(key, set()).add(self._last)
        self._refused.setdefault(key, set()).add(self._last)
        self._told_since.clear()

    def stored(self, key: str, receipt: Receipt) -> None:
        """A put was reported."""
        self.reported += 1
        self._stored[key] = self._last
        self._refused.pop(key, None)
        # What has hit an earlier file excuses nothing of this one; what struck during this put does.
        self._excused -= {digest_of(key)} - self._told_since
        for gone in receipt.evicted:
            self.forget(gone)

    def forget(self, key: str) -> None:
        """A segment was reported as evicted or deleted, or it was told to be unusable."""
        self._stored.pop(key, None)

    def not_stored(self, answer: NotStored) -> None:
        """A put was refused: what was there before still is; the refused bytes may turn up after a start."""
        for gone in answer.evicted:
            self.forget(gone)

    def cut(self, store: Store) -> None:
        """A call was cut short by the end of the process: what it was about to remove may be gone."""
        for key in [key for key in self._stored if key not in store]:
            self.forget(key)

    def excuse(self, digest: str) -> None:
        """A fault has hit the file of a key with this digest, so the segment may be gone; never may it be wrong."""
        self._excused.add(digest)
        self._told_since.add(digest)

    def is_excused(self, key: str) -> bool:
        """Whether a fault has hit a key's file."""
        return digest_of(key) in self._excused

    def found(self, key: str, answer: Found | Refused) -> None:
        """Compare what the disk answers with what it has promised.

        Raises:
            LostSegment: It answers otherwise, no fault explains it, and the book is strict.
        """
        if isinstance(answer, Found):
            # Where a fault has hit the last file of a key, an earlier one may come back whole.
            sure = key in self._stored and not self.is_excused(key)
            allowed = {self._stored[key], *self._refused.get(key, ())} if sure else self._put.get(key, set())
            if _digest(answer.payload) not in allowed:
                self._wrong(f"the disk serves other bytes than were put under {key}")
        elif answer.reason in _LOST and key in self._stored:
            excused = self.is_excused(key)
            self.forget(key)
            if not excused:
                self._wrong(f"{key} was reported stored and is {answer.reason}: {answer.detail}")

    def start_was_cut(self) -> None:
        """A start was cut short by the end of the process; it may have evicted what did not fit any more."""
        self._unsure = True

    def check(self, store: Store, *, bytes_too: bool) -> None:
        """Ask a store for every segment that was reported stored.

        Args:
            store: The store.
            bytes_too: Whether the segments are read; else it is asked whether it knows them.

        Raises:
            LostSegment: As `found`.
        """
        with self.lock:
            for key in sorted(self._stored):
                if self._unsure and key not in store:
                    self.forget(key)
                elif bytes_too:
                    self.found(key, Store.get(store, key))
                elif key not in store:
                    self.found(key, Refused(key, "missing", "no segment has this key"))
            self._unsure = False

    def _wrong(self, text: str) -> None:
        self.lost += 1
        if self.strict:
            raise LostSegment(text)


class NotedStore(Store):
    """A store whose answers are noted in a book of promises; one call at a time.

    Args:
        root, meaning: As `Store`.
        promised: The book.
        ledger: Is told which faults of the disk were noticed.
        options: As `Store`.
    """

    def __init__(self, root: Any, meaning: Any, promised: Promised, ledger: Ledger, **options: Any) -> None:
        self._promised, self._ledger = promised, ledger
        try:
            super().__init__(root, meaning, **options)
        except Killed:
            promised.start_was_cut()
            raise
        for key in self.opened.evicted:
            promised.forget(key)

    def put(self, key: str, group: str, facts: Any, payload: Any, *args: Any, **options: Any) -> Receipt | NotStored:
        """As `Store`, and noted."""
        with self._promised.lock:
            self._promised.begin(key, payload)
            try:
                answer = super().put(key, group, facts, payload, *args, **options)
            except Killed:
                self._promised.cut(self)
                raise
            if isinstance(answer, Receipt):
                self._promised.stored(key, answer)
            else:
                self._promised.not_stored(answer)
                self._noticed("disk_full", f"the store: {answer.reason}")
        return answer

    def get(self, key: str, into: Any = None) -> Found | Refused:
        """As `Store`, and compared with what was promised."""
        with self._promised.lock:
            excused = self._promised.is_excused(key)
            answer = super().get(key, into)
            if isinstance(answer, Refused) and excused:
                self._noticed("disk_rot", f"the store: {answer.reason}")
            self._promised.found(key, answer)
        return answer

    def delete(self, key: str) -> Deleted | Refused:
        """As `Store`, and noted."""
        with self._promised.lock:
            try:
                answer = super().delete(key)
            except Killed:
                self._promised.cut(self)
                raise
            if isinstance(answer, Deleted):
                self._promised.forget(key)
        return answer

    def _noticed(self, kind: str, by: str) -> None:
        self._ledger.catch(self._ledger.unnoticed(kind), by)


class FaultyFiles(Files):
    """The disk of a soak with threads: it is full now and then, and nothing reaches it once the process is dead.

    Args:
        ledger: Is told of each fault.
        draw: Decides.
        full: Probability that a write finds the disk full.
    """

    def __init__(self, ledger: Ledger, draw: Random, full: float) -> None:
        self._ledger, self._draw, self._full = ledger, draw, full
        self.dead = False

    def write(self, fd: int, content: memoryview) -> int:
        """As `Files`, or no room is left."""
        self._alive()
        if self._draw.random() < self._full:
            self._ledger.inject("disk_full")
            raise OSError(errno.ENOSPC, "no space left, on purpose")
        return super().write(fd, content)

    def create(self, path: Any) -> int:
        """As `Files`."""
        self._alive()
        return super().create(path)

    def sync(self, fd: int) -> None:
        """As `Files`."""
        self._alive()
        super().sync(fd)

    def rename(self, source: Any, target: Any) -> None:
        """As `Files`."""
        self._alive()
        super().rename(source, target)

    def remove(self, path: Any) -> None:
        """As `Files`."""
        self._alive()
        super().remove(path)

    def sync_folder(self, path: Any) -> None:
        """As `Files`."""
        self._alive()
        super().sync_folder(path)

    def commit(self, database: Any) -> None:
        """As `Files`."""
        self._alive()
        super().commit(database)

    def _alive(self) -> None:
        if self.dead:
            raise Killed


def _digest(payload: Any) -> bytes:
    return hashlib.blake2b(payload, digest_size=16).digest()
