"""The simulated disk under a real store: what it must not lose it keeps, and what it loses shows."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from hitproof.engine.soak.disk import SimulatedDisk
from hitproof.engine.soak.disk_faults import DISK_RATES, DiskFaults
from hitproof.engine.soak.killed import Killed
from hitproof.engine.store import Deleted, Found, NotStored, Receipt, Store
from hitproof.engine.store.layout import digest_of
from hitproof.spec.errors import StoreError
from tests.engine.store.cases import GROUP, facts, meaning, payload

HONEST = {"power_loss": 0.8, "cold_cache": 0.2, "catalogue_lost": 0.1, "catalogue_torn": 0.3}
"""A disk that does what it says; the power fails all the same."""
OFTEN = {kind: max(rate, 0.03) for kind, rate in DISK_RATES.items()}


@pytest.fixture
def work() -> Iterator[Path]:
    """A scratch folder, in memory where possible."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(dir=memory if usable else None) as folder:
        yield Path(folder)


@dataclass
class Book:
    """What a user of the store knows: everything ever put, what must be there, and what is excused."""

    put: dict[str, list[bytes]] = field(default_factory=dict)
    sure: dict[str, bytes] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    told: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, digest: str) -> None:
        """A fault of the disk."""
        self.told.append((kind, digest))
        self.excused.add(digest)

    def judge(self, store: Store, key: str) -> None:
        """Asks for a key and compares."""
        answer = store.get(key)
        content = bytes(answer.payload) if isinstance(answer, Found) else None
        self.answers["found" if isinstance(answer, Found) else answer.reason] += 1
        if content is not None and content not in self.put.get(key, []):
            self.wrong.append(f"{key}: bytes that nobody put")
        if key in self.sure and digest_of(key) not in self.excused and content != self.sure[key]:
            self.wrong.append(f"{key}: stored, and answered {answer}")


def act(store: Store, draw: Random, book: Book, number: int) -> None:
    """One random call."""
    key = f"key-{draw.randrange(30)}"
    what = draw.choice(("put", "put", "get", "delete", "check"))
    if what == "put":
        content = payload(f"{number}", draw.randint(0, 9000))
        book.put.setdefault(key, []).append(content)
        # From here until it is answered, either may be there.
        before = book.sure.pop(key, None)
        answer = store.put(key, GROUP, facts(), content)
        if isinstance(answer, Receipt):
            book.sure[key] = content
        elif before is not None:
            book.sure[key] = before
    elif what == "get":
        book.judge(store, key)
    elif what == "delete":
        before = book.sure.pop(key, None)
        if not isinstance(store.delete(key), Deleted) and before is not None:
            book.sure[key] = before
    else:
        # A file whose removal could not be synchronised is gone and still known.
        with suppress(OSError):
            store.check_integrity()


def lives(
    work: Path, seed: int, rates: dict[str, float], make: Callable[..., SimulatedDisk] = SimulatedDisk, count: int = 25
) -> Book:
    """Plays so many lives of a store, each ended by a cut at a random step of the disk.

    The store has no capacity, since nobody can tell whom a call that was cut short has evicted.
    """
    draw, book = Random(seed), Book()
    disk = make(work, Random(seed + 1), rates, book.note)
    store: Store | None = None
    number = 0
    for life in range(count):
        folder = disk.survive() if life else disk.base
        try:
            disk.fail_after(draw.randint(1, 120))
            try:
                store = Store(folder / "store", meaning(), files=disk)
            except StoreError:
                continue
            for key in sorted(book.put):
                book.judge(store, key)
            while True:
                number += 1
                act(store, draw, book, number)
        except Killed:
            pass
        finally:
            try:
                if store is not None:
                    store.close()
            except Killed:
                store = None
    return book


@pytest.mark.parametrize("seed", range(6))
def test_a_disk_that_keeps_its_word_loses_nothing_that_was_reported(work: Path, seed: int) -> None:
    """Only the power fails, and the catalogue with it; every receipt is kept."""
    book = lives(work, seed, HONEST)
    assert book.wrong == []
    assert book.excused <= {""}
    assert book.answers["found"] > 100


@pytest.mark.parametrize("seed", range(6))
def test_a_disk_with_every_fault_never_makes_the_store_serve_wrong_bytes(work: Path, seed: int) -> None:
    """Whoever was not hit is still there; whoever was hit is refused or whole."""
    book = lives(work, seed, OFTEN)
    assert book.wrong == []
    assert book.answers["found"] > 50


def test_every_fault_shows_in_what_the_store_answers(work: Path) -> None:
    """The faults reach the bytes: segments are refused as not what was sealed, and as not readable."""
    book = lives(work, 3, OFTEN, count=60)
    assert {kind for kind, _ in book.told} >= set(OFTEN)
    assert book.answers["wrong_fingerprint"] + book.answers["torn"] > 0
    assert book.answers["unreadable"] > 0


def written(work: Path, kind: str, name: str = "file") -> tuple[SimulatedDisk, list[str]]:
    """A disk with one whole file, and one that was written and synchronised while a kind of fault struck each time."""
    struck: list[str] = []
    disk = SimulatedDisk(work, Random(0), {}, lambda what, digest: struck.append(f"{what} {digest}".strip()))
    for each in ("whole", name):
        if each == name:
            disk.faults = DiskFaults(Random(0), {kind: 1.0}, lambda what, digest: struck.append(f"{what} {digest}"))
        fd = disk.create(disk.base / each)
        try:
            disk.write_all(fd, memoryview(each.encode() * 3))
            disk.sync(fd)
        except OSError:
            struck.append("told")
        disk.close(fd)
    disk.faults = DiskFaults(Random(0), {}, lambda what, digest: None)
    disk.sync_folder(disk.base)
    return disk, struck


def content(disk: SimulatedDisk, name: str) -> bytes:
    """What a program reads of a file."""
    fd, size = disk.open(disk.base / name)
    buffer = bytearray(size)
    disk.read_all(fd, memoryview(buffer))
    disk.close(fd)
    return bytes(buffer)


def after(disk: SimulatedDisk, death: str) -> SimulatedDisk:
    """The disk after a kill, or after a loss of power."""
    disk.faults = DiskFaults(Random(1), {death: 1.0}, lambda what, digest: None)
    disk.survive()
    disk.faults = DiskFaults(Random(1), {}, lambda what, digest: None)
    return disk


@pytest.mark.parametrize("kind", ["phantom_write", "misdirected_write"])
def test_a_write_that_never_reaches_the_medium_shows_once_the_power_fails(work: Path, kind: str) -> None:
    """Until then the page cache has the bytes, also after a kill; a misdirected one spoils another file at once."""
    disk, struck = written(work, kind)
    assert struck == [f"{kind} file", *(["misdirected_write whole"] if kind == "misdirected_write" else [])]
    assert content(disk, "file") == b"filefilefile"
    assert content(after(disk, "no death"), "file") == b"filefilefile"
    assert content(after(disk, "power_loss"), "file") == bytes(12)
    assert content(disk, "whole") == (b"filefilefileole" if kind == "misdirected_write" else b"wholewholewhole")


@pytest.mark.parametrize("kind", ["failed_sync", "phantom_sync"])
def test_a_synchronisation_that_goes_wrong_is_not_made_good_by_the_next(work: Path, kind: str) -> None:
    """The cache takes the pages for clean, so a later one succeeds and does nothing."""
    disk, struck = written(work, kind)
    assert struck == [f"{kind} file", *(["told"] if kind == "failed_sync" else [])]
    fd, _ = disk.open(disk.base / "file")
    disk.sync(fd)
    disk.close(fd)
    assert content(disk, "file") == b"filefilefile"
    assert content(after(disk, "power_loss"), "file") != b"filefilefile"
    assert content(disk, "whole") == b"wholewholewhole"


class Forgetful(SimulatedDisk):
    """A disk whose driver leaves synchronising out, and tells nobody."""

    def sync(self, fd: int) -> None:
        """Does nothing."""


class Nameless(SimulatedDisk):
    """The same of folders."""

    def sync_folder(self, path: Path) -> None:
        """Does nothing."""


@pytest.mark.parametrize("make", [Forgetful, Nameless])
def test_a_store_that_does_not_wait_for_the_disk_is_found_out(work: Path, make: type[SimulatedDisk]) -> None:
    """With a kind of step left out, a reported segment is lost; so the tests above can fail."""
    assert lives(work, 0, HONEST, make).wrong


def test_the_same_seed_gives_the_same_faults_and_answers(work: Path) -> None:
    """Twice over other folders: every fault, every answer."""
    for name in ("one", "two"):
        (work / name).mkdir()
    first, second = lives(work / "one", 7, OFTEN), lives(work / "two", 7, OFTEN)
    assert first.told == second.told
    assert first.answers == second.answers


class Full(SimulatedDisk):
    """A disk on which there may be no room for the catalogue."""

    full = False

    def commit(self, database: sqlite3.Connection) -> None:
        """Perhaps no commit."""
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        super().commit(database)


@pytest.mark.parametrize("seed", range(8))
def test_a_put_that_was_refused_does_not_come_back_with_a_loss_of_power(work: Path, seed: int) -> None:
    """Its file was whole on the disk; that it was removed is on the disk too before the refusal is told."""
    disk = Full(work, Random(seed), {"power_loss": 1.0}, lambda kind, digest: None)
    store = Store(disk.base / "store", meaning(), files=disk)
    assert isinstance(store.put("key", GROUP, facts(), b"old"), Receipt)
    disk.full = True
    assert isinstance(store.put("key", GROUP, facts(), b"new"), NotStored)
    folder = disk.survive()
    disk.full = False
    with Store(folder / "store", meaning(), files=disk) as again:
        answer = again.get("key")
        assert isinstance(answer, Found)
        assert bytes(answer.payload) == b"old"
    with suppress(Killed):
        store.close()
