"""The catalogue, an SQLite file: which files a start need not read, and in which order segments were used."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hitproof.engine.store.answers import Entry
from hitproof.engine.store.files import Files
from hitproof.engine.store.layout import LARGEST
from hitproof.spec.errors import StoreError

__all__ = ["Catalogue", "Damaged", "VERSION", "open_catalogue"]

VERSION = 2
"""Version of the catalogue's tables, in SQLite's `user_version`."""

_CREATE = (
    "CREATE TABLE segments (key TEXT PRIMARY KEY, grp TEXT NOT NULL, file TEXT NOT NULL, bytes INTEGER NOT NULL, "
    "sequence INTEGER NOT NULL DEFAULT 0, used INTEGER NOT NULL DEFAULT 0)"
)
_STEPS: Mapping[int, tuple[str, ...]] = {
    # Version 1 knew neither sequences nor the order of use: its files have sequence 0, and were used equally long ago.
    1: (
        "ALTER TABLE segments ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE segments ADD COLUMN used INTEGER NOT NULL DEFAULT 0",
    ),
}
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH)


class Damaged(Exception):
    """Inside the store: the catalogue cannot be used and is made anew of the files."""


class Catalogue:
    """Rows of segments, each change one transaction that is on the disk when `apply` returns.

    Files are the truth: whatever the catalogue has lost or does not know is found out from them.

    Args:
        files: The disk.
        database: An open connection with the tables of this version.
        fresh: It was made just now.
    """

    def __init__(self, files: Files, database: sqlite3.Connection, *, fresh: bool) -> None:
        self._files, self._database, self.fresh = files, database, fresh

    def rows(self) -> list[tuple[Entry, int]]:
        """Every row with its place in the order of use.

        Raises:
            Damaged: The table cannot be read, or a row has a value of another type.
        """
        try:
            found = self._database.execute("SELECT key, grp, file, bytes, sequence, used FROM segments").fetchall()
        except sqlite3.Error as error:
            raise Damaged(str(error)) from error
        kinds = (str, str, str, int, int, int)
        if any(type(value) is not kind for row in found for value, kind in zip(row, kinds, strict=True)):
            raise Damaged("a row has a value of another type")
        if not all(0 <= number <= LARGEST for row in found for number in row[3:]):
            raise Damaged("a row has a number out of range")
        return [(Entry(*row[:5]), row[5]) for row in found]

    def apply(self, put: Iterable[tuple[Entry, int]], drop: Iterable[str], used: Mapping[str, int]) -> None:
        """Drops keys, puts entries with their place in the order of use, and notes other keys' places.

        Raises:
            sqlite3.Error: Nothing has changed.
        """
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany("DELETE FROM segments WHERE key = ?", [(key,) for key in drop])
            database.executemany(
                "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?, ?)",
                [(one.key, one.group, one.name, one.bytes, one.sequence, place) for one, place in put],
            )
            database.executemany(
                "UPDATE segments SET used = ? WHERE key = ?", [(place, key) for key, place in used.items()]
            )
            self._files.commit(database)
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Closes the connection; SQLite moves what its log holds to the file."""
        self._database.close()


def open_catalogue(files: Files, path: Path, set_aside: Callable[[Path], object]) -> Catalogue:
    """Opens the catalogue, brings older tables to this version, and begins anew where it is absent or damaged.

    Args:
        files: The disk.
        path: The SQLite file.
        set_aside: Called with each file of a damaged catalogue; moves it away.

    Raises:
        StoreError: A newer version made it, or the disk does not let it be opened.
        OSError: A damaged one cannot be moved away.
    """
    try:
        return _open(files, path)
    except Damaged:
        # The log first: beside a new file, it would be taken for that one's.
        for part in (path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"), path):
            if part.exists():
                set_aside(part)
    try:
        return _open(files, path)
    except Damaged as error:
        raise StoreError("a new catalogue cannot be made", got=error) from error


def _open(files: Files, path: Path) -> Catalogue:
    database: sqlite3.Connection | None = None
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        fresh = _prepare(files, database)
        catalogue = Catalogue(files, database, fresh=fresh)
        catalogue.rows()
        return catalogue
    except BaseException as error:
        if database is not None:
            database.close()
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _DAMAGED:
                raise Damaged(str(error)) from error
            raise StoreError("the catalogue cannot be opened", got=error) from error
        raise


def _prepare(files: Files, database: sqlite3.Connection) -> bool:
    """Settings and tables; whether the tables were made just now."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise StoreError(
            "the store was written by a newer version", got=f"catalogue {version}", expected=f"at most {VERSION}"
        )
    if version == VERSION:
        return False
    database.execute("BEGIN IMMEDIATE")
    tables = database.execute("SELECT name FROM sqlite_schema").fetchall()
    if version == 0 and tables:
        raise Damaged("tables without a version")
    for statement in (_CREATE,) if version == 0 else tuple(s for v in range(version, VERSION) for s in _STEPS[v]):
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {VERSION}")
    files.commit(database)
    return version == 0
