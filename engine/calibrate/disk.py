"""Reads and writes of a file in one folder, with the page cache kept out of it where the system allows."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from hitproof.engine.calibrate.memory import MIB, told_size
from hitproof.engine.calibrate.sampling import Stopwatch, rate_of
from hitproof.spec.errors import MissingFileError, Position, UsageError
from hitproof.spec.rates import Rate

__all__ = ["PageCache", "check_folder", "measure_disk"]

CHUNK_BYTES = 8 * MIB
PROBES = 16
IN_MEMORY = ("hugetlbfs", "ramfs", "tmpfs")
_MOUNTS = Path("/proc/self/mountinfo")
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

PageCache = Literal["dropped", "bypassed", "asked to drop", "kept"]
"""What was done about the page cache before a read; `asked to drop` where the outcome cannot be seen."""

TOLD: dict[PageCache, str] = {
    "dropped": "the page cache dropped before each run",
    "bypassed": "past the page cache (O_DIRECT)",
    "asked to drop": "the system was asked to drop the page cache, whether it did cannot be seen",
    "kept": "the page cache could not be dropped, so this may be a rate of memory and not of the disk",
}


def measure_disk(watch: Stopwatch, folder: Path, size: int) -> dict[str, Rate]:
    """Read and write rates of the disk under a folder; the file that is written there is removed again.

    Args:
        watch: Times whole files.
        folder: Where the file goes.
        size: Its bytes; they are random, so that no file system compresses them.

    Raises:
        MissingFileError, UsageError: As `check_folder`.
    """
    check_folder(folder, size)
    chunk = min(CHUNK_BYTES, size)
    data = memoryview(np.random.default_rng(0).bytes(chunk))
    with _told(folder), _scratch(folder) as path:
        writes = watch.time(lambda: _write(path, data, size))
        reader = choose_reader(path, chunk)
        reads = watch.time(reader.read, reader.before)
    kind = file_system(folder)
    shown = f"of a file of {told_size(size)} on {kind or 'a file system of unknown kind'}, {told_size(chunk)} at a time"
    return {
        "disk_us_per_byte": rate_of(reads, size, "us/bytes", f"a read {shown}, {TOLD[reader.cache]}"),
        "disk_write_us_per_byte": rate_of(writes, size, "us/bytes", f"a write {shown}, fsync included"),
    }


def check_folder(folder: Path, size: int) -> None:
    """Find out whether a disk can be measured in a folder, before anything is measured.

    Raises:
        MissingFileError: The folder cannot be written, or has less than twice that many bytes free.
        UsageError: It lies in memory, so that there is no disk to measure.
    """
    with _told(folder), _scratch(folder):
        free = shutil.disk_usage(folder).free
    if free < 2 * size:
        raise MissingFileError(
            "there is too little space for a measurement",
            where=Position(str(folder)),
            got=f"{told_size(free)} free",
            expected=f"at least {told_size(2 * size)}",
        )
    kind = file_system(folder)
    if kind in IN_MEMORY:
        raise UsageError(
            "this folder lies in memory and not on a disk",
            where=Position(str(folder)),
            got=kind,
            expected="a folder of the disk that is to be measured",
        )


def file_system(folder: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of file system that a folder lies on, None where the system does not tell."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [wanted]:
            return source.split()[0]
    return None


@dataclass(frozen=True, slots=True)
class Reader:
    """One way of reading a whole file.

    Attributes:
        cache: What it does about the page cache.
        before: To be called before each run, not timed.
        read: Reads the file from end to end.
    """

    cache: PageCache
    before: Callable[[], object]
    read: Callable[[], object]


def choose_reader(path: Path, chunk: int) -> Reader:
    """The first way that keeps the page cache out: drop it, else read past it, else say that it is kept."""
    buffer = mmap.mmap(-1, chunk)  # O_DIRECT needs a buffer that begins at a page.
    plain = Reader("dropped", lambda: drop(path), lambda: _read(path, buffer))
    if drop(path):
        seen = cached(path)
        if not seen:
            return plain if seen is False else Reader("asked to drop", plain.before, plain.read)
    flag = getattr(os, "O_DIRECT", 0)
    if flag:
        with contextlib.suppress(OSError):
            _read(path, buffer, flag)
            return Reader("bypassed", lambda: None, lambda: _read(path, buffer, flag))
    return Reader("kept", lambda: None, plain.read)


def drop(path: Path) -> bool:
    """Ask the system to forget the cached pages of a file; False where it cannot be asked."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return False
    with _opened(path, os.O_RDONLY) as file:
        os.fsync(file)
        advise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def cached(path: Path) -> bool | None:
    """Whether pages of a file are in memory; None where the system does not tell.

    A read that may not wait fails exactly where the page is not there.
    """
    read, flag = getattr(os, "preadv", None), getattr(os, "RWF_NOWAIT", None)
    if read is None or flag is None:
        return None
    size, page = path.stat().st_size, bytearray(mmap.PAGESIZE)
    with _opened(path, os.O_RDONLY) as file:
        for index in range(PROBES):
            offset = size * index // PROBES // mmap.PAGESIZE * mmap.PAGESIZE
            try:
                if read(file, [page], offset, flag):
                    return True
            except BlockingIOError:
                continue
            except OSError:
                return None
    return False


def _write(path: Path, data: memoryview, size: int) -> None:
    with _opened(path, os.O_WRONLY | os.O_TRUNC) as file:
        left = size
        while left:
            left -= os.write(file, data[:left])
        os.fsync(file)


def _read(path: Path, buffer: mmap.mmap, flag: int = 0) -> int:
    """Reads a file piece by piece; returns how many bytes came."""
    size = left = path.stat().st_size
    with open(os.open(path, os.O_RDONLY | flag | _ALWAYS), "rb", buffering=0) as file:
        # By size and not up to an empty read, as one at an uneven end is refused past the page cache.
        while left and (came := file.readinto(buffer)):
            left -= came
    return size - left


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags | _ALWAYS)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    """What the system refuses becomes an error of ours that names the folder."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise MissingFileError(
            "the disk cannot be measured here",
            where=Position(str(folder)),
            got=(error.strerror if isinstance(error, OSError) else None) or error,
            expected="a folder that can be written",
        ) from error


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    file, name = tempfile.mkstemp(prefix=".hitproof-calibrate-", dir=folder)
    os.close(file)
    try:
        yield Path(name)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
