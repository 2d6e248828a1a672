"""A folder of pages, one file each, that several servers may share."""

from __future__ import annotations

import os
import re
from pathlib import Path
from uuid import uuid4

from hitproof.spec.errors import UsageError

__all__ = ["PageFiles"]

_KEY = re.compile(r"[0-9a-f]{16,128}")
_REFUSED = ".refused"


class PageFiles:
    """Files by key. A file is whole or not there: it is renamed into its place.

    Args:
        folder: Made where it is missing.

    Raises:
        UsageError: It cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError("the folder for pages cannot be made", got=str(error)) from error

    def place(self, key: str) -> Path:
        """Where a page lies.

        Raises:
            UsageError: The key is no digest.
        """
        if not _KEY.fullmatch(key):
            raise UsageError("a page's key is a hexadecimal digest", got=key[:80])
        return self._folder / key[:2] / key

    def has(self, key: str) -> bool:
        """Whether there is a page of this name; it may still be refused."""
        return self.place(key).exists()

    def read(self, key: str) -> bytes | None:
        """The page, or None where there is none or it cannot be read."""
        try:
            return self.place(key).read_bytes()
        except OSError:
            return None

    def write(self, key: str, blob: bytes) -> bool:
        """Put a page where there is none yet; whether it is there afterwards. A full disk loses a page, no request."""
        place = self.place(key)
        if place.exists():
            return True
        partial = place.with_name(f"{place.name}.{uuid4().hex}.part")
        try:
            place.parent.mkdir(exist_ok=True)
            partial.write_bytes(blob)
            os.replace(partial, place)
        except OSError:
            partial.unlink(missing_ok=True)
            return False
        return True

    def refuse(self, key: str) -> None:
        """Take a bad page out of everybody's way, and keep it for whoever wants to know."""
        place = self.place(key)
        try:
            os.replace(place, place.with_name(place.name + _REFUSED))
        except OSError:
            return
