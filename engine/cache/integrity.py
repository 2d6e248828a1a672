"""What must add up at any moment between two steps: blocks, pins, keys, tiers, owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Hold
from hitproof.engine.cache.slot import Slot
from hitproof.engine.cache.tiers import Tiers
from hitproof.engine.invariants import pair_holds
from hitproof.spec.errors import InternalError

__all__ = ["check_blocks", "check_keys", "check_owners", "check_pins", "check_tiers"]


def check_blocks(core: Core, landing: int) -> None:
    """Every block is free or has as many owners as segments that list it.

    Args:
        core: The manager's state; the lock is held.
        landing: Blocks that transfers under way have taken, and that no segment lists yet; -1 where it is not known.

    Raises:
        InternalError: It does not add up.
    """
    loose = 0
    for group, columns in core.columns.items():
        columns.check_integrity()
        listed: Counter[int] = Counter()
        for slot in core.slots[group]:
            if slot.extent is not None:
                listed.update(slot.extent.blocks)
        for block in range(columns.blocks):
            missing = columns.holders(block) - listed[block]
            if missing < 0:
                raise InternalError(f"block {block} of '{group}' is listed by more segments than own it")
            loose += missing
    if landing >= 0 and loose != landing:
        raise InternalError(f"{loose} blocks belong to nobody")


def check_pins(core: Core, holds: Iterable[Hold]) -> None:
    """Every open hold has its pins.

    Raises:
        InternalError: One has not, or a pin belongs to nobody's facts.
    """
    for hold in holds:
        if hold.open:
            hold.check_integrity()
    for slots in core.slots.values():
        for slot in slots:
            if slot.facts.pins < 0 or (slot.facts.form == "discarded" and slot.extent is not None):
                raise InternalError(f"{slot} has {slot.facts.pins} pins and {slot.extent}")


def check_keys(core: Core) -> None:
    """Keys lead to visible segments alone, and each of a segment's keys leads to it.

    Raises:
        InternalError: They do not.
    """
    for key, slot in core.index.filed():
        if key not in slot.keys or slot.facts.form in ("pending", "quarantined", "discarded"):
            raise InternalError(f"a key leads to {slot}")
    for slots in core.slots.values():
        for slot in slots:
            if not core.index.leads_to(slot):
                raise InternalError(f"a key of {slot} does not lead to it")


def check_tiers(core: Core, tiers: Tiers) -> None:
    """A segment has bytes in the tier that its facts name, and host memory is what is counted.

    Raises:
        InternalError: It has not.
    """
    for group in core.columns:
        for slot in core.recent[group]:
            facts = slot.facts
            lies = (slot.host is not None, slot.stored is not None)
            if facts.form == "demoted" and lies != (facts.tier == "host", facts.tier == "disk"):
                raise InternalError(f"{slot} is said to lie in '{facts.tier}'")
            if facts.form == slot.group.home and slot.extent is None:
                raise InternalError(f"{slot} is at home and has no bytes")
    counted = tiers.check_host()
    if counted > tiers.host_used or tiers.host_used > tiers.host_capacity:
        raise InternalError(f"{counted} bytes of host memory are held, {tiers.host_used} are counted")


def check_owners(core: Core) -> None:
    """Every two segments that share a block may, by the rulebook's invariants over pairs (article 6.2).

    Raises:
        InternalError: Two may not.
    """
    for group, slots in core.slots.items():
        by_block: dict[int, list[Slot]] = {}
        for slot in slots:
            for block in slot.extent.blocks if slot.extent is not None else ():
                by_block.setdefault(block, []).append(slot)
        for owners in by_block.values():
            for one, other in combinations(owners, 2):
                for rule in core.bound.invariants:
                    if rule.over != "pair":
                        continue
                    require = rule.require[core.groups[group].object]
                    if not pair_holds(require, one.facts, other.facts, core.groups):
                        raise InternalError(f"{one} and {other} share a block against '{rule.id}'")
