"""What is found at a start is brought in order: whole files are known, everything else is removed or set aside."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hitproof.engine.store.answers import Entry, Unusable
from hitproof.engine.store.catalogue import Catalogue
from hitproof.engine.store.files import Files
from hitproof.engine.store.format import head_of, read_head, read_payload
from hitproof.engine.store.label import Label
from hitproof.engine.store.layout import Layout, digest_of
from hitproof.engine.store.schema_1 import upgrade

__all__ = ["Restored", "restore"]


@dataclass(slots=True)
class Restored:
    """What a start found; `entries` with their places in the order of use, the rest as in `Opened`."""

    entries: list[tuple[Entry, int]] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    upgraded: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)
    quarantined: list[tuple[str, str]] = field(default_factory=list)


def restore(files: Files, layout: Layout, catalogue: Catalogue, *, upgrading: bool) -> Restored:
    """Brings files and catalogue to agree; changes both.

    A file that the catalogue knows by name and size was synchronised before its row was, so it is not read here. Every
    other one is read to its last byte before it is taken in.

    Args:
        files: The disk.
        layout: The store's paths.
        catalogue: Its catalogue.
        upgrading: Rewrite files of schema 1. They have no authentication code and would be given one, so a store with
            a key leaves them as they are, and refuses them.

    Raises:
        OSError, sqlite3.Error: The disk's reason; another start goes on where this one ended.
    """
    found = Restored()
    rows = {entry.name: (entry, used) for entry, used in catalogue.rows()}
    kept = _Start(files, layout, rows, upgrading, found).keep()
    found.entries = _placed(kept, rows)
    held = {entry.key: entry.name for entry, _ in found.entries}
    found.missing = sorted(entry.key for entry, _ in rows.values() if entry.key not in held)
    changed = [(entry, used) for entry, used in found.entries if rows.get(entry.name, (None, 0))[0] != entry]
    if changed or found.missing:
        catalogue.apply(changed, found.missing, {})
    return found


def _placed(kept: list[Entry], rows: dict[str, tuple[Entry, int]]) -> list[tuple[Entry, int]]:
    """Entries with their places; those that the catalogue does not know count as used last, in the order of writing."""
    last = max((used for _, used in rows.values()), default=0)
    unknown = sorted((entry for entry in kept if entry.name not in rows), key=lambda one: (one.sequence, one.key))
    places = {entry.name: last + i for i, entry in enumerate(unknown, 1)}
    return [(entry, places.get(entry.name) or rows[entry.name][1]) for entry in kept]


@dataclass(slots=True)
class _Start:
    files: Files
    layout: Layout
    rows: dict[str, tuple[Entry, int]]
    upgrading: bool
    found: Restored

    def keep(self) -> list[Entry]:
        """The entries of all files that count, one a key; what does not count is removed or set aside."""
        candidates: list[tuple[str, int, str]] = []
        for name in list(self.layout.walk(self.files)):
            parsed = self.layout.parsed(name)
            regular = self.files.size(self.layout.segments / name) is not None
            if regular and self.layout.is_temporary(name):
                self._sweep(name)
            elif parsed is None or not regular:
                self._set_aside(name, "unknown")
            else:
                candidates.append((parsed[0], -parsed[1], name))
        entries: dict[str, Entry] = {}
        for digest, _, name in sorted(candidates):
            if digest in entries:
                self._sweep(name)
                continue
            try:
                entries[digest] = self._entry(digest, name)
            except Unusable as error:
                self._set_aside(name, error.reason)
        return list(entries.values())

    def _entry(self, digest: str, name: str) -> Entry:
        known = self.rows.get(name)
        path = self.layout.segments / name
        first = "-" not in name
        if known and known[0].bytes == self.files.size(path) and not first and digest_of(known[0].key) == digest:
            return known[0]
        entry = self._entry_of_schema_1(name) if first else self._read(name)
        if digest_of(entry.key) != digest:
            raise Unusable("wrong_fingerprint", "the file has the name of another key")
        if entry.name == name:
            # Whoever wrote it may have been killed before its name was synchronised.
            self.layout.settle(self.files, name)
            if not known:
                self.found.adopted.append(entry.key)
        return entry

    def _read(self, name: str) -> Entry:
        with self._opened(name) as (fd, size):
            head = read_head(self.files, fd, size)
            read_payload(self.files, fd, head, memoryview(bytearray(head.payload)))
        parsed = self.layout.parsed(name)
        if parsed is None or parsed[1] != head.label.sequence:
            raise Unusable("wrong_fingerprint", "the file has the name of another sequence")
        return _entry_of(head.label, name, size)

    def _entry_of_schema_1(self, name: str) -> Entry:
        with self._opened(name) as (fd, size):
            label, payload = upgrade(self.files, fd, size, 1)
        digest = digest_of(label.key)
        if not self.upgrading or self.layout.parsed(name) != (digest, 0):
            return _entry_of(label, name, size, sequence=0)
        new = self.layout.name(digest, label.sequence)
        head = head_of(label, payload, None)
        self.layout.write(self.files, new, [memoryview(head), payload])
        self.layout.remove(self.files, digest, keep=new)
        self.found.upgraded.append(label.key)
        return _entry_of(label, new, len(head) + len(payload))

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[int, int]]:
        """A file to be read. A sector that cannot be read is its trouble; any other may pass, and ends the start."""
        try:
            fd, size = self.files.open(self.layout.segments / name)
            try:
                yield fd, size
            finally:
                self.files.close(fd)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise Unusable("unreadable", str(error)) from error

    def _sweep(self, name: str) -> None:
        path = self.layout.segments / name
        self.files.remove(path)
        self.files.sync_folder(path.parent)
        self.found.swept.append(name)

    def _set_aside(self, name: str, reason: str) -> None:
        kept = self.layout.set_aside(self.files, self.layout.segments / name, reason)
        self.found.quarantined.append((kept, reason))


def _entry_of(label: Label, name: str, size: int, *, sequence: int | None = None) -> Entry:
    return Entry(label.key, label.group, name, size, label.sequence if sequence is None else sequence)
