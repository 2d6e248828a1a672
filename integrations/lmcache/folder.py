"""Page files in a folder: written aside and renamed, evicted when unused for longest, set aside when bad."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from uuid import uuid4

from hitproof.spec.errors import UsageError

__all__ = ["PageFolder"]

SUFFIX = ".page"
KEPT_REFUSED = 16
"""Refused pages that are kept for a post-mortem, the youngest."""


class PageFolder:
    """Files by name; threads may share it, and one process has it.

    A cut while writing leaves a file without a name, or one whose record or bytes do not agree; readers judge both.

    Args:
        path: The folder; it is made.
        capacity: Bytes of all pages; None for no limit.

    Raises:
        UsageError: The folder cannot be made or read.
    """

    def __init__(self, path: Path, capacity: int | None) -> None:
        self._path, self._capacity = path, capacity
        self._lock = Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._pins: dict[str, int] = {}
        try:
            (path / "refused").mkdir(parents=True, exist_ok=True)
            found = sorted(
                (entry for entry in os.scandir(path) if entry.is_file()), key=lambda one: one.stat().st_mtime
            )
            for entry in found:
                if entry.name.endswith(SUFFIX):
                    self._sizes[entry.name.removesuffix(SUFFIX)] = entry.stat().st_size
                else:
                    os.unlink(entry.path)
        except OSError as error:
            raise UsageError("the folder of the pages cannot be used", got=error) from error

    def __contains__(self, name: str) -> bool:
        return name in self._sizes

    def __len__(self) -> int:
        return len(self._sizes)

    def put(self, name: str, *parts: bytes | memoryview) -> bool:
        """Keep these parts, one behind the other, under a name; evicts what was not used for longest.

        Returns:
            False where there is no room for it, or the disk refused.
        """
        size = sum(memoryview(part).nbytes for part in parts)
        aside = self._path / f"{uuid4().hex}.tmp"
        try:
            if self._capacity is not None and not self._room(name, size):
                return False
            with open(aside, "wb") as file:
                for part in parts:
                    file.write(part)
            with self._lock:
                os.replace(aside, self._file(name))
                self._sizes[name] = size
                self._sizes.move_to_end(name)
        except OSError:
            aside.unlink(missing_ok=True)
            return False
        return True

    def read(self, name: str, least: int = 0) -> bytes | None:
        """The whole file, or its first `least` bytes where that is not 0; None where there is none."""
        try:
            with open(self._file(name), "rb") as file:
                content = file.read(least or -1)
        except OSError:
            with self._lock:
                self._sizes.pop(name, None)
            return None
        with self._lock:
            if name in self._sizes:
                self._sizes.move_to_end(name)
        return content

    def pin(self, name: str) -> bool:
        """Keep it from being evicted once more; False where there is none."""
        with self._lock:
            if name not in self._sizes:
                return False
            self._pins[name] = self._pins.get(name, 0) + 1
            return True

    def unpin(self, name: str) -> bool:
        """Take back one pin; False where there was none."""
        with self._lock:
            left = self._pins.get(name, 0) - 1
            if left > 0:
                self._pins[name] = left
            else:
                self._pins.pop(name, None)
            return left >= 0

    def remove(self, name: str) -> bool:
        """Give it up; False where there is none."""
        with self._lock:
            return self._drop(name)

    def refuse(self, name: str) -> None:
        """Set a bad page aside, so that it is found no more."""
        with self._lock:
            if self._sizes.pop(name, None) is None:
                return
            self._pins.pop(name, None)
            aside = self._path / "refused"
            try:
                os.replace(self._file(name), aside / f"{name}{SUFFIX}")
                kept = sorted(os.scandir(aside), key=lambda one: one.stat().st_mtime)
                for entry in kept[:-KEPT_REFUSED]:
                    os.unlink(entry.path)
            except OSError:
                self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._path / f"{name}{SUFFIX}"

    def _drop(self, name: str) -> bool:
        if self._sizes.pop(name, None) is None:
            return False
        self._pins.pop(name, None)
        self._file(name).unlink(missing_ok=True)
        return True

    def _room(self, name: str, size: int) -> bool:
        """Evict until the page fits; False where it never will, or all that is left is pinned."""
        capacity = self._capacity or 0
        with self._lock:
            if size > capacity:
                return False
            used = sum(self._sizes.values()) - self._sizes.get(name, 0)
            for old in list(self._sizes):
                if used + size <= capacity:
                    break
                if old != name and old not in self._pins:
                    used -= self._sizes[old]
                    self._drop(old)
            return used + size <= capacity
