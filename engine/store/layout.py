"""Where things lie in a store's folder, and how a segment's file comes to lie there whole."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hitproof.engine.store.files import Files

__all__ = ["LARGEST", "Layout", "digest_of"]

LARGEST = 2**62
"""Of numbers that grow, in names and in the catalogue; one step further still fits SQLite's integers."""

_SEGMENT = re.compile(r"([0-9a-f]{64})(?:-([0-9a-f]{16}))?\.seg", re.ASCII)
_TEMPORARY = re.compile(r"[0-9a-f]{64}-[0-9a-f]{16}\.tmp", re.ASCII)
_PART = re.compile(r"[0-9a-f]{2}", re.ASCII)


def digest_of(key: str) -> str:
    """What a key's files are named by, in hexadecimal digits."""
    return hashlib.blake2b(key.encode("utf-8"), digest_size=32).hexdigest()


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a store below its root.

    Args:
        root: The store's folder.
        durable: Folders whose names this process has synchronised. A folder that is merely there may have been made by
            a process that was killed before it could do so.
    """

    root: Path
    durable: set[Path] = field(default_factory=set, compare=False, repr=False)

    @property
    def segments(self) -> Path:
        """The folder of all segments, with two levels of folders by digest."""
        return self.root / "segments"

    @property
    def quarantine(self) -> Path:
        """The folder of files that are set aside and never served."""
        return self.root / "quarantine"

    @property
    def catalogue(self) -> Path:
        """The SQLite file."""
        return self.root / "catalogue.sqlite"

    @property
    def lock(self) -> Path:
        """The file that the one process which has the store open holds locked."""
        return self.root / "lock"

    @staticmethod
    def name(digest: str, sequence: int) -> str:
        """A segment's file, below the folder of segments."""
        return f"{digest[:2]}/{digest[2:4]}/{digest}-{sequence:016x}.seg"

    @staticmethod
    def parsed(name: str) -> tuple[str, int] | None:
        """Digest and sequence of a segment's file; None where it is no such name or lies in another's folder."""
        first, _, rest = name.partition("/")
        second, _, last = rest.partition("/")
        found = _SEGMENT.fullmatch(last)
        if found is None or found[1][:4] != first + second:
            return None
        sequence = int(found[2] or "0", 16)
        return (found[1], sequence) if sequence <= LARGEST else None

    @staticmethod
    def is_temporary(name: str) -> bool:
        """Whether a name below the folder of segments is one that an unfinished write leaves."""
        return name.count("/") == 2 and _TEMPORARY.fullmatch(name.rpartition("/")[2]) is not None

    def prepare(self, files: Files) -> None:
        """Makes the folders that are not there, for good."""
        for folder in (self.root, self.segments, self.quarantine):
            self._make(files, folder)

    def settle(self, files: Files, name: str) -> None:
        """Makes sure that a segment's file which is there stays there: its bytes and all names that lead to it.

        Raises:
            OSError: The disk's reason.
        """
        path = self.segments / name
        fd, _ = files.open(path)
        try:
            files.sync(fd)
        finally:
            files.close(fd)
        self._make(files, path.parent.parent)
        self._make(files, path.parent)
        files.sync_folder(path.parent)

    def walk(self, files: Files) -> Iterator[str]:
        """Every name below the folder of segments, folders of the two levels aside."""
        for first in files.names(self.segments):
            if not self._is_level(first):
                yield first
                continue
            for second in files.names(self.segments / first):
                if not self._is_level(f"{first}/{second}"):
                    yield f"{first}/{second}"
                    continue
                for name in files.names(self.segments / first / second):
                    yield f"{first}/{second}/{name}"

    def _is_level(self, name: str) -> bool:
        path = self.segments / name
        return _PART.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()

    def write(self, files: Files, name: str, parts: Sequence[memoryview]) -> None:
        """Puts a segment's file on the disk: whole under its name, or not there.

        Raises:
            OSError: The disk's reason. What was written is removed again, as far as the disk allows.
        """
        target = self.segments / name
        temporary = target.with_suffix(".tmp")
        self._make(files, target.parent.parent)
        self._make(files, target.parent)
        at = temporary
        fd = files.create(temporary)
        try:
            try:
                for part in parts:
                    files.write_all(fd, part)
                files.sync(fd)
            finally:
                files.close(fd)
            files.rename(temporary, target)
            at = target
            files.sync_folder(target.parent)
        except OSError:
            _try_remove(files, at)
            raise

    def discard(self, files: Files, name: str) -> None:
        """Removes a file that is not to count, as far as the disk allows."""
        _try_remove(files, self.segments / name)

    def remove(self, files: Files, digest: str, keep: str | None = None) -> None:
        """Removes every file of a key, for good, but for the one that is named.

        Raises:
            OSError: The disk's reason; some may be gone.
        """
        folder = self.segments / digest[:2] / digest[2:4]
        try:
            found = [name for name in files.names(folder) if name.startswith(digest)]
        except FileNotFoundError:
            return
        kept = keep and keep.rpartition("/")[2]
        leaving = [name for name in found if name != kept]
        for name in leaving:
            files.remove(folder / name)
        # Where none is to be left, an earlier call may have removed them and failed to synchronise.
        if leaving or keep is None:
            files.sync_folder(folder)

    def set_aside(self, files: Files, path: Path, reason: str) -> str:
        """Moves a file or folder to the quarantine, for good; answers its name there.

        Raises:
            OSError: The disk's reason.
        """
        taken = set(files.names(self.quarantine))
        stem = f"{path.name}.{reason}"
        name = next(n for i in range(len(taken) + 1) if (n := f"{stem}.{i}") not in taken)
        files.rename(path, self.quarantine / name)
        # The new name first: a file that has both names is found again, one that has none is lost.
        files.sync_folder(self.quarantine)
        files.sync_folder(path.parent)
        return name

    def _make(self, files: Files, folder: Path) -> None:
        if folder in self.durable:
            return
        if not folder.is_dir():
            # Before the lock is held, another process may make the same folder.
            with suppress(FileExistsError):
                files.make_folder(folder)
        files.sync_folder(folder.parent)
        self.durable.add(folder)


def _try_remove(files: Files, path: Path) -> None:
    try:
        files.remove(path)
        # Else it could come back after a loss of power, whole, and with the larger sequence.
        files.sync_folder(path.parent)
    except OSError:
        # The next start sweeps it, or takes it in where it is whole.
        return
