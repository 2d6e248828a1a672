"""Files as a disk has them: what programs see of each, and what would be left of it without power."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

__all__ = ["Folder", "Node"]

PAGE = 4096
"""Bytes that are written together or not at all."""


@dataclass(eq=False, slots=True)
class Node:
    """A file's bytes: in the page cache, and on the medium.

    Args:
        path: The name that it was made under; tells whose it is.
        seen: What a program reads.
        media: What was synchronised; None where nothing was.
        phantom: Ranges that the medium will not get.
        spoiled: A synchronisation went wrong; the cache takes all pages for clean, so later ones do nothing.
    """

    path: str
    seen: bytearray = field(default_factory=bytearray)
    media: bytearray | None = None
    phantom: list[tuple[int, int]] = field(default_factory=list)
    spoiled: bool = False

    def sync(self) -> None:
        """Brings the cache to the medium, as far as the medium takes it."""
        if self.spoiled:
            return
        self.media = bytearray(self.seen)
        for start, end in self.phantom:
            self.media[start:end] = bytes(end - start)

    def overwrite(self, start: int, content: bytes) -> None:
        """Bytes of another file land here, as far as this one reaches, and the cache is dropped."""
        if self.media is not None and start < len(self.media):
            self.media[start : start + len(content)] = content[: len(self.media) - start]
            self.cool()

    def cool(self) -> None:
        """Drops the cache of what was synchronised, so that the medium is read."""
        if self.media is not None and len(self.media) == len(self.seen):
            self.seen[:] = self.media

    def survivor(self, draw: Random, *, torn: bool) -> Node:
        """The file after a loss of power: what the medium has, or pages at random where it was never synchronised."""
        if self.media is not None:
            left = bytearray(self.media)
        elif torn:
            left = bytearray(self.seen[: draw.randint(0, len(self.seen))])
            for start in range(0, len(left), PAGE):
                if draw.random() < 0.5:
                    end = min(start + PAGE, len(left))
                    left[start:end] = bytes(end - start)
        else:
            left = bytearray()
        return Node(self.path, left, bytearray(left))


@dataclass(eq=False, slots=True)
class Folder:
    """Names of a folder: as programs see them, and as they were synchronised."""

    seen: dict[str, Node | Folder] = field(default_factory=dict)
    durable: dict[str, Node | Folder] = field(default_factory=dict)

    def sync(self) -> None:
        """Makes the names durable."""
        self.durable = dict(self.seen)

    def changed(self) -> list[str]:
        """Names that are not durable as they are seen, sorted."""
        names = {*self.seen, *self.durable}
        return sorted(name for name in names if self.seen.get(name) is not self.durable.get(name))

    def survivor(self, draw: Random, *, torn: bool) -> Folder:
        """The folder after a loss of power.

        Args:
            draw: Decides what is left.
            torn: Of names that were not synchronised, any may be as before or as after; else all are as before.
        """
        return _survivor(self, draw, torn, {})


def _survivor(folder: Folder, draw: Random, torn: bool, known: dict[int, Node]) -> Folder:
    left = Folder()
    for name in sorted({*folder.seen, *folder.durable}):
        old, new = folder.durable.get(name), folder.seen.get(name)
        kept = draw.choice((old, new)) if torn and old is not new else old
        if isinstance(kept, Folder):
            left.seen[name] = _survivor(kept, draw, torn, known)
        elif isinstance(kept, Node):
            if id(kept) not in known:
                known[id(kept)] = kept.survivor(draw, torn=torn)
            left.seen[name] = known[id(kept)]
    # What is found after a loss is on the medium.
    left.sync()
    return left
