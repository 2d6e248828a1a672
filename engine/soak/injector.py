"""Faults done to a manager from outside: in the bytes of its blocks, in its tables, in its index, in its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from hitproof.engine.soak.faulty_memory import FaultyMemory
from hitproof.engine.soak.ledger import Fault, Ledger, Place
from hitproof.spec.memory import Extent

__all__ = ["Injector"]

_HOME_TRIES = 8


class Injector:
    """Draws a victim and spoils it, unless somebody is between the last check and the end of the use of it.

    Args:
        ledger: Where each fault is noted.
        memory: The bytes.
        draw: Decides.
        weights: How often each kind is drawn.
    """

    def __init__(self, ledger: Ledger, memory: FaultyMemory, draw: Random, weights: Mapping[str, float]) -> None:
        self._ledger, self._memory, self._draw = ledger, memory, draw
        self._ways: Mapping[str, Callable[[Any], Fault | None]] = {
            "bit_flip": self._flip,
            "swapped_blocks": self._swap,
            "wrong_generation": self._give_out_again,
            "stale_table": self._lead_elsewhere,
            "other_kernel": self._load_kernel,
        }
        self._kinds = [kind for kind in self._ways if weights.get(kind, 0) > 0]
        self._weights = [weights[kind] for kind in self._kinds]
        self._versions = 0
        self._told: dict[tuple[int, int], list[Fault]] = {}

    def strike(self, core: Any) -> str:
        """Inject a fault; answers its kind, or nothing where there was no victim."""
        if not self._kinds:
            return ""
        kind = self._draw.choices(self._kinds, self._weights)[0]
        with core.lock, self._ledger.lock:
            return kind if self._ways[kind](core) is not None else ""

    def collide(self, core: Any, prompt: Any, other: Any) -> int:
        """Let the keys of a prompt lead to the segments of another one too; answers to how many."""
        with core.lock, self._ledger.lock:
            found = [slot for slot in core.index.find(other)[1] if slot.owner is None and slot.facts.end is not None]
            if not found:
                return 0
            fault = self._ledger.inject("hash_collision")
            for slot in found:
                facts = slot.facts
                inner = "state_bytes" not in slot.group.constants
                old = slot.keys
                new = core.index.keys(slot.group.id, prompt, facts.start, facts.end, inner=inner)
                core.index.file(slot, [key for key in new if key not in old])
                slot.keys = (*old, *slot.keys)
                self._tell(fault, slot)
            return len(found)

    def of(self, slots: Any, kind: str) -> list[Fault]:
        """Faults of a kind that were done to segments, as they are now, and that nobody has noticed."""
        return [fault for fault in self.done_to(slots) if fault.kind == kind and not fault.caught and not fault.void]

    def done_to(self, slots: Any) -> list[Fault]:
        """All faults that were done to tables, keys and kernels of segments, as they are now."""
        return [fault for slot in slots for fault in self._told.get((slot.number, slot.incarnation), ())]

    def _victim(self, core: Any) -> Any:
        """A segment on the device that nobody reads right now."""
        groups = self._memory.groups()
        for _ in range(_HOME_TRIES):
            slots = core.slots[self._draw.choice(groups)]
            if not slots:
                continue
            slot = self._draw.choice(slots)
            if slot.extent is not None and slot.extent.rows and not self._ledger.spared(_places(slot)):
                return slot
        return None

    def _flip(self, core: Any) -> Fault | None:
        slot = self._victim(core)
        if slot is None:
            return None
        shape = self._memory.shape(slot.group.id)
        row = self._draw.randrange(slot.extent.rows)
        block = slot.extent.blocks[row // shape.rows]
        where = Extent(slot.group.id, (block,), row % shape.rows + 1)
        content = bytearray(self._memory.memory.read(where))
        place = len(content) - 1 - self._draw.randrange(shape.row_bytes)
        content[place] ^= 1 << self._draw.randrange(8)
        self._memory.memory.write(where, 0, content)
        return self._ledger.inject("bit_flip", [(slot.group.id, block)])

    def _swap(self, core: Any) -> Fault | None:
        one = self._victim(core)
        if one is None:
            return None
        group, shape = one.group.id, self._memory.shape(one.group.id)
        a, b = self._draw.choice(one.extent.blocks), self._draw.randrange(shape.blocks)
        if a == b or self._ledger.spared([(group, a), (group, b)]):
            return None
        first, second = (Extent(group, (block,), shape.rows) for block in (a, b))
        contents = self._memory.memory.read(first), self._memory.memory.read(second)
        if contents[0] == contents[1]:
            return None
        self._memory.memory.write(first, 0, contents[1])
        self._memory.memory.write(second, 0, contents[0])
        return self._ledger.inject("swapped_blocks", [(group, a), (group, b)])

    def _give_out_again(self, core: Any) -> Fault | None:
        """The allocator forgets an owner, and somebody else writes into the block."""
        slot = self._victim(core)
        if slot is None:
            return None
        block = self._draw.choice(slot.extent.blocks)
        core.columns[slot.group.id].give_out_again(block)
        self._memory.memory.poison(slot.group.id, [block])
        fault = self._note("wrong_generation", slot)
        self._ledger.spoil(fault, [(slot.group.id, block)])
        return fault

    def _lead_elsewhere(self, core: Any) -> Fault | None:
        slot = self._victim(core)
        if slot is None or not slot.table:
            return None
        at = self._draw.randrange(len(slot.table))
        block = self._draw.randrange(self._memory.shape(slot.group.id).blocks)
        if block in slot.extent.blocks:
            return None
        table = list(slot.table)
        table[at] = (block, table[at][1])
        slot.table = tuple(table)
        return self._note("stale_table", slot)

    def _load_kernel(self, core: Any) -> Fault | None:
        """Another number format, or another version of the same, for one group from now on."""
        group = self._draw.choice(self._memory.groups())
        self._versions += 1
        scaled = core.groups[group].constants["scaled"] is True
        fact = self._draw.choice(("encoding", "version", "scale_version") if scaled else ("encoding", "version"))
        version = f"{fact}-{self._versions % 3}"
        if getattr(core.kernels[group], fact) == version:
            return None
        kernel = core.kernels[group].copy()
        setattr(kernel, fact, version)
        core.kernels[group] = kernel
        fault = self._ledger.inject("other_kernel")
        for slot in core.slots[group]:
            self._tell(fault, slot)
        return fault

    def _note(self, kind: str, slot: Any) -> Fault:
        fault = self._ledger.inject(kind)
        self._tell(fault, slot)
        return fault

    def _tell(self, fault: Fault, slot: Any) -> None:
        self._told.setdefault((slot.number, slot.incarnation), []).append(fault)


def _places(slot: Any) -> list[Place]:
    blocks = {*slot.extent.blocks, *(block for block, _ in slot.table)}
    return [(slot.group.id, block) for block in sorted(blocks)]
