"""What all parts of the cache manager share: slots, blocks, index, the form machine, and the one lock around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any

from hitproof.engine.cache.columns import Columns
from hitproof.engine.cache.index import Index, Key
from hitproof.engine.cache.manifest import MANIFEST
from hitproof.engine.cache.points import At
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.slot import Slot
from hitproof.engine.decide import Engine
from hitproof.engine.event import EventContext
from hitproof.engine.invariants import pair_holds
from hitproof.engine.lease import Lease
from hitproof.engine.observe.observed import Fires, ObservedTable
from hitproof.engine.observe.observer import Observer
from hitproof.engine.table import TransitionTable
from hitproof.spec.bound import BoundGroup
from hitproof.spec.errors import InternalError, SchemaError
from hitproof.spec.facts import Value
from hitproof.spec.leasing import Leasing
from hitproof.spec.memory import Extent, Memory
from hitproof.spec.rulebook import Transition

__all__ = ["Core"]

NOTHING: Mapping[str, Value] = {}


class Core:
    """The state of one manager, and the only place where it changes.

    Methods are called while `lock` is held; none of them reads or writes bytes of segments.

    Args:
        engine: Decides, and knows the rulebook.
        memory: Bytes on the device and on the host.
        runtime: Run-time facts.
        kernels: Kernel contract of each group.
        unit: The hash unit, in tokens.
        clock: Seconds from some fixed moment on.
        at: Called between two steps.
        observer: Is told every event of the form machine.

    Raises:
        SchemaError: The rulebook does not say how leases are taken.
    """

    def __init__(
        self,
        engine: Engine,
        memory: Memory,
        runtime: Any,
        kernels: Mapping[str, Any],
        *,
        unit: int,
        clock: Callable[[], float],
        at: At,
        observer: Observer,
    ) -> None:
        bound = engine.bound
        if bound.rulebook.leasing is None:
            raise SchemaError(
                "the rulebook does not say how leases are taken", where=bound.rulebook.where, expected="leasing"
            )
        self.engine, self.bound, self.memory = engine, bound, memory
        self.leasing: Leasing = bound.rulebook.leasing
        self.runtime, self.kernels = runtime, dict(kernels)
        self.clock, self.at, self.observer = clock, at, observer
        self.lock: AbstractContextManager[bool] = RLock()
        self.take_lease: Callable[[Iterable[Any], Leasing], Lease] = Lease.take
        self.groups = {group.id: group for group in bound.groups}
        self.index = Index(bound, unit)
        self.manifests = next((group.id for group in bound.groups if group.object == MANIFEST), None)
        """The group of the records of what lies in slower storage; None where the model has none."""
        enums = bound.rulebook.enums
        self.columns = {
            group: Columns(memory.shape(group).blocks, enums["form"], enums["tier"]) for group in memory.groups()
        }
        self.slots: dict[str, list[Slot]] = {group.id: [] for group in bound.groups}
        self.recent: dict[str, dict[Slot, None]] = {group.id: {} for group in bound.groups}
        """Segments that hold something, by group, the longest unused first."""
        self._spare: dict[str, list[Slot]] = {group.id: [] for group in bound.groups}
        table = TransitionTable(bound)
        self._possible = frozenset(table.rows)
        self.table: Fires = ObservedTable(table, observer)
        self._rules: dict[tuple[str, str], Transition] = {}
        for group in bound.groups:
            for rule in group.transitions:
                self._rules.setdefault((group.id, rule.id), rule)
        self._number = 0
        self.draining: list[Callable[[], bool]] = []
        """Releases that wait for the device; each answers whether it is complete."""

    def take_slot(self, group: str) -> Slot:
        """A discarded slot of a group, for `allocate` or `share` to make something of."""
        if self._spare[group]:
            slot = self._spare[group].pop()
        else:
            self._number += 1
            facts = self.engine.types.segment_of(group, self._nothing(self.groups[group]))
            slot = Slot(self._number, self.groups[group], facts)
            self.slots[group].append(slot)
        slot.incarnation += 1
        slot.used = self.clock()
        self.recent[group][slot] = None
        return slot

    def restore(self, slot: Slot, values: Mapping[str, Value]) -> None:
        """State the facts of a slot as a tier told them, after a start; its epoch and generation go on."""
        for name, value in values.items():
            if name not in ("epoch", "pins", "generation", "written_generation", "mapped_generation"):
                setattr(slot.facts, name, value)
        slot.facts.epoch += 1
        slot.facts.generation += 1
        slot.facts.written_generation = slot.facts.generation
        slot.facts.mapped_generation = None

    def allocate(self, group: str, rows: int, owner: object, **arguments: Value) -> Slot | None:
        """Take blocks for so many rows, and a slot; `allocate` happens to it.

        Returns:
            The pending segment, or None, and no change, where the pool has too few free blocks.
        """
        slot = self.take_slot(group)
        slot.owner, slot.rows = owner, rows
        if not self.place(slot, rows):
            self._retire(slot)
            return None
        if not self.fire(slot, "allocate", {**arguments, "address": self.address(slot)}):
            raise InternalError(f"a discarded segment of group '{group}' refuses to be allocated")
        return slot

    def place(self, slot: Slot, rows: int) -> bool:
        """Give a segment new blocks for so many rows; False, and no change, where there are too few."""
        columns = self.columns.get(slot.group.id)
        if columns is None:
            return True
        per_block = self.memory.shape(slot.group.id).rows
        taken = columns.take(-(-rows // per_block), slot.number)
        if taken is None:
            return False
        slot.extent = Extent(slot.group.id, taken[0], rows)
        slot.serials = taken[1]
        self.map(slot)
        return True

    def map(self, slot: Slot) -> None:
        """Let the published page table lead to where the bytes are."""
        slot.table = () if slot.extent is None else tuple(zip(slot.extent.blocks, slot.serials, strict=True))

    def address(self, slot: Slot) -> int | None:
        """Address of a segment's first block; None where it has none."""
        if slot.extent is None or not slot.extent.blocks:
            return None
        return self.memory.address(slot.group.id, slot.extent.blocks[0])

    def possible(self, slot: Slot, trigger: str) -> bool:
        """Whether the object of a segment has an event, from the form that the segment is in."""
        return (slot.group.id, slot.facts.form, trigger) in self._possible

    def fire(
        self, slot: Slot, trigger: str, arguments: Mapping[str, Value] = NOTHING, donor: Slot | None = None
    ) -> bool:
        """Let an event happen to a segment, with all that its rule says of blocks and keys.

        Args:
            slot: The segment.
            trigger: Id of the event.
            arguments: What its actor measured or chose, by fact.
            donor: The segment whose facts are copied, where the event copies any.

        Returns:
            False, and no change, where pins, owner, donor or condition do not allow it.

        Raises:
            ImpossibleEventError: The object does not have the event, or not in this form.
            InternalError: Blocks would have an owner that the rulebook's invariants do not allow.
        """
        columns = self.columns.get(slot.group.id)
        sole = columns is None or slot.extent is None or columns.sole(slot.extent.blocks)
        context = EventContext(
            self.runtime, self.kernels[slot.group.id], arguments, None if donor is None else donor.facts, sole
        )
        if not self.table.fire(slot.facts, trigger, context):
            return False
        rule = self._rules[slot.group.id, trigger]
        if rule.key == "clear":
            self.index.clear(slot)
        if rule.frees:
            self.free(slot)
        if slot.facts.form == "discarded":
            self._retire(slot)
        elif columns is not None:
            columns.note(slot)
            if rule.allocates or rule.donor or rule.moves:
                self._separate(slot, columns)
        return True

    def free(self, slot: Slot) -> None:
        """Give a segment's device blocks back."""
        if slot.extent is not None:
            self.columns[slot.group.id].give_back(slot.extent.blocks)
            slot.extent, slot.serials, slot.table = None, (), ()

    def give_up(self, slot: Slot) -> None:
        """A slot that was taken and to which nothing happened is spare again."""
        self.free(slot)
        self._retire(slot)

    def touch(self, slot: Slot) -> None:
        """A segment was used now."""
        slot.used = self.clock()
        recent = self.recent[slot.group.id]
        if recent.pop(slot, slot) is None:
            recent[slot] = None

    def manifest_keys(self, prompt: Prompt) -> tuple[Key, ...]:
        """The keys under which a manifest of an entry that was written for a prompt is filed."""
        return () if self.manifests is None else self.index.keys(self.manifests, prompt, 0, prompt.length, inner=True)

    def _separate(self, slot: Slot, columns: Columns) -> None:
        """Blocks with a second owner must be such as the invariants over pairs allow (article 6.2)."""
        if slot.extent is None or columns.sole(slot.extent.blocks):
            return
        mine = set(slot.extent.blocks)
        for other in self.recent[slot.group.id]:
            if other is slot or other.extent is None or mine.isdisjoint(other.extent.blocks):
                continue
            for invariant in self.bound.invariants:
                if invariant.over != "pair":
                    continue
                require = invariant.require[slot.group.object]
                if not pair_holds(require, slot.facts, other.facts, self.groups):
                    raise InternalError(f"{slot} and {other} share a block against '{invariant.id}'")

    def _retire(self, slot: Slot) -> None:
        """A discarded slot waits to be taken again."""
        slot.extent, slot.serials, slot.table, slot.rows = None, (), (), 0
        slot.host = slot.stored = slot.disk_key = slot.entry = slot.owner = None
        slot.suspect = ""
        self.recent[slot.group.id].pop(slot, None)
        self._spare[slot.group.id].append(slot)

    @staticmethod
    def _nothing(group: BoundGroup) -> dict[str, Value]:
        """Facts of a slot that never held anything: those that the engine owns, and no other."""
        nothing: dict[str, Value] = {
            "form": "discarded",
            "tier": "nowhere",
            "bound_for": "device",
            # What is made where nothing was held is taken to have generation 1. No rows may have it already, or what
            # leads to rows that were given up would seem to lead to those that were made anew.
            "generation": 1,
            "published": False,
            "pins": 0,
            "epoch": 0,
        }
        return {name: value for name, value in nothing.items() if name in group.facts}
