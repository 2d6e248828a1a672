"""A process that forks writers on a store; each puts, replaces, reads and deletes segments until it is killed.

Run with a folder and a capacity in bytes as arguments. A line `start SEED STOP` on standard input forks a writer,
which stops for good when it has told so many steps (0: never), `kill` kills it, and so does the end of the input. On
standard output stand lines of words, each written at once:

- `writer NUMBER` and `ended STATUS` of the writer's process;
- `open` and `opened` around its start, `step NAME` before each change of the disk;
- `put KEY MARK BYTES`, then `stored KEY MARK BYTES EVICTED...` or `unstored KEY REASON EVICTED...`;
- `delete KEY`, then `deleted KEY`; `get KEY`, then `got KEY MARK`, or the reason in the mark's place;
- `failed TYPE` where it ends by itself.

A mark is the digest of a segment's payload and facts.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

from hitproof.engine.load import load
from hitproof.engine.store import Deleted, Files, Found, Meaning, Receipt, Store
from hitproof.spec.facts import Value

__all__ = ["GROUP", "main", "mark_of", "meaning"]

GROUP = "full"
_MODEL = "gemma-3-27b"
_KEYS = 12
_SIZES = (0, 100, 5_000, 5_000, 300_000, 2_000_000)
_PART = 250_000
"""Bytes that are written at once, at most."""


class _Told(Files):
    """The disk; each change is told before it is made, and the one that `stop` counts is told and not made."""

    def __init__(self, stop: int) -> None:
        self._left, self._parent = stop, os.getppid()

    def _tell(self, step: str) -> None:
        _say("step", step)
        self._left -= 1
        while self._left == 0 and os.getppid() == self._parent:
            time.sleep(1)

    def make_folder(self, path: Path) -> None:
        """Told."""
        self._tell("make_folder")
        super().make_folder(path)

    def create(self, path: Path) -> int:
        """Told."""
        self._tell("create")
        return super().create(path)

    def write(self, fd: int, content: memoryview) -> int:
        """Told; a part at a time, as a disk may, so that kills leave files of every length."""
        self._tell("write")
        return super().write(fd, content[:_PART])

    def sync(self, fd: int) -> None:
        """Told."""
        self._tell("sync")
        super().sync(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Told."""
        self._tell("rename")
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        """Told."""
        self._tell("remove")
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        """Told."""
        self._tell("sync_folder")
        super().sync_folder(path)

    def commit(self, database: sqlite3.Connection) -> None:
        """Told."""
        self._tell("commit")
        super().commit(database)


def meaning() -> Meaning:
    """The vocabulary by which writers store."""
    return Meaning(load(_MODEL).bound)


def mark_of(facts: Mapping[str, Value], payload: bytes | memoryview) -> str:
    """What tells one stored segment from another."""
    known = sorted((name, value) for name, value in facts.items() if value is not None)
    return hashlib.blake2b(repr(known).encode() + b"\n" + payload, digest_size=16).hexdigest()


def main() -> None:
    """Forks a writer each time it is told to."""
    root, capacity = sys.argv[1:]
    vocabulary = meaning()
    writer: int | None = None
    for line in sys.stdin:
        what, *how = line.split()
        if what == "kill":
            _end(writer)
            writer = None
            continue
        seed, stop = how
        writer = os.fork()
        if writer == 0:
            _write(Path(root), int(capacity), vocabulary, seed, int(stop))
        _say("writer", str(writer))
    _end(writer)


def _end(writer: int | None) -> None:
    if writer is not None:
        # It is no other process, even where it has ended: nobody else waits for it.
        os.kill(writer, signal.SIGKILL)
        _say("ended", str(os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1])))


def _write(root: Path, capacity: int, vocabulary: Meaning, seed: str, stop: int) -> None:
    """Calls a store without end."""
    try:
        draw = Random(seed)
        _say("open")
        with Store(root, vocabulary, capacity=capacity, files=_Told(stop)) as store:
            _say("opened")
            for turn in count():
                _call(store, draw, turn)
    except BaseException as error:
        traceback.print_exc()
        with suppress(OSError):
            _say("failed", type(error).__name__)
    finally:
        os._exit(1)


def _call(store: Store, draw: Random, turn: int) -> None:
    key, drawn = f"key{draw.randrange(_KEYS)}", draw.random()
    if key in store and drawn < 0.2:
        _say("delete", key)
        if isinstance(store.delete(key), Deleted):
            _say("deleted", key)
    elif key in store and drawn < 0.4:
        _say("get", key)
        found = store.get(key)
        _say("got", key, mark_of(found.facts, found.payload) if isinstance(found, Found) else found.reason)
    else:
        payload, facts = draw.randbytes(draw.choice(_SIZES)), {"start": 0, "end": turn}
        mark = mark_of(facts, payload)
        _say("put", key, mark, str(len(payload)))
        answer = store.put(key, GROUP, facts, payload)
        if isinstance(answer, Receipt):
            _say("stored", key, mark, str(answer.bytes), *answer.evicted)
        else:
            _say("unstored", key, answer.reason, *answer.evicted)


def _say(*words: str) -> None:
    os.write(1, f"{' '.join(words)}\n".encode())


if __name__ == "__main__":
    main()
