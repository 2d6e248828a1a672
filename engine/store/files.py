"""Steps on the disk, one method each, so that a test can stop after any of them or let one fail."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path

from hitproof.engine.store.answers import Fault

__all__ = ["Files", "fault_of"]

_FAULTS: dict[int, Fault] = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "too_large",
    errno.EROFS: "read_only",
    errno.EACCES: "not_permitted",
    errno.EPERM: "not_permitted",
}
_SQLITE_FAULTS: dict[int, Fault] = {
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_PERM: "not_permitted",
}


class Files:
    """The operating system's files.

    All methods raise `OSError`. The system's calls are repeated after signals by Python itself (PEP 475).
    """

    def make_folder(self, path: Path) -> None:
        """Makes a folder that only its owner can enter."""
        os.mkdir(path, 0o700)

    def create(self, path: Path) -> int:
        """Opens a file for writing that did not exist; answers its descriptor."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def write(self, fd: int, content: memoryview) -> int:
        """Writes some of the bytes, perhaps not all; answers how many."""
        return os.write(fd, content)

    def sync(self, fd: int) -> None:
        """Waits until the file's bytes are on the disk."""
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """Closes a descriptor."""
        os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Gives a file another name, in place of what had that name."""
        os.rename(source, target)

    def remove(self, path: Path) -> None:
        """Removes a file."""
        os.unlink(path)

    def sync_folder(self, path: Path) -> None:
        """Waits until the folder's names are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def commit(self, database: sqlite3.Connection) -> None:
        """Ends the catalogue's transaction; it is on the disk afterwards. Raises `sqlite3.Error`."""
        database.execute("COMMIT")

    def open(self, path: Path) -> tuple[int, int]:
        """Opens a regular file for reading; answers its descriptor and its size."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", str(path))
        except BaseException:
            os.close(fd)
            raise
        return fd, found.st_size

    def read(self, fd: int, into: memoryview) -> int:
        """Reads some bytes, perhaps fewer than asked for; answers how many, 0 at the end."""
        return os.readv(fd, [into])

    def size(self, path: Path) -> int | None:
        """A regular file's size in bytes, None where something else has the name."""
        found = os.lstat(path)
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, sorted."""
        return sorted(os.listdir(folder))

    def write_all(self, fd: int, content: memoryview) -> None:
        """Writes every byte, however short the single writes are."""
        while content:
            written = self.write(fd, content)
            if written <= 0:
                raise OSError(errno.EIO, "nothing was written")
            content = content[written:]

    def read_all(self, fd: int, into: memoryview) -> int:
        """Reads until the buffer is full or the file ends; answers how many bytes there were."""
        count = 0
        while count < len(into):
            got = self.read(fd, into[count:])
            if got == 0:
                break
            count += got
        return count


def fault_of(error: OSError | sqlite3.Error) -> Fault:
    """The store's word for a failure of the disk."""
    if isinstance(error, OSError):
        return _FAULTS.get(error.errno or 0, "io_error")
    return _SQLITE_FAULTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "io_error")
