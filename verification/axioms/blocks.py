"""Blocks of device memory: who owns one, and what an event physically does to the bytes in it.

Sources: article sections 4.1, 5.1 and 6.2; the events are those of `events.py`, seen from the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from hitproof.verification.model import GroupModel
from hitproof.verification.steps import Step

__all__ = ["Memory", "UNOWNED", "owns", "writes_where"]

UNOWNED = ("discarded", "demoted", "quarantined")
VOID = 0


@dataclass(frozen=True)
class Memory:
    """For every address the kind of object whose bytes lie there, 0 for nothing, and a stamp that each write renews."""

    kinds: Any
    stamps: Any

    @classmethod
    def fresh(cls, ctx: z3.Context) -> Memory:
        """Memory of which nothing is known."""
        kinds, stamps = (z3.Array(name, z3.IntSort(ctx), z3.IntSort(ctx)) for name in ("kinds", "stamps"))
        return cls(kinds, stamps)

    def kind_at(self, address: Any) -> Any:
        """The kind of object at an address."""
        return z3.Select(self.kinds, address)

    def stamp_at(self, address: Any) -> Any:
        """The stamp of the last write at an address."""
        return z3.Select(self.stamps, address)

    def put(self, address: Any, kind: Any, stamp: Any) -> Memory:
        """Memory after bytes of a kind were written there."""
        return Memory(z3.Store(self.kinds, address, kind), z3.Store(self.stamps, address, stamp))


def owns(model: GroupModel, facts: Any) -> Any:
    """The segment owns a device block in this form; on its way to the device it owns none before it arrives."""
    kind, tiers = model.group.facts["form"].type, model.group.facts["tier"].type
    form, enums = facts("form").value, model.world.enums
    arriving = z3.And(form == enums.member(kind, "moving"), facts("tier").value != enums.member(tiers, "device"))
    return z3.And(z3.Not(arriving), *(form != enums.member(kind, name) for name in UNOWNED))


def writes_where(step: Step, memory: Memory, kind: Any, mine: Any, donors: Any) -> tuple[Memory, Any]:
    """Memory after an event of a segment whose object is `kind`, and the stamp of the segment's own bytes then.

    Writers write where the segment's facts say that its block is. The move of a defragmentation takes bytes from the
    block that the facts name to the one that the event names, and leaves the first one void.

    Args:
        step: The transition.
        memory: Memory before.
        kind: The segment's object as a number.
        mine: Stamp of the segment's bytes before.
        donors: Stamp of the donor's bytes.
    """
    ctx = memory.kinds.ctx
    void, new = z3.IntVal(VOID, ctx=ctx), z3.Int("new_stamp", ctx=ctx)
    here = step.post("address").value
    match step.transition.id:
        case "append" | "commit" | "roll_window":
            return memory.put(here, kind, new), new
        case "promote_end":
            # The copy lands where the manager took a block; the facts should say the same.
            return memory.put(step.event("address").value, kind, new), new
        case "defragment":
            there, old = step.event("address").value, step.before_address
            moved = memory.put(there, memory.kind_at(old), memory.stamp_at(old))
            return moved.put(old, void, new), mine
        case "share":
            return memory, donors
        case _:
            return memory, mine
