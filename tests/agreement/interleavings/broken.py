"""Engines broken on purpose: each lacks one thing that keeps a reader safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from hitproof.engine.cache import CacheManager
from hitproof.engine.cache.hold import Guarded, Hold
from hitproof.engine.cache.look import view_again
from hitproof.engine.cache.publishing import Publishing
from hitproof.engine.cache.recovering import Attempt
from hitproof.engine.lease import Lease
from hitproof.engine.table import _Writer
from tests.agreement.interleavings.world import table

__all__ = ["BROKEN", "Broken"]

Replaced = tuple[Any, str, Any]


def _intact(_: CacheManager) -> None:
    """Nothing is changed in the manager itself."""


@dataclass(frozen=True)
class Broken:
    """One engine mutant.

    Args:
        what: What it lacks, in words.
        replaced: Methods of the engine, each with what stands in its place.
        manager: Changes a manager before anybody uses it.
        cast: Who must take part for it to show.
        first: How the run begins.
    """

    what: str
    replaced: tuple[Replaced, ...] = ()
    manager: Callable[[CacheManager], None] = _intact
    cast: tuple[str, ...] = ("reader", "sender", "evict A")
    first: str = "home"

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The engine is broken meanwhile."""
        with ExitStack() as stack:
            for owner, name, instead in self.replaced:
                stack.enter_context(patch.object(owner, name, instead))
            table.cache_clear()
            stack.callback(table.cache_clear)
            yield


def _no_lock(manager: CacheManager) -> None:
    manager._core.lock = nullcontext(True)


_effects = _Writer._effects


def _without(word: str) -> Callable[[_Writer], list[str]]:
    """Effects of every event but those whose line has this word."""

    def left(self: _Writer) -> list[str]:
        return [line for line in _effects(self) if word not in line]

    return left


def _without_on_free(self: _Writer) -> list[str]:
    """Effects, and the epoch stays where blocks are freed."""
    lines = _effects(self)
    return [line for line in lines if not (self.transition.frees and "n_epoch" in line)]


def _read_first(self: Attempt) -> Any:
    """The segments are read, and only then held; others come in between."""
    core = self.core
    state = view_again(core, self.found)
    core.lock.__exit__(None, None, None)
    core.at("between")
    core.lock.__enter__()
    return Guarded(core, self.found.slots()), state


def _taken_bare(self: Guarded, core: Any, slots: Any) -> None:
    self._core = core
    self.lease = core.take_lease((slot.facts for slot in slots), core.leasing)


def _let_go(self: Lease, fence: Any, *, wait: bool) -> bool:
    self._held = False
    self._unpin()
    self._done = len(self._leasing.release)
    return True


def _twice(self: Lease) -> None:
    pinned, self._pinned = self._pinned, ()
    for segment in pinned:
        segment.pins = max(0, segment.pins - 2)


class _Believed:
    """A lease that is never asked whether it still holds."""

    def __init__(self, lease: Any) -> None:
        self._lease = lease

    def confirm(self) -> bool:
        """As if it did."""
        return True

    def release(self) -> None:
        """As before."""
        self._lease.release()


_publish = Publishing.publish


def _unconfirmed(self: Publishing, private: Any, state: Any, ended: Any) -> Any:
    if not ended.copies:
        return _publish(self, private, state, ended)
    return _publish(self, private, state, replace(ended, lease=_Believed(ended.lease)))


def _used_at_once(self: Hold) -> bool:
    self._core.at("confirm")
    return self._open


BROKEN = {
    "no lock": Broken("the lock around steps", manager=_no_lock),
    "leases without the lock": Broken(
        "the lock around calls of leases",
        (
            (Guarded, "__init__", _taken_bare),
            (Guarded, "confirm", lambda self: self.lease.confirm()),
            (Guarded, "begin_release", lambda self, fence=None: self.lease.begin_release(fence)),
        ),
    ),
    "no pin": Broken("the pin of a lease", ((Lease, "_pin", lambda self: None),)),
    "pins given back twice": Broken("the count of pins", ((Lease, "_unpin", _twice),)),
    "no fence": Broken("the wait for the device before pins are given back", ((Lease, "_go_on", _let_go),)),
    "used unconfirmed": Broken(
        "the recheck before the use", ((Hold, "confirm", _used_at_once),), cast=("reader", "spoiler")
    ),
    "published unconfirmed": Broken(
        "the recheck before the publication",
        ((Publishing, "publish", _unconfirmed),),
        cast=("reader", "promote B"),
        first="demoted",
    ),
    "nothing compared": Broken(
        "what a confirmation compares",
        ((Lease, "confirm", lambda self: True),),
        cast=("reader", "spoiler"),
    ),
    "no epoch": Broken("the growth of epochs", ((_Writer, "_effects", _without("n_epoch")),)),
    "no epoch on free": Broken(
        "the growth of epochs where blocks are freed", ((_Writer, "_effects", _without_on_free),)
    ),
    "read before held": Broken(
        "that what is checked is held when it is read", ((Attempt, "_read", _read_first),), cast=("reader", "evict A")
    ),
    "no mapping": Broken(
        "the generation of a page table entry that leads elsewhere",
        ((_Writer, "_effects", _without("mapped_generation")),),
        cast=("reader", "demote B", "promote B"),
    ),
    "pins not asked": Broken("the guard of events that want no pins", ((_Writer, "_guard", lambda self: []),)),
}
"""Each by its name; every one must be caught."""
