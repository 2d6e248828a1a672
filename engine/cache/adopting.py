"""What the disk held before this process began is taken in when a prompt asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import Entry
from hitproof.engine.cache.tiers import Tiers
from hitproof.engine.keys import request_key
from hitproof.engine.store import Store
from hitproof.spec.facts import Value
from hitproof.spec.rows import is_state, rows_of

__all__ = ["Adopting"]


@dataclass(frozen=True, slots=True)
class _Foreign:
    group: str
    start: int
    end: int


class Adopting:
    """Knows the segments on disk that no slot stands for yet.

    Labels are read once, at the start; a file tells its end and identity, and the key tells its tokens. So a prompt
    finds such a segment at its end, and at inner boundaries once somebody has asked for all of it.

    Args:
        core: The manager's state.
        tiers: Where adopted segments lie.
        disk: The store.
    """

    def __init__(self, core: Core, tiers: Tiers, disk: Store | None) -> None:
        self._core, self._tiers, self._disk = core, tiers, disk
        self._foreign: dict[str, _Foreign] = {}
        for entry in () if disk is None else disk.entries():
            facts = disk.facts(entry.key) if disk is not None else None
            if facts is not None and entry.group in core.groups:
                start, end = facts.get("start"), facts.get("end")
                if isinstance(start, int) and isinstance(end, int):
                    self._foreign[entry.key] = _Foreign(entry.group, start, end)
        self._ends = {(one.group, one.end) for one in self._foreign.values()}

    def adopt(self, prompt: Prompt) -> int:
        """Take in what lies on a prompt's path; how many segments."""
        # Nothing is left on disk by others but what was there at the start, so one search a prompt finds all of it.
        if not self._foreign or self._disk is None or prompt.adopted is self:
            return 0
        core, entry = self._core, Entry(0)
        for group, end in sorted(self._ends):
            if end > prompt.length:
                continue
            key = request_key(core.groups[group], "disk", prompt.request, end, prompt.digest)
            if key is None or key not in self._foreign:
                continue
            facts = self._disk.facts(key)
            core.at("adopt")
            with core.lock:
                known = self._foreign.pop(key, None)
                if known is None or facts is None:
                    continue
                self._take_in(prompt, key, known, facts, entry)
        prompt.adopted = self
        if entry.members:
            with core.lock:
                entry.keys = core.manifest_keys(prompt)
                self._tiers.write_manifest(entry)
        return len(entry.members)

    def _take_in(self, prompt: Prompt, key: str, known: _Foreign, facts: Mapping[str, Value], entry: Entry) -> None:
        """State a slot's facts as the file tells them; place and life are those of a demoted segment on disk."""
        core = self._core
        slot = core.take_slot(known.group)
        place: dict[str, Value] = {"form": "demoted", "tier": "disk", "bound_for": "disk", "published": True}
        core.restore(slot, {**facts, **place, "measured": None})
        slot.rows = rows_of(core.groups[known.group], known.start, known.end)
        slot.disk_key, slot.entry = key, entry
        self._tiers.is_on_disk(slot)
        inner = not is_state(core.groups[known.group])
        core.index.file(slot, core.index.keys(known.group, prompt, known.start, known.end, inner=inner))
        entry.members.append(slot)
        entry.below.append((slot, slot.incarnation))
