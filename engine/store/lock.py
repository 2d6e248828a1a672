"""One process at a time has a store open."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from hitproof.spec.errors import StoreError, StoreLockedError

__all__ = ["lock"]


def lock(path: Path) -> int:
    """Takes the lock; it lasts until the descriptor is closed or the process ends, however it ends.

    Raises:
        StoreLockedError: Somebody has it, this process perhaps.
        StoreError: The file cannot be made.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError("the store cannot be locked", got=error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        os.close(fd)
        if isinstance(error, BlockingIOError):
            raise StoreLockedError(
                "the store is open elsewhere",
                got=f"process {holder or 'unknown'}",
                expected="one process a store",
                hint="other processes ask the one that has it open",
            ) from error
        raise StoreError("the store cannot be locked", got=error) from error
    return fd
