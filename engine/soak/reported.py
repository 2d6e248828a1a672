"""What killed writers reported of a store, and what must therefore be in it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from hitproof.engine.soak.killed_writer import mark_of
from hitproof.engine.store import Found, Store
from hitproof.spec.errors import InternalError

__all__ = ["Reported"]

_LARGEST_HEAD = 16_384
"""Bytes; no label of a writer is as long."""


class Reported:
    """A plain list of what was reported stored, and of the call that was cut.

    Args:
        capacity: Of the store, in bytes.

    Attributes:
        counts: How many calls were reported, and how cut ones ended.
        faults: What was promised and is not so, in words.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._held: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """Mark and size by key, the longest unused first."""
        self._cut: Sequence[str] = ()

    def hear(self, words: Sequence[str]) -> None:
        """Notes one line of a writer."""
        what, *rest = words
        if what in ("put", "delete", "get"):
            self._cut = words
        elif what == "failed":
            self.faults.append(f"a writer ended by itself: {' '.join(rest)}")
        elif what in ("stored", "unstored", "deleted", "got"):
            self._end(what, *rest)
            self.counts[what] += 1
            self._cut = ()

    def _end(self, what: str, key: str, *rest: str) -> None:
        """Notes how a call ended."""
        if what == "stored":
            mark, size, *evicted = rest
            if evicted != (room := self._room(key, int(size))):
                self.faults.append(f"a put of {key} evicted {evicted}, its room takes {room}")
            self._evict(evicted)
            self._held.pop(key, None)
            self._held[key] = (mark, int(size))
        elif what == "unstored":
            reason, *evicted = rest
            if reason in ("pinned", "too_large"):
                self.faults.append(f"a put of {key} was refused as {reason}, and was not")
            self._judge_gone(evicted)
            self._evict(evicted)
        elif what == "deleted":
            self._leave(key)
        else:
            if rest[0] != self._mark(key):
                self.faults.append(f"a writer got {rest[0]} for {key}, which had {self._mark(key)}")
            if key in self._held:
                self._held.move_to_end(key)

    def judge(self, store: Store) -> None:
        """Compares a store that was opened after a kill with what was reported; what it has counts from then on."""
        opened, faults = store.opened, self.faults
        faults += [f"{name} was set aside: {reason}" for name, reason in opened.quarantined]
        if opened.evicted or opened.rebuilt:
            faults.append("a start lost the catalogue" if opened.rebuilt else f"a start evicted {opened.evicted}")
        for name, names in (("swept", opened.swept), ("adopted", opened.adopted), ("missing", opened.missing)):
            self.counts[f"start {name}"] += len(names)
        try:
            store.check_integrity()
        except InternalError as error:
            faults.append(f"the store does not add up: {error}")
        found, key = self._read(store), self._cut[1] if self._cut else ""
        for other, (mark, _) in found.items():
            if other != key and mark != self._mark(other):
                faults.append(f"{other} has {mark}, reported was {self._mark(other)}")
        gone = [other for other in self._held if other not in found and other != key]
        self._judge_gone(gone)
        self.counts["cut put had evicted"] += len(gone)
        if self._cut:
            self._judge_cut(found[key][0] if key in found else None)
        self._held, self._cut = found, ()

    def _read(self, store: Store) -> OrderedDict[str, tuple[str, int]]:
        found: OrderedDict[str, tuple[str, int]] = OrderedDict()
        for entry in store.entries():
            answer = store.get(entry.key)
            mark = mark_of(answer.facts, answer.payload) if isinstance(answer, Found) else answer.reason
            found[entry.key] = (mark, entry.bytes)
        return found

    def _judge_gone(self, gone: Sequence[str]) -> None:
        """A put that was cut or failed may have made room, or begun to; nothing else takes what was reported stored."""
        room: list[str] = []
        if self._cut and self._cut[0] == "put":
            room = self._room(self._cut[1], int(self._cut[3]) + _LARGEST_HEAD)
        if gone != room[: len(gone)]:
            self.faults.append(f"lost, though reported stored: {', '.join(gone)}")

    def _room(self, key: str, need: int) -> list[str]:
        """What leaves for so many bytes under a key: the longest unused of the others, one by one until they fit."""
        others = [(other, size) for other, (_, size) in self._held.items() if other != key]
        excess, leaving = sum(size for _, size in others) + need - self._capacity, list[str]()
        for other, size in others:
            if excess > 0:
                leaving.append(other)
                excess -= size
        return leaving

    def _judge_cut(self, mark: str | None) -> None:
        what, key, *rest = self._cut
        before = self._mark(key)
        after = before if what == "get" else rest[0] if rest else None
        if mark not in (before, after):
            self.faults.append(f"{key} has {mark} after a cut {what}, and had {before}")
        elif what != "get":
            self.counts[f"cut {what} " + ("done" if mark == after else "undone")] += 1

    def _evict(self, keys: Sequence[str]) -> None:
        self.counts["evicted"] += len(keys)
        for key in keys:
            self._leave(key)

    def _leave(self, key: str) -> None:
        if self._held.pop(key, None) is None:
            self.faults.append(f"{key} was reported gone and had not been stored")

    def _mark(self, key: str) -> str | None:
        return self._held[key][0] if key in self._held else None
