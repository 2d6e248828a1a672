"""A disk that stops after any step, and what may then be left of it.

Every step is done for real, and noted: bytes written are in the page cache until their file is synchronised, names made
or removed are until their folder is. `image` lays out what a loss leaves. The catalogue's transactions are real ones of
SQLite: its files are copied as they lie, and a transaction under way is there not at all, in part, or wholly.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from hitproof.engine.store import Files

__all__ = ["LOSSES", "Loss", "PowerCut", "SimulatedDisk"]


class PowerCut(BaseException):
    """The machine stops; no `except` of the code under test may go on."""


@dataclass(eq=False)
class Node:
    """A file: what programs see of it, and what is on the disk."""

    seen: bytearray = field(default_factory=bytearray)
    durable: bytes | None = None


Names = dict[str, "Node | Path"]
"""A folder: files and folders by name."""


@dataclass(frozen=True)
class Loss:
    """What a loss leaves of what was not synchronised.

    Args:
        content: From a file's bytes as seen and as durable (None: never synchronised) to what is left.
        names: From a folder's names as seen and as durable to what is left.
    """

    content: Callable[[bytes, bytes | None], bytes]
    names: Callable[[Names, Names], Names]


def _mixed(seed: int) -> Loss:
    """Each name and each file meets another fate."""
    draw = Random(seed)

    def names(seen: Names, durable: Names) -> Names:
        left = {}
        for name in sorted({*seen, *durable}):
            node = draw.choice((seen, durable)).get(name)
            if node is not None:
                left[name] = node
        return left

    def content(seen: bytes, durable: bytes | None) -> bytes:
        return durable if durable is not None else seen[: draw.randint(0, len(seen))]

    return Loss(content, names)


LOSSES: dict[str, Callable[[int], Loss]] = {
    "a kill: nothing is lost": lambda _: Loss(lambda seen, _: seen, lambda seen, _: seen),
    "all is lost": lambda _: Loss(lambda _, durable: durable or b"", lambda _, durable: durable),
    "names are there, bytes are not": lambda _: Loss(lambda _, durable: durable or b"", lambda seen, _: seen),
    "names are there, half the bytes": lambda _: Loss(
        lambda seen, durable: seen[: len(seen) // 2] if durable is None else durable, lambda seen, _: seen
    ),
    "names are there, bytes are zeros": lambda _: Loss(
        lambda seen, durable: bytes(len(seen)) if durable is None else durable, lambda seen, _: seen
    ),
    "some of each": _mixed,
}


class SimulatedDisk(Files):
    """The disk below a folder, whose only content is the store's root.

    Args:
        base: The folder.
        stop: The step before which the machine stops; None is never. Steps count from 0. `stopped` is then its kind.
        part: With a stop at a write, write half of it first; with one at a commit, commit first.
        omits: A kind of step that is not done: the fault of a store that leaves it out.
    """

    def __init__(self, base: Path, *, stop: int | None = None, part: bool = False, omits: str = "") -> None:
        self.base, self.stop, self.part, self.omits = base, stop, part, omits
        self.step = 0
        self.stopped = ""
        self.seen: dict[Path, Names] = {base: {}}
        self.durable: dict[Path, Names] = {base: {}}
        self._open: dict[int, Node] = {}

    @classmethod
    def of(cls, base: Path) -> SimulatedDisk:
        """A disk on which everything that lies below a folder is durable."""
        disk = cls(base)
        for path in sorted(base.rglob("*")):
            if path.is_dir():
                disk.seen[path], disk.durable[path] = {}, {}
            node = path if path.is_dir() else Node(bytearray(path.read_bytes()), path.read_bytes())
            if not path.name.startswith("catalogue.sqlite"):
                disk.seen[path.parent][path.name] = disk.durable[path.parent][path.name] = node
        return disk

    def _next(self, what: str) -> bool:
        """Counts a step; False where it is to be left out."""
        if self.stopped:
            raise PowerCut
        if self.step == self.stop:
            self.stopped = what
            if not (self.part and what in ("write", "commit")):
                raise PowerCut
        self.step += 1
        return what != self.omits

    def make_folder(self, path: Path) -> None:
        """As the real one; the name is in the cache."""
        self._next("make_folder")
        super().make_folder(path)
        self.seen[path.parent][path.name] = path
        self.seen[path], self.durable[path] = {}, {}

    def create(self, path: Path) -> int:
        """As the real one; the name is in the cache."""
        self._next("create")
        fd = super().create(path)
        self._open[fd] = self.seen[path.parent][path.name] = Node()
        return fd

    def write(self, fd: int, content: memoryview) -> int:
        """As the real one; the bytes are in the cache."""
        self._next("write")
        if self.stopped:
            content = content[: len(content) // 2]
        count = super().write(fd, content)
        self._open[fd].seen += content[:count]
        if self.stopped:
            raise PowerCut
        return count

    def sync(self, fd: int) -> None:
        """The file's bytes are durable."""
        if self._next("sync"):
            node = self._open[fd]
            node.durable = bytes(node.seen)

    def close(self, fd: int) -> None:
        """As the real one; no step, as nothing on the disk changes."""
        self._open.pop(fd, None)
        super().close(fd)

    def open(self, path: Path) -> tuple[int, int]:
        """As the real one; remembers the file for `sync`."""
        if self.stopped:
            raise PowerCut
        fd, size = super().open(path)
        self._open[fd] = self._node(path)
        return fd, size

    def rename(self, source: Path, target: Path) -> None:
        """As the real one; that one name is gone and the other there is in the cache."""
        self._next("rename")
        node = self._node(source)
        super().rename(source, target)
        self.seen[source.parent].pop(source.name, None)
        self.seen[target.parent][target.name] = node

    def remove(self, path: Path) -> None:
        """As the real one; the name is gone from the cache."""
        self._next("remove")
        super().remove(path)
        self.seen[path.parent].pop(path.name, None)

    def sync_folder(self, path: Path) -> None:
        """The folder's names are durable."""
        if self._next("sync_folder"):
            self.durable[path] = dict(self.seen[path])

    def commit(self, database: sqlite3.Connection) -> None:
        """A real commit; SQLite has synchronised it when it returns."""
        if self._next("commit"):
            super().commit(database)
        if self.stopped:
            raise PowerCut

    def _node(self, path: Path) -> Node:
        node = self.seen[path.parent].get(path.name)
        if not isinstance(node, Node):
            # The catalogue's own files, which SQLite writes.
            content = path.read_bytes()
            node = Node(bytearray(content), content)
        return node

    def image(self, target: Path, loss: Loss, *, catalogue: bool = True, log_bytes: int | None = None) -> SimulatedDisk:
        """Lays out what is left in another folder, and answers it as a disk on which nothing is under way.

        Args:
            target: An absent folder.
            loss: What the loss does.
            catalogue: The catalogue is left too.
            log_bytes: So much of SQLite's log is left; None is all.
        """
        target.mkdir()
        left = SimulatedDisk(target)
        self._lay_out(self.base, left, target, loss)
        for root in [path for path in self.base.iterdir() if (target / path.name).is_dir()]:
            for path in root.glob("catalogue.sqlite*") if catalogue else ():
                if path.suffix != ".sqlite-shm":
                    shutil.copyfile(path, target / root.name / path.name)
            log = target / root.name / "catalogue.sqlite-wal"
            if log_bytes is not None and log.exists():
                log.write_bytes(log.read_bytes()[:log_bytes])
        return left

    def _lay_out(self, folder: Path, left: SimulatedDisk, target: Path, loss: Loss) -> None:
        for name, node in loss.names(self.seen[folder], self.durable[folder]).items():
            path = target / name
            if isinstance(node, Path):
                path.mkdir()
                left.seen[path], left.durable[path] = {}, {}
                self._lay_out(node, left, path, loss)
                left.seen[target][name] = path
                if name in self.durable[folder]:
                    left.durable[target][name] = path
            else:
                kept = loss.content(bytes(node.seen), node.durable)
                path.write_bytes(kept)
                copy = Node(bytearray(kept), kept if node.durable is not None else None)
                left.seen[target][name] = copy
                if name in self.durable[folder]:
                    left.durable[target][name] = copy
        for name, node in self.durable[folder].items():
            # A name that was removed and whose removal was not synchronised can still come back.
            if name not in left.seen[target] and isinstance(node, Node):
                left.durable[target][name] = Node(bytearray(node.durable or b""), node.durable)
