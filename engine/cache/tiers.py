"""Segments between the tiers: demoted, spilled, brought back, given up; each move in steps of the form machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.manifest import members_digest
from hitproof.engine.cache.slot import IDENTITY, Entry, Slot
from hitproof.engine.cache.transfer import load_rows, read_stored, save_rows
from hitproof.engine.store import Receipt, Store
from hitproof.spec.errors import InternalError
from hitproof.spec.facts import Value
from hitproof.spec.memory import Extent, HostRows

__all__ = ["Tiers"]


@dataclass(frozen=True, slots=True)
class _Label:
    key: str | None
    group: str
    facts: Mapping[str, Value]


class Tiers:
    """Moves segments between device, host and disk.

    Args:
        core: The manager's state.
        host_bytes: Bytes of host memory for demoted segments; 0 for no host tier.
        disk: The store below it.
    """

    def __init__(self, core: Core, host_bytes: int, disk: Store | None) -> None:
        self._core, self._disk = core, disk
        self.host_capacity, self.host_used = host_bytes, 0
        self.host_recent: dict[Slot, None] = {}
        """Segments whose bytes lie in host memory, the longest unused first."""
        self.on_disk: dict[str, Slot] = {}

    def demote(self, slot: Slot, to: str = "host") -> bool:
        """Copy a segment's bytes to slower storage and free its device blocks.

        Args:
            to: `host` or `disk`.

        Returns:
            False, with the segment as it was, where it is held by somebody, or the bytes could not be copied.
        """
        core = self._core
        core.at("demote_begin")
        with core.lock:
            source, incarnation = slot.extent, slot.incarnation
            if source is None or slot.owner is not None or slot.suspect or not core.possible(slot, "demote_begin"):
                return False
            size = core.memory.shape(slot.group.id).payload_bytes(source.rows)
            if to == "host" and self.host_used + size > self.host_capacity:
                return False
            if not core.fire(slot, "demote_begin", {"bound_for": to}):
                return False
            if to == "host":
                self.host_used += size
            label = self._label(slot)
        host = core.memory.host(slot.group.id, source.rows)
        done = save_rows(core.memory, source, host, core.at).done and (to != "disk" or self._store(label, host))
        core.at("demote_end" if done else "demote_failed")
        with core.lock:
            # Nothing happens to what is moving but the two ends of the move.
            if slot.incarnation != incarnation or slot.facts.form != "moving":
                raise InternalError(f"{slot} was changed on its way to '{to}'")
            if to == "host" and not done:
                self.host_used -= size
            if not done:
                core.fire(slot, "demote_failed")
                return False
            core.fire(slot, "demote_end")
            if to == "host":
                slot.host = host
                self.host_recent[slot] = None
            else:
                self.is_on_disk(slot)
            self._below(slot)
        return True

    def spill(self, slot: Slot) -> bool:
        """Move a demoted segment from host memory to the disk; False, and no change, where it cannot be."""
        core = self._core
        with core.lock:
            host, incarnation, epoch = slot.host, slot.incarnation, slot.facts.epoch
            if host is None or self._disk is None or slot.suspect:
                return False
            label = self._label(slot)
        if not self._store(label, host):
            return False
        core.at("spill")
        with core.lock:
            same = slot.incarnation == incarnation and slot.facts.epoch == epoch and slot.host is host
            if not same or not core.possible(slot, "spill") or not core.fire(slot, "spill"):
                return False
            self._leave_host(slot)
            self.is_on_disk(slot)
        return True

    def promote(self, slot: Slot) -> bool:
        """Bring a demoted segment back before anybody asks for it; False, with the segment as it was, where it cannot
        be. Bytes that arrive and are not those that were recorded are set apart.
        """
        core = self._core
        core.at("promote_begin")
        with core.lock:
            if slot.suspect or slot.owner is not None or not core.possible(slot, "promote_begin"):
                return False
            rows = slot.rows
            columns = core.columns[slot.group.id]
            landing = columns.take(core.memory.shape(slot.group.id).blocks_for(rows), slot.number)
            if landing is None:
                return False
            if not core.fire(slot, "promote_begin"):
                columns.give_back(landing[0])
                return False
            target, host, stored = Extent(slot.group.id, landing[0], rows), slot.host, slot.stored
        why = ""
        if host is None and stored is not None and self._disk is not None:
            host = core.memory.host(slot.group.id, rows)
            why = read_stored(self._disk, stored, core.memory, host, core.at)
        if host is None:
            why = "its bytes are in no tier"
        arrived = not why and host is not None and load_rows(core.memory, host, target, core.at).done
        measured = core.memory.fingerprint(target) if arrived else None
        core.at("promote_end" if arrived else "promote_failed")
        with core.lock:
            if not arrived:
                columns.give_back(target.blocks)
                core.fire(slot, "promote_failed")
                return False
            slot.extent, slot.serials = target, landing[1]
            core.map(slot)
            stride = core.memory.shape(slot.group.id).stride
            placed = {"address": core.address(slot), "offset": 0, "stride": stride, "measured": measured}
            core.fire(slot, "promote_end", placed)
            self._leave_host(slot)
            self._leave_disk(slot)
            if measured != slot.facts.recorded:
                slot.suspect = "quarantine: torn"
        return True

    def evict(self, slot: Slot, *, at: bool = True) -> bool:
        """Give a segment up; False, with the segment as it was, where somebody holds it."""
        core = self._core
        if at:
            core.at("evict")
        with core.lock:
            if slot.owner is not None or not core.possible(slot, "evict"):
                return False
            return self._gone(slot, "evict")

    def quarantine(self, slot: Slot) -> bool:
        """Set bytes under suspicion apart: no look-up finds them any more. They keep their blocks until `discard`."""
        core = self._core
        core.at("quarantine")
        with core.lock:
            if slot.owner is not None or not core.possible(slot, "quarantine"):
                return False
            done = core.fire(slot, "quarantine")
            if done and slot.entry is not None and slot in slot.entry.members:
                slot.entry.members.remove(slot)
            return done

    def discard(self, slot: Slot) -> bool:
        """Give up what was set apart."""
        core = self._core
        core.at("discard")
        with core.lock:
            return core.possible(slot, "discard") and self._gone(slot, "discard")

    def write_manifest(self, entry: Entry) -> None:
        """Tell anew what of an entry lies in slower storage; the lock is held."""
        core, earlier = self._core, entry.manifest
        entry.manifest = None
        if earlier is not None and not self.evict(earlier, at=False):
            earlier.suspect = "purge: superseded"
        below = [slot for slot, incarnation in entry.below if slot.incarnation == incarnation]
        if not below or core.manifests is None:
            return
        of = max(below, key=lambda slot: slot.facts.end).facts
        identity: dict[str, Value] = {name: getattr(of, name) for name in IDENTITY}
        made = core.allocate(core.manifests, 0, None, start=0, matched=of.end, **identity)
        if made is None:
            return
        digest = members_digest(entry)
        made.entry, entry.manifest = entry, made
        core.fire(made, "commit", {"end": of.end, "manifest_digest": digest, "members_digest": digest})
        core.index.file(made, entry.keys)

    def lost(self, keys: tuple[str, ...]) -> None:
        """Segments that the disk gave up for others; the lock is held."""
        for key in keys:
            slot = self.on_disk.get(key)
            if slot is not None and not self.evict(slot, at=False):
                slot.suspect = "purge: lost by the disk"

    def is_on_disk(self, slot: Slot) -> None:
        """A segment's bytes are on the disk under its key; the lock is held."""
        key = slot.disk_key
        if key is None:
            return
        earlier = self.on_disk.get(key)
        # Its file was replaced by this segment's; who still holds it finds other bytes than recorded, or equal ones.
        if earlier is not None and earlier is not slot and not self.evict(earlier, at=False):
            earlier.suspect = "purge: superseded"
        slot.stored = key
        self.on_disk[key] = slot

    def check_host(self) -> int:
        """Bytes of host memory that segments hold; for integrity checks."""
        return sum(slot.host.nbytes for slot in self.host_recent if slot.host is not None)

    def _label(self, slot: Slot) -> _Label:
        """What its file would say of a segment; the lock is held, so it is said of this segment and of no later one."""
        facts = {name: getattr(slot.facts, name) for name in slot.group.facts}
        return _Label(slot.disk_key, slot.group.id, {**facts, "form": "demoted", "tier": "disk"})

    def _store(self, label: _Label, host: HostRows) -> bool:
        """Put a segment on the disk; nobody sees it there before its event."""
        core = self._core
        if self._disk is None or label.key is None:
            return False
        core.at("store")
        answer = self._disk.put(label.key, label.group, label.facts, core.memory.payload(host))
        with core.lock:
            self.lost(answer.evicted)
        return isinstance(answer, Receipt)

    def _leave_host(self, slot: Slot) -> None:
        if slot.host is not None:
            self.host_used -= slot.host.nbytes
            self.host_recent.pop(slot, None)
            slot.host = None

    def _leave_disk(self, slot: Slot) -> None:
        """The manager forgets a file; the store keeps it until its room is needed."""
        if slot.stored is not None and self.on_disk.get(slot.stored) is slot:
            del self.on_disk[slot.stored]
        slot.stored = None

    def _below(self, slot: Slot) -> None:
        entry = slot.entry
        if entry is not None:
            entry.below = [(one, n) for one, n in entry.below if one is not slot]
            entry.below.append((slot, slot.incarnation))
            self.write_manifest(entry)

    def _gone(self, slot: Slot, trigger: str) -> bool:
        """Let a segment be discarded, and forget its bytes in every tier; the lock is held."""
        core, entry = self._core, slot.entry
        host, stored = slot.host, slot.stored
        number = slot.incarnation
        if not core.fire(slot, trigger):
            return False
        self.host_recent.pop(slot, None)
        if host is not None:
            self.host_used -= host.nbytes
        if stored is not None and self.on_disk.get(stored) is slot:
            del self.on_disk[stored]
        if entry is not None:
            if slot in entry.members:
                entry.members.remove(slot)
            if entry.manifest is slot:
                entry.manifest = None
            elif (slot, number) in entry.below:
                entry.below.remove((slot, number))
                self.write_manifest(entry)
        return True
