"""A disk that fails gives an answer with its reason, leaves nothing half-written, and works again when it is mended."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from hitproof.engine.store import NotStored, Receipt, Refused
from hitproof.spec.errors import StoreError
from tests.engine.store.cases import GROUP, Hasty, facts, files_of, got, opened, payload, put

REASONS = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EROFS: "read_only",
    errno.EACCES: "not_permitted",
    errno.EIO: "io_error",
}
WRITING = ("make_folder", "create", "write", "sync", "rename", "sync_folder")


class Failing(Hasty):
    """A disk on which one kind of step fails from some call on; a failing write writes a part first."""

    def __init__(self) -> None:
        self.what, self.number, self.after = "", 0, 0

    def fail(self, what: str, number: int, after: int = 0) -> None:
        """From now on, calls of this kind fail with this error, but for the first few."""
        self.what, self.number, self.after = what, number, after

    def _meet(self, what: str) -> None:
        if what == self.what:
            self.after -= 1
            if self.after < 0:
                raise OSError(self.number, os.strerror(self.number))

    def make_folder(self, path: Path) -> None:
        """May fail."""
        self._meet("make_folder")
        super().make_folder(path)

    def create(self, path: Path) -> int:
        """May fail."""
        self._meet("create")
        return super().create(path)

    def write(self, fd: int, content: memoryview) -> int:
        """May fail after a part was written."""
        part = super().write(fd, content[: len(content) // 2 + 1])
        self._meet("write")
        return part

    def sync(self, fd: int) -> None:
        """May fail."""
        self._meet("sync")

    def rename(self, source: Path, target: Path) -> None:
        """May fail."""
        self._meet("rename")
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        """May fail."""
        self._meet("remove")
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        """May fail."""
        self._meet("sync_folder")

    def commit(self, database: sqlite3.Connection) -> None:
        """May fail, as SQLite tells it."""
        if self.what == "commit":
            raise sqlite3.OperationalError("database or disk is full")
        super().commit(database)

    def read(self, fd: int, into: memoryview) -> int:
        """May fail, and reads little at a time."""
        self._meet("read")
        return super().read(fd, into[:999])

    def open(self, path: Path) -> tuple[int, int]:
        """May fail."""
        self._meet("open")
        return super().open(path)


@pytest.mark.parametrize("number", REASONS)
@pytest.mark.parametrize("what", WRITING)
def test_a_put_that_fails_leaves_what_was_there(tmp_path: Path, what: str, number: int) -> None:
    """The earlier segment is served, nothing of the new one is left, and the same put succeeds later."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        put(store, "k", b"earlier")
        before = files_of(tmp_path)
        disk.fail(what, number)
        for key in ("k", "new") if what != "make_folder" else ("new",):
            answer = store.put(key, GROUP, facts(), payload("later", 5000))
            assert isinstance(answer, NotStored)
            assert answer.reason == REASONS[number]
        assert files_of(tmp_path) == before
        assert (got(store, "k"), got(store, "new")) == (b"earlier", "missing")
        disk.fail("", 0)
        put(store, "k", b"later")
        put(store, "new")
    with opened(tmp_path) as store:
        assert (got(store, "k"), got(store, "new")) == (b"later", payload("new"))


def test_a_full_catalogue_leaves_what_was_there(tmp_path: Path) -> None:
    """A transaction that fails takes the new file with it."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        put(store, "k", b"earlier")
        before = files_of(tmp_path)
        disk.fail("commit", 0)
        assert isinstance(store.put("k", GROUP, facts(), b"later"), NotStored)
        assert files_of(tmp_path) == before
        disk.fail("", 0)
        assert got(store, "k") == b"earlier"
    with opened(tmp_path) as store:
        assert got(store, "k") == b"earlier"


def test_a_write_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """Whichever of several writes fails, no file of the segment is left."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        for after in range(12):
            disk.fail("write", errno.ENOSPC, after)
            assert isinstance(store.put("k", GROUP, facts(), payload("k", 100_000)), NotStored)
            assert files_of(tmp_path) == []


def test_a_disk_that_refuses_to_write_and_to_remove_is_swept_later(tmp_path: Path) -> None:
    """What could not be removed is removed by the next start, and is never served as the earlier segment."""
    disk = Failing()
    store = opened(tmp_path, files=disk)
    put(store, "k", b"earlier")
    disk.create = _leave  # type: ignore[method-assign]
    disk.fail("remove", errno.EROFS)
    answer = store.put("k", GROUP, facts(), b"later")
    assert isinstance(answer, NotStored)
    store.close()
    with opened(tmp_path) as store:
        assert len(store.opened.swept) == 1
        assert got(store, "k") == b"earlier"


def _leave(path: Path) -> int:
    """A file that opens and cannot be written."""
    path.touch()
    return os.open(path, os.O_RDONLY)


def test_an_earlier_segment_that_cannot_be_removed_does_not_come_back(tmp_path: Path) -> None:
    """The later one counts after a restart without a catalogue; deleting removes both, or says that it did not."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        put(store, "k", b"earlier")
        disk.fail("remove", errno.EIO)
        put(store, "k", b"later")
        assert len(files_of(tmp_path)) == 2
        answer = store.delete("k")
        assert isinstance(answer, Refused)
        assert answer.reason == "unreadable"
        assert got(store, "k") == b"later"
    (tmp_path / "catalogue.sqlite").unlink()
    disk.fail("", 0)
    with opened(tmp_path, files=disk) as store:
        assert got(store, "k") == b"later"
        assert len(store.opened.swept) == 1
        disk.fail("remove", errno.EIO)
        put(store, "k", b"latest")
        disk.fail("", 0)
        store.delete("k")
        assert files_of(tmp_path) == []


def test_an_eviction_that_fails_says_who_left(tmp_path: Path) -> None:
    """Those that left before the fault are named, the others are still held."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        size = put(store, "a").bytes
        put(store, "b")
    with opened(tmp_path, files=disk, capacity=2 * size) as store:
        disk.fail("remove", errno.EIO, after=1)
        answer = store.put("c", GROUP, facts(), payload("c", 1000 + size))
        assert isinstance(answer, NotStored)
        assert (answer.reason, answer.evicted) == ("io_error", ("a",))
        assert (got(store, "a"), got(store, "b")) == ("missing", payload("b"))


@pytest.mark.parametrize("what", ["open", "read"])
def test_a_disk_that_cannot_be_read_is_told_from_a_torn_file(tmp_path: Path, what: str) -> None:
    """The segment stays where it is and is served once the disk answers."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        put(store, "k", payload("k", 5000))
        disk.fail(what, errno.EIO)
        assert got(store, "k") == "unreadable"
        assert store.facts("k") is None
        disk.fail("", 0)
        assert store.facts("k") == facts()
        assert got(store, "k") == payload("k", 5000)


def test_a_torn_file_that_cannot_be_moved_is_refused_each_time(tmp_path: Path) -> None:
    """On a disk that became read-only nothing torn is served either."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        put(store, "k")
        (path,) = files_of(tmp_path)
        path.write_bytes(path.read_bytes()[:-1])
        disk.fail("rename", errno.EROFS)
        assert [got(store, "k") for _ in range(2)] == ["torn", "torn"]


@pytest.mark.parametrize("what", ["make_folder", "sync_folder"])
def test_a_disk_that_fails_at_the_start_is_an_error(tmp_path: Path, what: str) -> None:
    """Opening raises, gives the lock back, and succeeds once the disk is mended."""
    disk = Failing()
    disk.fail(what, errno.EROFS)
    with pytest.raises(StoreError):
        opened(tmp_path / "s", files=disk)
    disk.fail("", 0)
    opened(tmp_path / "s", files=disk).close()


def test_a_start_that_cannot_sweep_is_an_error(tmp_path: Path) -> None:
    """A torn file that cannot be set aside stops the start; it loses nothing."""
    disk = Failing()
    with opened(tmp_path, files=disk) as store:
        put(store, "k")
    (tmp_path / "segments" / "stray").write_text("?")
    disk.fail("rename", errno.EROFS)
    with pytest.raises(StoreError):
        opened(tmp_path, files=disk)
    disk.fail("", 0)
    with opened(tmp_path, files=disk) as store:
        assert got(store, "k") == payload("k")


@pytest.mark.parametrize(("number", "told"), [(errno.EIO, "unreadable"), (errno.EMFILE, "")])
def test_a_file_that_a_start_cannot_read_is_set_aside(tmp_path: Path, number: int, told: str) -> None:
    """One bad sector does not keep the others from being served; a reason that may pass ends the start instead."""
    disk = Failing()
    with opened(tmp_path) as store:
        put(store, "a")
        put(store, "b")
    (tmp_path / "catalogue.sqlite").unlink()
    disk.fail("read", number, after=1)
    if not told:
        with pytest.raises(StoreError):
            opened(tmp_path, files=disk)
        disk.fail("", 0)
    with opened(tmp_path, files=disk) as store:
        assert [why for _, why in store.opened.quarantined] == [told] * 2 * bool(told)
        disk.fail("", 0)
        assert got(store, "a") == ("missing" if told else payload("a"))


@pytest.mark.parametrize("what", ["sync", "sync_folder"])
def test_a_start_that_cannot_synchronise_ends_and_sets_nothing_aside(tmp_path: Path, what: str) -> None:
    """Unlike a sector that cannot be read, that is no trouble of the file; the next start takes it in, whole."""
    with opened(tmp_path / "store") as store:
        put(store, "key")
    (tmp_path / "store" / "catalogue.sqlite").unlink()
    disk = Failing()
    # The first three folders are the store's own.
    disk.fail(what, errno.EIO, after=3 if what == "sync_folder" else 0)
    with pytest.raises(StoreError):
        opened(tmp_path / "store", files=disk)
    with opened(tmp_path / "store") as store:
        assert payload("key") == got(store, "key")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path) -> None:
    """The system's own refusal becomes the store's error."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError):
            opened(tmp_path / "s")
    finally:
        tmp_path.chmod(0o700)


def test_a_small_disk_is_full_at_some_time(tmp_path: Path) -> None:
    """A real limit on the size of files: the put is answered, nothing is left of it, smaller ones go on."""
    resource = pytest.importorskip("resource", reason="the system has no limits on processes")
    signal = pytest.importorskip("signal")
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with opened(tmp_path) as store:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
            answer = store.put("k", GROUP, facts(), payload("k", 1_000_000))
            small = store.put("s", GROUP, facts(), payload("s"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        assert isinstance(answer, NotStored)
        assert answer.reason == "too_large"
        assert isinstance(small, Receipt)
        assert (got(store, "k"), got(store, "s")) == ("missing", payload("s"))
        assert len(files_of(tmp_path)) == 1
