"""Publication: private copies take the place of what they mend, all in one step, and the lease is taken anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Guarded
from hitproof.engine.cache.look import Found, Piece, view_again
from hitproof.engine.cache.repairs import Private
from hitproof.engine.cache.slot import Slot
from hitproof.engine.cache.tiers import Tiers
from hitproof.engine.decide import Engine
from hitproof.engine.keys import segment_key
from hitproof.engine.recovery import Recovered
from hitproof.engine.state import Resolved
from hitproof.spec.errors import InternalError
from hitproof.spec.facts import Value
from hitproof.spec.rows import is_state

__all__ = ["Final", "Publishing"]

_SPAN = ("end", "marks", "position", "filed")


@dataclass(frozen=True, slots=True)
class Final:
    """What a hold rests on.

    Args:
        lease: Held on all of it.
        views: By group, the segments that the decided length reads, with the facts that were judged.
        private: Copies that nobody else may find, to be given up with the hold.
    """

    lease: Guarded
    views: Mapping[str, tuple[tuple[Any, Slot], ...]]
    private: tuple[Slot, ...]


class Publishing:
    """Puts copies in place.

    Args:
        core: The manager's state.
        engine: Judges what was published.
        tiers: Gives up what was replaced.
    """

    def __init__(self, core: Core, engine: Engine, tiers: Tiers) -> None:
        self._core, self._engine, self._tiers = core, engine, tiers

    def publish(self, private: Private, state: Resolved, ended: Recovered) -> Final | None:
        """Publish the copies of a recovery and lease what is read now.

        Returns:
            None, with nothing published, where what was checked has moved, or is not clean as it would be published.
        """
        core, before = self._core, ended.lease
        if before is None:
            raise InternalError("a recovery that is used has a lease")
        if not ended.copies:
            return self._as_found(private.found, state, ended, before)
        keys = {place: self._keys(private, place, facts) for place, facts in ended.copies.items()}
        self._rename_generations(private, ended)
        core.at("publish")
        with core.lock:
            if not before.confirm():
                before.release()
                return None
            final = self._with_copies(private, ended)
            shown = self._shown(ended, final)
            outcome = self._engine.judge.outcome(shown, self._engine.judge.nothing(), ended.usable)
            if not outcome.clean or outcome.steps:
                before.release()
                return None
            used = {
                group.id: tuple(
                    (shown.pieces[group.id][index], final.pieces[group.id][index].slot)
                    for index, *_ in outcome.used[group.index]
                    if index >= 0
                )
                for group in self._engine.judge.groups
            }
            kept = []
            for place, facts in ended.copies.items():
                if not self._settle(private, place, facts, keys[place]):
                    kept.append(private.copies[place])
            lease = Guarded(core, (piece.slot for pieces in final.pieces.values() for piece in pieces))
            before.release()
            for place in ended.copies:
                self._replace(private, place)
            for slot in dict.fromkeys(slot for views in used.values() for _, slot in views):
                core.touch(slot)
            private.copies.clear()
            return Final(lease, used, tuple(kept))

    def _rename_generations(self, private: Private, ended: Recovered) -> None:
        """A copy has the generation of the slot that it lies in; what leads to its rows is told that one."""
        groups = self._core.groups
        for (group, _), facts in ended.copies.items():
            peer = groups[group].peers.get("kv")
            for (other, index), kv in ended.copies.items():
                slot = private.copies.get((other, index))
                if slot is not None and other == peer and facts.kv_generation == kv.generation:
                    facts.kv_generation = slot.facts.generation
                    break
        for place, facts in ended.copies.items():
            slot = private.copies.get(place)
            if slot is not None:
                for name in ("generation", "written_generation", "mapped_generation", "address", "pool_epoch"):
                    setattr(facts, name, getattr(slot.facts, name))

    def _as_found(self, found: Found, state: Resolved, ended: Recovered, lease: Any) -> Final:
        """What was looked up is clean as it is; the lease that was confirmed holds on."""
        judge, outcome = self._engine.judge, ended.outlook
        if outcome is None:
            raise InternalError("a recovery that is used knows what is read")
        used = {
            group.id: tuple(
                (state.pieces[group.id][index], found.pieces[group.id][index].slot)
                for index, *_ in outcome.used[group.index]
                if index >= 0
            )
            for group in judge.groups
        }
        with self._core.lock:
            for slot in dict.fromkeys(slot for views in used.values() for _, slot in views):
                self._core.touch(slot)
        return Final(lease, used, ())

    def _with_copies(self, private: Private, ended: Recovered) -> Found:
        """What was found, with copies in the place of what they mend."""
        found = private.found
        pieces = {group: list(one) for group, one in found.pieces.items()}
        for (group, index), facts in ended.copies.items():
            slot = private.copies.get((group, index))
            if slot is None:
                continue
            piece = Piece(slot, slot.incarnation, facts.end if facts.end is not None else found.matched)
            if index >= 0:
                pieces[group][index] = piece
            else:
                pieces[group].append(piece)
        return Found(found.prompt, found.matched, {group: tuple(one) for group, one in pieces.items()})

    def _shown(self, ended: Recovered, final: Found) -> Resolved:
        """Everything as it is now, and the copies as they will be once they are published."""
        shown = view_again(self._core, final)
        pieces = {group: list(views) for group, views in shown.pieces.items()}
        for (group, index), facts in ended.copies.items():
            place = index if index >= 0 else len(pieces[group]) - 1
            pieces[group][place] = facts
        return Resolved(shown.request, shown.runtime, shown.kernels, pieces, shown.matched)

    def _settle(self, private: Private, place: tuple[str, int], facts: Any, keys: tuple[Any, ...]) -> bool:
        """Let one copy become what it was made as; False where it stays private, since it is not exact."""
        core, slot = self._core, private.copies.get(place)
        if slot is None:
            # The bytes stayed where they were, and were measured.
            old = private.found.pieces[place[0]][place[1]].slot
            core.fire(old, "measure", {"measured": facts.measured})
            return True
        if facts.exactness != "exact":
            return False
        old_slot = private.found.pieces[place[0]][place[1]].slot if place[1] >= 0 else None
        told: dict[str, Value] = {name: getattr(facts, name) for name in slot.group.facts}
        if old_slot is not None and place in private.whole:
            told |= {name: getattr(old_slot.facts, name) for name in _SPAN if name in slot.group.facts}
        told["recorded"] = facts.measured if slot.extent is not None else facts.recorded
        if not core.fire(slot, "commit", told):
            raise InternalError(f"{slot} refuses to be committed")
        slot.owner = None
        if old_slot is not None and place in private.whole:
            slot.disk_key = old_slot.disk_key
        elif _shared(facts) == facts.end:
            slot.disk_key = segment_key(slot.group, "disk", slot.facts, private.found.prompt.digest)
        slot.entry = None if old_slot is None else old_slot.entry
        core.index.file(slot, keys)
        return True

    def _replace(self, private: Private, place: tuple[str, int]) -> None:
        """What a published copy replaces is found no more, and goes once nobody holds it."""
        copy = private.copies.get(place)
        if copy is None or place[1] < 0 or copy.owner is not None:
            return
        old = private.found.pieces[place[0]][place[1]].slot
        entry = old.entry
        if entry is not None:
            entry.members = [copy if one is old else one for one in entry.members]
            old.entry = None
            left = [(one, number) for one, number in entry.below if one is not old]
            if len(left) < len(entry.below):
                entry.below = left
                self._tiers.write_manifest(entry)
        self._core.index.clear(old)
        if not old.suspect and not self._tiers.evict(old, at=False):
            old.suspect = "purge: superseded"

    def _keys(self, private: Private, place: tuple[str, int], facts: Any) -> tuple[Any, ...]:
        """The keys of a copy: those of the segment that it is a whole copy of, else those of its own span.

        Rows beyond what the prompt shares with the segment that was copied are another prompt's, and get no key of this
        one.
        """
        if place in private.whole:
            return private.found.pieces[place[0]][place[1]].slot.keys
        if facts.start is None or facts.end is None:
            return ()
        inner = not is_state(self._core.groups[place[0]])
        shared = _shared(facts)
        if shared <= facts.start or (shared < facts.end and not inner):
            return ()
        return self._core.index.keys(place[0], private.found.prompt, facts.start, shared, inner=inner)


def _shared(facts: Any) -> Any:
    """Up to where the rows of a copy are those of the prompt that it was made for."""
    return facts.end if facts.matched is None or facts.end is None else min(facts.end, facts.matched)
