"""Writers are killed at random moments; whatever they reported is there afterwards, whole."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hitproof.engine.soak.killed_writer import mark_of
from hitproof.engine.soak.kills import kill_writers
from hitproof.engine.soak.reported import Reported
from hitproof.engine.store import Receipt, Store
from tests.architecture.source_tree import LINKS, ROOT
from tests.engine.store.cases import GROUP, files_of, opened


def test_killed_writers_lose_nothing_that_they_reported() -> None:
    """Real processes on a real disk, most of them killed inside a call; `hitproof soak --kills` does more of it."""
    found = kill_writers(25, seed=1)
    assert found.faults == ()
    assert (found.kills, sum(found.inside.values()), sum(found.at.values())) == (25, 25, 25)
    assert found.inside["put"] > 0
    assert found.counts["stored"] > 0
    assert found.before_first_receipt < 25


@pytest.mark.parametrize(("broken", "word"), [("in place", "set aside: torn"), ("early", "reported")])
def test_writers_on_a_broken_store_are_found_out(monkeypatch: pytest.MonkeyPatch, broken: str, word: str) -> None:
    """A store that writes in place leaves torn files; one that reports too early loses what it reported."""
    monkeypatch.setenv("BROKEN_WRITER", broken)
    monkeypatch.syspath_prepend(ROOT)
    faults = kill_writers(12, seed=1, module="tests.engine.soak.broken_writers").faults
    assert any(word in fault for fault in faults)
    assert not any("by itself" in fault for fault in faults)


def test_the_writer_needs_no_torch() -> None:
    """Not even after its vocabulary was loaded."""
    code = "import sys; from hitproof.engine.soak import killed_writer as writer; writer.meaning()"
    code += "; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(LINKS.parent)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


CAPACITY = 100_000
"""Bytes that the plain list reckons with; three small segments leave most of them free."""


def mark(content: bytes) -> str:
    """The mark of a segment without known facts."""
    return mark_of({}, content)


def put(store: Store, key: str, content: bytes) -> list[str]:
    """Puts, and answers the line that reports it."""
    receipt = store.put(key, GROUP, {}, content)
    assert isinstance(receipt, Receipt)
    return ["stored", key, mark(content), str(receipt.bytes), *receipt.evicted]


def faults_of(root: Path, change: Callable[[Path], None], *lines: str) -> list[str]:
    """What is told after three puts, a change behind the store's back, and more lines of the writer."""
    reported = Reported(CAPACITY)
    with opened(root) as store:
        for key in ("a", "b", "c"):
            reported.hear(put(store, key, key.encode()))
    change(root)
    for line in lines:
        reported.hear(line.split())
    with opened(root) as store:
        reported.judge(store)
    return reported.faults


def nothing(_: Path) -> None:
    """Changes nothing."""


def puts(key: str, content: bytes = b"new") -> Callable[[Path], None]:
    """Puts a segment that nobody reports."""

    def change(root: Path) -> None:
        with opened(root) as store:
            put(store, key, content)

    return change


def deletes(*keys: str) -> Callable[[Path], None]:
    """Deletes segments without a report."""

    def change(root: Path) -> None:
        with opened(root) as store:
            for key in keys:
                store.delete(key)

    return change


def tears(root: Path) -> None:
    """Cuts the end of every file, and loses the catalogue, so that a start reads them."""
    for path in files_of(root):
        path.write_bytes(path.read_bytes()[:-1])
    (root / "catalogue.sqlite").unlink()


CUT_PUT = f"put a {mark(b'new')} 3"
CUT_LARGE_PUT = f"put a {mark(b'new')} {CAPACITY - 18_000}"
"""One that needs the room of one or two of the others."""
KEPT: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "nothing happened": (nothing, ()),
    "a get": (nothing, ("get a", f"got a {mark(b'a')}")),
    "a put that failed": (nothing, (CUT_PUT, "unstored a disk_full")),
    "a cut put that was not done": (nothing, (CUT_PUT,)),
    "a cut put that was done": (puts("a"), (CUT_PUT,)),
    "a cut put of a new key": (puts("d"), (f"put d {mark(b'new')} 3",)),
    "a cut delete that was not done": (nothing, ("delete a",)),
    "a cut delete that was done": (deletes("a"), ("delete a",)),
    "a delete": (deletes("a"), ("delete a", "deleted a")),
    "room for a cut put": (deletes("b"), (CUT_LARGE_PUT,)),
    "no room yet for a cut put": (nothing, (CUT_LARGE_PUT,)),
    "room for a put that failed": (deletes("b"), (CUT_LARGE_PUT, "unstored a disk_full b")),
}
BROKEN: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "lost": (deletes("a"), (), "lost"),
    "lost beside a cut delete": (deletes("b"), ("delete a",), "lost"),
    "lost beside a cut put that needs no room": (deletes("b"), (CUT_PUT,), "lost"),
    "lost beside a cut put, out of order": (deletes("c"), (CUT_LARGE_PUT,), "lost"),
    "more than a put needs": (deletes("a"), (f"stored d {mark(b'd')} 9 a",), "its room takes []"),
    "more than a put that failed needs": (deletes("b"), (CUT_PUT, "unstored a disk_full b"), "lost"),
    "a put refused for pins": (nothing, (CUT_PUT, "unstored a pinned"), "refused as pinned"),
    "less than a put needs": (nothing, (f"stored d {mark(b'd')} {CAPACITY} a",), "its room takes ['a', 'b', 'c']"),
    "replaced": (puts("a"), (), "reported was"),
    "replaced by what a cut put did not write": (puts("a", b"other"), (CUT_PUT,), "after a cut put"),
    "gone by a cut put": (deletes("a"), (CUT_PUT,), "after a cut put"),
    "another's after a cut delete": (puts("a"), ("delete a",), "after a cut delete"),
    "deleted and back": (nothing, ("delete a", "deleted a"), "reported was None"),
    "never put": (puts("d"), (), "reported was None"),
    "evicted and back": (nothing, (f"stored d {mark(b'd')} 9 a",), "reported was None"),
    "torn": (tears, (), "set aside"),
    "a wrong get": (nothing, ("get a", f"got a {mark(b'b')}"), "a writer got"),
    "a refused get": (nothing, ("get a", "got a torn"), "a writer got torn"),
    "a writer that ended": (nothing, ("failed OSError",), "ended by itself"),
    "an eviction of what was not there": (nothing, (f"stored a {mark(b'a')} 9 z",), "had not been stored"),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_a_kill_may_leave_is_no_fault(tmp_path: Path, case: str) -> None:
    """A call that was cut was done or was not, and may have made room."""
    change, lines = KEPT[case]
    assert faults_of(tmp_path, change, *lines) == []


@pytest.mark.parametrize("case", BROKEN)
def test_each_broken_promise_is_told(tmp_path: Path, case: str) -> None:
    """Whatever is lost, replaced, torn, or back again, beside a cut call too."""
    change, lines, word = BROKEN[case]
    assert any(word in fault for fault in faults_of(tmp_path, change, *lines))
