"""After a stop before any step, a start finds every reported segment whole, and serves nothing that is torn.

The stories below are cut before each of their steps, within writes and after commits, and meet every kind of loss of
what was not synchronised.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hitproof.engine.store import Deleted, Found, Opened, Receipt, Store
from hitproof.engine.store.layout import Layout
from tests.engine.store.cases import GROUP, facts, meaning, opened, payload
from tests.engine.store.old_files import name_1, write_schema_1
from tests.engine.store.simulated_disk import LOSSES, PowerCut, SimulatedDisk

Held = dict[str, bytes]
"""What is held under each key."""


@dataclass(frozen=True)
class Step:
    """A call: `put` (with what leaves for it), `get` or `delete`."""

    what: str
    key: str
    content: bytes = b""
    leaves: tuple[str, ...] = ()

    def after(self, held: Held) -> Held:
        """What is held once the call was answered."""
        if self.what == "get":
            return held
        rest = {key: content for key, content in held.items() if key not in (self.key, *self.leaves)}
        return {**rest, self.key: self.content} if self.what == "put" else rest

    def run(self, store: Store) -> None:
        """Makes the call and wants the answer that the step tells."""
        if self.what == "put":
            answer = store.put(self.key, GROUP, facts(), self.content)
            assert isinstance(answer, Receipt)
            assert answer.evicted == self.leaves
        elif self.what == "get":
            assert isinstance(store.get(self.key), Found)
        else:
            assert isinstance(store.delete(self.key), Deleted)


def _put(key: str, size: int, version: str = "", leaves: tuple[str, ...] = ()) -> Step:
    return Step("put", key, payload(key + version, size), leaves)


REPLACING = (
    _put("a", 900),
    _put("b", 0),
    _put("a", 1200, "again"),
    Step("get", "b"),
    Step("delete", "b"),
    _put("b", 700, "new"),
)
EVICTING = (_put("a", 20_000), _put("b", 20_000), Step("get", "a"), _put("c", 20_000, leaves=("b",)))
STORIES: dict[str, tuple[Sequence[Step], int | None]] = {"replacing": (REPLACING, None), "evicting": (EVICTING, 60_000)}


@pytest.fixture
def work() -> Iterator[Path]:
    """A scratch folder, in memory where possible: the disk is simulated, and SQLite need not wait for a real one."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(dir=memory if usable else None) as folder:
        yield Path(folder)


def play(disk: SimulatedDisk, steps: Sequence[Step], capacity: int | None, held: Held) -> tuple[Held, Held, bool]:
    """Plays a story until it ends or the machine stops.

    Returns:
        What was held after the last step that was answered, what the step under way would have led to, whether the
        machine stopped.
    """
    after = held
    store: Store | None = None
    try:
        store = Store(disk.base / "store", meaning(), capacity=capacity, files=disk)
        for step in steps:
            after = step.after(held)
            step.run(store)
            held = after
        store.close()
        return held, after, False
    except PowerCut:
        return held, after, True
    finally:
        if store is not None:
            bury(store)


def bury(store: Store) -> None:
    """Gives back what a dead process would have lost: the lock and the connection."""
    if store._lock is not None:
        os.close(store._lock)
        store._lock = None
        store._keeper.catalogue._database.close()


def wrong(root: Path, before: Held, after: Held) -> list[str]:
    """What a start finds that it must not: each key has what was reported, or what was under way."""
    faults = []
    with opened(root) as store:
        for key in sorted({*before, *after} | {entry.key for entry in store.entries()}):
            answer = store.get(key)
            content = bytes(answer.payload) if isinstance(answer, Found) else None
            if content not in (before.get(key), after.get(key)):
                faults.append(f"{key}: {answer if content is None else 'other bytes'}")
            if not isinstance(answer, Found) and answer.reason != "missing":
                faults.append(f"{key}: the start let pass what is {answer.reason}")
        faults += [str(answer) for answer in store.scrub()]
        faults += [str(path) for path in root.rglob("*.tmp")]
        store.check_integrity()
        faults += [] if isinstance(store.put("later", GROUP, facts(), b"later"), Receipt) else ["nothing can be put"]
    with opened(root) as store:
        faults += [] if store.opened == Opened() else [f"a second start found work: {store.opened}"]
    return faults


def cuts(work: Path, made: Callable[[Path], SimulatedDisk]) -> Iterator[tuple[str, SimulatedDisk]]:
    """A fresh disk for each step at which the machine can stop; ends once it was not stopped.

    Args:
        work: A scratch folder.
        made: Makes the disk in an absent folder.
    """
    for stop in count():
        for part in (False, True):
            base = work / "base"
            shutil.rmtree(base, ignore_errors=True)
            base.mkdir()
            disk = made(base)
            disk.stop, disk.part = stop, part
            yield f"step {stop}{', in part' if part else ''}", disk
            if not disk.stopped:
                return
            if disk.stopped not in ("write", "commit"):
                break


def losses(work: Path, disk: SimulatedDisk, seed: int) -> Iterator[tuple[str, Path]]:
    """The folder of the store after each kind of loss."""
    log = disk.base / "store" / "catalogue.sqlite-wal"
    torn = max(0, log.stat().st_size - 2000) if log.exists() else 0
    catalogues: dict[str, dict[str, Any]] = {
        "no catalogue": {"catalogue": False},
        "half of the last entry of its log": {"log_bytes": torn},
        "no log": {"log_bytes": 0},
    }
    everything = LOSSES["all is lost"]
    for name, loss, options in [
        *((name, loss, {}) for name, loss in LOSSES.items()),
        *((name, everything, options) for name, options in catalogues.items()),
    ]:
        left = work / "left"
        shutil.rmtree(left, ignore_errors=True)
        disk.image(left, loss(seed), **options)
        yield name, left / "store"


def faults_of(work: Path, steps: Sequence[Step], capacity: int | None = None, omits: str = "") -> Iterator[str | None]:
    """Plays a story with every cut and loss; one item for each, a fault or None."""
    for seed, (cut, disk) in enumerate(cuts(work, SimulatedDisk)):
        disk.omits = omits
        before, after, _ = play(disk, steps, capacity, {})
        for loss, root in losses(work, disk, seed):
            yield told(f"{cut} ({disk.stopped}), {loss}", wrong(root, before, after))


def told(cut: str, faults: list[str]) -> str | None:
    """A fault with the cut that led to it."""
    return f"{cut}: {'; '.join(faults)}" if faults else None


def every(tried: Iterable[str | None], least: int) -> list[str]:
    """All faults, of at least so many tries."""
    found = list(tried)
    assert len(found) >= least
    return [fault for fault in found if fault is not None]


@pytest.mark.parametrize("story", STORIES)
def test_a_cut_before_any_step_loses_nothing_that_was_reported(work: Path, story: str) -> None:
    """Every step, every kind of loss; what is served is what was put."""
    assert every(faults_of(work, *STORIES[story]), 300) == []


@pytest.mark.parametrize("step", ["sync", "sync_folder"])
def test_a_store_that_does_not_wait_for_the_disk_is_found_out(work: Path, step: str) -> None:
    """With one kind of step left out, some cut loses a reported segment; so the test above can fail."""
    assert any(faults_of(work, REPLACING, omits=step))


def after_a_kill(work: Path) -> Iterator[str | None]:
    """A process is killed at any step, the next one puts and deletes, and then the power fails."""
    more = (_put("x", 300), Step("delete", "x"), _put("y", 300))
    for seed, (cut, disk) in enumerate(cuts(work, SimulatedDisk)):
        before, after, _ = play(disk, REPLACING[:3], None, {})
        second = work / "second"
        shutil.rmtree(second, ignore_errors=True)
        alive = disk.image(second, LOSSES["a kill: nothing is lost"](seed))
        # What the start has taken in may be what the process had under way; from then on it counts as reported.
        held = seen_by(alive, more, before, after)
        for loss, root in losses(work, alive, seed):
            yield told(f"{cut} ({disk.stopped}), then {loss}", wrong(root, held, held))


def seen_by(disk: SimulatedDisk, steps: Sequence[Step], before: Held, after: Held) -> Held:
    """Opens a store, plays a story in it, and answers what it serves at the end."""
    store = Store(disk.base / "store", meaning(), files=disk)
    for step in steps:
        step.run(store)
    held = {}
    for key in sorted({"y", *before, *after}):
        answer = store.get(key)
        if isinstance(answer, Found):
            held[key] = bytes(answer.payload)
    bury(store)
    assert all(held.get(key) in (before.get(key), after.get(key)) for key in {*before, *after})
    return held


def test_what_a_start_has_served_survives_the_next_loss(work: Path) -> None:
    """A start synchronises what a killed process left in the cache, before anything is served."""
    assert every(after_a_kill(work), 200) == []


def test_a_start_that_trusts_what_it_sees_is_found_out(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that synchronising, a segment that was served is lost; so the test above can fail."""
    monkeypatch.setattr(Layout, "settle", lambda *_: None)
    assert any(after_a_kill(work))


WHOLE = {"old": payload("old", 900), "older": payload("older", 0), "orphan": payload("orphan", 400)}


def disorder(base: Path) -> SimulatedDisk:
    """A store of version 1 with a torn file, a file that is no segment, a temporary one and an unknown whole one."""
    root = base / "store"
    write_schema_1(root, {"old": WHOLE["old"], "older": WHOLE["older"], "torn": payload("torn", 900)})
    torn = root / "segments" / name_1("torn")
    torn.write_bytes(torn.read_bytes()[:-1])
    (root / "segments" / "stray").write_bytes(b"?")
    with opened(base / "other") as other:
        receipt = other.put("orphan", GROUP, facts(), WHOLE["orphan"])
        assert isinstance(receipt, Receipt)
    orphan = root / "segments" / receipt.name
    orphan.parent.mkdir(parents=True)
    (base / "other" / "segments" / receipt.name).rename(orphan)
    orphan.with_suffix(".tmp").write_bytes(b"half")
    shutil.rmtree(base / "other")
    return SimulatedDisk.of(base)


def test_a_start_that_is_cut_short_is_finished_by_the_next(work: Path) -> None:
    """Upgrade, sweep, quarantine and adoption are cut before each of their steps; nothing whole is lost by any."""
    faults = []
    for seed, (cut, disk) in enumerate(cuts(work, disorder)):
        play(disk, (), None, WHOLE)
        for loss, root in losses(work, disk, seed):
            if fault := told(f"{cut} ({disk.stopped}), {loss}", wrong(root, WHOLE, WHOLE)):
                faults.append(fault)
            kept = [path.read_bytes() for path in (root / "quarantine").iterdir()]
            if b"?" not in kept or not any(len(content) > 900 for content in kept):
                faults.append(f"{cut}, {loss}: a file that was set aside is gone")
    assert faults == []
    assert seed > 30
