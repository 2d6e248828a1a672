"""A disk in memory that fails as disks do, and loses with the power what was not synchronised.

Bytes of segments are held as objects. The store's folders, its lock and its catalogue are real files, since SQLite
wants them; they should lie in memory too. A commit of SQLite is one step: it has happened or it has not.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hitproof.engine.soak.disk_faults import DiskFaults
from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.media import Folder, Node
from hitproof.engine.store import Files

__all__ = ["SimulatedDisk"]

_DESCRIPTORS = 1 << 30
"""Descriptors of simulated files begin here, so that none is taken for one of the system."""


@dataclass(eq=False, slots=True)
class _Open:
    node: Node
    at: int = 0


class SimulatedDisk(Files):
    """The disk below a folder, in which a store may make one of its own.

    Args:
        work: A real folder for what must be real; each life has a folder of its own in it.
        draw: Decides faults and losses.
        rates: How likely each fault is, as in `DISK_RATES`.
        told: Gets each fault's kind, and the digest of the key whose file is excused by it, or "".
        died: Called when the power fails at one of the disk's own steps.
    """

    def __init__(
        self,
        work: Path,
        draw: Random,
        rates: Mapping[str, float],
        told: Callable[[str, str], object],
        died: Callable[[], object] = lambda: None,
    ) -> None:
        self.faults = DiskFaults(draw, rates, told)
        self.calm = False
        self._work, self._died = work, died
        self._lives = 0
        self._top = Folder()
        self._begin()

    def _begin(self) -> None:
        """A new life, on what is left of the old one."""
        self.base = self._work / f"life-{self._lives}"
        self._lives += 1
        self.base.mkdir()
        self.dead = False
        self._left: int | None = None
        self._catalogue: dict[str, bytes] = {}
        self._open: dict[int, _Open] = {}
        self._next = _DESCRIPTORS
        self._folders: dict[str, Folder] = {}
        self._lay_out(self.base, self._top)

    def _lay_out(self, path: Path, folder: Folder) -> None:
        self._folders[str(path)] = folder
        for name, what in list(folder.seen.items()):
            if isinstance(what, Folder):
                (path / name).mkdir()
                self._lay_out(path / name, what)

    def fail_after(self, steps: int | None) -> None:
        """Lets the power fail at so many more steps that change the disk; None is not at all."""
        self._left = steps

    def die(self) -> None:
        """The process is gone: nothing changes the disk any more, and whoever tries is `Killed`."""
        if self.dead:
            return
        for path in sorted(self.base.glob("*/catalogue.sqlite*")):
            if path.suffix != ".sqlite-shm":
                self._catalogue[str(path.relative_to(self.base))] = path.read_bytes()
        self.dead = True

    def survive(self) -> Path:
        """Lays out in a new folder what a kill or a loss of power has left, and goes on; answers the folder."""
        self.die()
        faults, catalogue, old = self.faults, self._catalogue, self.base
        if faults.strikes("power_loss"):
            self._top = self._top.survivor(faults.draw, torn=faults.draw.random() < 0.7)
            if faults.strikes("catalogue_lost"):
                catalogue = {}
            for name, content in catalogue.items():
                if name.endswith("-wal") and content and faults.strikes("catalogue_torn"):
                    catalogue[name] = content[: -faults.draw.randint(1, min(len(content), 5000))]
        else:
            faults.tell("killed_process")
        self._begin()
        for name, content in catalogue.items():
            if (self.base / name).parent.is_dir():
                (self.base / name).write_bytes(content)
        shutil.rmtree(old)
        return self.base

    def _alive(self) -> None:
        if self.dead:
            raise Killed

    def _step(self) -> bool:
        """Counts a step that changes the disk; whether the power fails in it."""
        self._alive()
        if self._left is None:
            return False
        self._left -= 1
        return self._left <= 0

    def _cut(self) -> Killed:
        """The power fails now."""
        self.die()
        self._died()
        return Killed()

    def _strikes(self, kind: str, *hit: str) -> bool:
        return not self.calm and self.faults.strikes(kind, *hit)

    def _room(self, path: Path) -> None:
        if self._strikes("disk_full"):
            raise OSError(errno.ENOSPC, "no space left on device", self._short(path))

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self.base))

    def _folder(self, path: Path) -> Folder:
        found = self._folders.get(str(path))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such folder", self._short(path))
        return found

    def _node(self, path: Path) -> Node:
        node = self._folder(path.parent).seen.get(path.name)
        if not isinstance(node, Node):
            raise FileNotFoundError(errno.ENOENT, "no such file", self._short(path))
        return node

    def _descriptor(self, node: Node) -> int:
        self._next += 1
        self._open[self._next] = _Open(node)
        return self._next

    def make_folder(self, path: Path) -> None:
        """As the real one; the name is in the cache."""
        if self._step():
            raise self._cut()
        self._room(path)
        super().make_folder(path)
        made = self._folders[str(path)] = Folder()
        self._folder(path.parent).seen[path.name] = made

    def create(self, path: Path) -> int:
        """A file that did not exist; the name is in the cache."""
        if self._step():
            raise self._cut()
        self._room(path)
        names = self._folder(path.parent).seen
        if path.name in names:
            raise FileExistsError(errno.EEXIST, "there is one", self._short(path))
        node = names[path.name] = Node(path.name)
        return self._descriptor(node)

    def write(self, fd: int, content: memoryview) -> int:
        """Brings bytes to the cache, not always to the right file's."""
        cut = self._step()
        opened = self._open[fd]
        node, start = opened.node, opened.at
        if cut:
            node.seen += content[: self.faults.draw.randint(0, len(content))]
            raise self._cut()
        if self._strikes("disk_full"):
            raise OSError(errno.ENOSPC, "no space left on device", node.path)
        count = len(content)
        if count > 1 and self._strikes("short_write"):
            count = self.faults.draw.randint(1, count - 1)
        node.seen += content[:count]
        opened.at += count
        if self._strikes("phantom_write", node.path):
            node.phantom.append((start, start + count))
        if self._strikes("misdirected_write", node.path):
            node.phantom.append((start, start + count))
            victim = self._victim()
            if victim is not None:
                self.faults.excuse("misdirected_write", victim.path)
                victim.overwrite(start, bytes(content[:count]))
        return count

    def _victim(self) -> Node | None:
        """Some file that is on the medium."""
        nodes = (node for folder in self._folders.values() for node in folder.seen.values())
        found = [node for node in nodes if isinstance(node, Node) and node.media]
        return self.faults.draw.choice(found) if found else None

    def sync(self, fd: int) -> None:
        """Brings the file's bytes to the medium, or fails, or only says so."""
        if self._step():
            raise self._cut()
        node = self._open[fd].node
        if self._strikes("failed_sync", node.path):
            node.spoiled = True
            raise OSError(errno.EIO, "it could not be synchronised", node.path)
        if self._strikes("phantom_sync", node.path):
            node.spoiled = True
            return
        node.sync()

    def sync_folder(self, path: Path) -> None:
        """Makes the folder's names durable, or fails, or only says so."""
        if self._step():
            raise self._cut()
        folder = self._folder(path)
        changed = folder.changed()
        if self._strikes("failed_sync", *changed):
            raise OSError(errno.EIO, "it could not be synchronised", self._short(path))
        # A folder's own name must not be lost: all that is put below it later would be.
        files = all(isinstance(folder.seen.get(name, Node("")), Node) for name in changed)
        if changed and files and self._strikes("phantom_sync", *changed):
            return
        folder.sync()

    def close(self, fd: int) -> None:
        """Forgets a descriptor; nothing on the disk changes."""
        del self._open[fd]

    def open(self, path: Path) -> tuple[int, int]:
        """Opens a file, whose cache may have been dropped and whose medium may have changed meanwhile."""
        self._alive()
        node = self._node(path)
        if node.media and self._strikes("bit_rot", node.path):
            at = self.faults.draw.randrange(len(node.media))
            node.media[at] ^= 1 << self.faults.draw.randrange(8)
            node.cool()
        elif self._strikes("cold_cache"):
            node.cool()
        return self._descriptor(node), len(node.seen)

    def read(self, fd: int, into: memoryview) -> int:
        """Reads from the cache."""
        self._alive()
        opened = self._open[fd]
        if self._strikes("failed_read", opened.node.path):
            raise OSError(errno.EIO, "it could not be read", opened.node.path)
        part = opened.node.seen[opened.at : opened.at + len(into)]
        into[: len(part)] = part
        opened.at += len(part)
        return len(part)

    def rename(self, source: Path, target: Path) -> None:
        """As the real one; that one name is gone and the other there is in the cache."""
        if self._step():
            raise self._cut()
        names = self._folder(source.parent).seen
        if source.name in names:
            moved = names.pop(source.name)
        else:
            # A file of SQLite, which is real; only its name matters once it is set aside.
            os.rename(source, target)
            moved = Node(source.name, media=bytearray())
        self._folder(target.parent).seen[target.name] = moved

    def remove(self, path: Path) -> None:
        """As the real one; the name is gone from the cache."""
        if self._step():
            raise self._cut()
        self._node(path)
        del self._folder(path.parent).seen[path.name]

    def commit(self, database: sqlite3.Connection) -> None:
        """A real commit; it is on the disk when it returns."""
        if self._step():
            if self.faults.draw.random() < 0.5:
                super().commit(database)
            raise self._cut()
        if self._strikes("disk_full"):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        super().commit(database)

    def size(self, path: Path) -> int | None:
        """A file's size in bytes, None where a folder has the name."""
        self._alive()
        what = self._folder(path.parent).seen.get(path.name)
        if what is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", self._short(path))
        return len(what.seen) if isinstance(what, Node) else None

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, sorted."""
        self._alive()
        return sorted(self._folder(folder).seen)
