"""The look-up: from a prompt to views of the segments on its path, in the order in which the rules read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.manifest import MANIFEST, members_digest
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import INVISIBLE, Slot
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup

__all__ = ["Found", "Piece", "look", "view_again"]

_Candidate = tuple[bool, bool, int, int, int, Slot, int | None, int]
"""Away, unmeasured, less agreed, older, number, the segment, where it begins, up to where it is of use."""
_END = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment as a look-up found it.

    Args:
        slot: The segment.
        incarnation: Which one was found; the slot may be taken for another later.
        agreed: Tokens up to which it and the prompt are known to agree.
    """

    slot: Slot
    incarnation: int
    agreed: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a look-up found.

    Args:
        prompt: Who asked.
        matched: The deepest length at which a segment of any group is known to agree with the prompt.
        pieces: Segments of each group in token order.
    """

    prompt: Prompt
    matched: int
    pieces: Mapping[str, tuple[Piece, ...]]

    def slots(self) -> Iterable[Slot]:
        """All segments, group by group."""
        return (piece.slot for pieces in self.pieces.values() for piece in pieces)


def look(core: Core, prompt: Prompt) -> Found:
    """Find the segments on a prompt's path; the lock is held.

    What is pending, moving or set apart is invisible. Of segments that overlap those that lie on the device come first,
    then those that reach further. A gap stays a gap, for a check to fail at.
    """
    matched, agreed = core.index.find(prompt)
    by_group: dict[str, list[_Candidate]] = {group: [] for group in core.groups}
    for slot, end in agreed.items():
        if slot.facts.form not in INVISIBLE and not slot.suspect:
            by_group[slot.group.id].append(_candidate(slot, end))
    pieces = {group: tuple(_in_order(core, group, found)) for group, found in by_group.items()}
    return Found(prompt, matched, pieces)


def view_again(core: Core, found: Found) -> Resolved:
    """Read all that was found, as it is now; the lock is held.

    The facts are copies, so that a decision reads one moment and needs no lock. What the prompt does not share of a
    segment is cut off its view. A slot that was taken for another segment meanwhile shows a discarded one.
    """
    now = core.clock()
    views: dict[str, tuple[Any, ...]] = {}
    for group, pieces in found.pieces.items():
        shown = [_view(core, piece, found.matched, now) for piece in pieces]
        if pieces and core.groups[group].object == MANIFEST:
            _tell_members(pieces, shown)
        views[group] = tuple(shown)
    return Resolved(found.prompt.request, core.runtime.copy(), dict(core.kernels), views, found.matched)


def _candidate(slot: Slot, agreed: int) -> _Candidate:
    """A segment on the path; of two the smaller is preferred.

    Those come first that lie on the device, whole and measured; then the further and the younger. Of equal ones those
    of the youngest entry come first in every group, so that what was written together, as an index with its entries,
    is found together.
    """
    facts, entry = slot.facts, slot.entry
    away = facts.tier != "device" or facts.form != slot.group.home
    unmeasured = facts.recorded is not None and facts.measured != facts.recorded
    number = 0 if entry is None else entry.number
    end = facts.end
    return away, unmeasured, -agreed, -number, -slot.number, slot, facts.start, agreed if agreed < end else end


def _in_order(core: Core, group: str, found: list[_Candidate]) -> Iterator[Piece]:
    """Of a span object a chain without needless overlap, of a point object one segment an end."""
    found.sort()
    if core.groups[group].rules.pieces == "point":
        by_end: dict[int, _Candidate] = {}
        for one in found:
            by_end.setdefault(one[-1], one)
        chosen = [by_end[end] for end in sorted(by_end)]
    else:
        chosen = _chain(found)
    return (Piece(slot, slot.incarnation, -less) for _, _, less, _, _, slot, *_ in chosen)


def _chain(ranked: list[_Candidate]) -> list[_Candidate]:
    chain: list[_Candidate] = []
    reached = -1
    # Each turn takes, of those that begin where the chain ends or before, the best that reaches on; else the next one.
    left = [(one[-2], one[-1], one) for one in ranked if one[-2] is not None]
    while True:
        left = [this for this in left if this[1] > reached]
        if not left:
            return chain
        touching = [this for this in left if this[0] <= max(reached, 0)]
        if touching:
            at_home = [this for this in touching if not this[2][0]]
            _, reached, best = max(at_home or touching, key=_END)
        else:
            _, reached, best = min(left, key=lambda this: (this[0], -this[1]))
        chain.append(best)


def _view(core: Core, piece: Piece, matched: int, now: float) -> Any:
    slot = piece.slot
    view = slot.facts.copy()
    if slot.incarnation != piece.incarnation:
        view.form, view.matched = "discarded", None
        return view
    names = core.groups[slot.group.id].facts
    view.matched = matched
    if view.end is not None and piece.agreed < view.end:
        if view.form == slot.group.home and slot.group.object != MANIFEST:
            _cut(view, piece.agreed, slot.group)
        else:
            view.matched = piece.agreed
    if "idle_us" in names:
        view.idle_us = max(0.0, (now - slot.used) * 1e6)
    if slot.extent is not None:
        columns = core.columns[slot.group.id]
        if not columns.current(slot.extent.blocks, slot.serials):
            view.generation += 1
        if slot.table != tuple(zip(slot.extent.blocks, slot.serials, strict=True)):
            view.mapped_generation = None
    return view


def _cut(view: Any, agreed: int, group: BoundGroup) -> None:
    """Leave the whole rows before `agreed`: they are what they were, since a sealed extent is not written."""
    end = agreed - agreed % int(group.constants.get("row_tokens", 1))
    if "position" in group.facts and view.position == view.end:
        view.position = end
    if view.marks is not None:
        view.marks = frozenset([mark for mark in view.marks if mark <= end])
    view.end = end


def _tell_members(pieces: tuple[Piece, ...], views: list[Any]) -> None:
    """A manifest tells of its own entry; one that is read at a length answers for all entries below it too."""
    said: list[str] = []
    found: list[str] = []
    for piece, view in zip(pieces, views, strict=True):
        entry = piece.slot.entry
        said.append(str(view.manifest_digest))
        found.append("" if entry is None else members_digest(entry))
        view.manifest_digest, view.members_digest = " ".join(said), " ".join(found)
