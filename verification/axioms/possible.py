"""When an event can be carried out: what it acts upon is there, and nobody is disturbed by it.

Written from what each event is, never from a rule's guard. Sources: article sections 2 and 3.2 (rings, young ends),
3.5 (transfers between tiers), 4.1, 5.1 and 6.2; ggml-org/llama.cpp#13194 (what can be cut back).
"""

from __future__ import annotations

from typing import Any

import z3

from hitproof.verification.model import GroupModel
from hitproof.verification.steps import Step

__all__ = ["BESIDE_READERS", "SOLE_OWNERS", "STARTS", "possible"]

BESIDE_READERS = frozenset({"append", "commit", "abort", "measure"})
"""Events that disturb nobody who holds the segment: its own writing, before anybody could find it, and reading."""

SOLE_OWNERS = frozenset(
    {"append", "commit", "rollback", "rollback_window", "roll_window", "unseal", "defragment", "remap_rows"}
)
"""Events that write into the block, that make room to write in it, or that move what lies there."""


STARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("allocate", "share"), ("discarded",)),
    **dict.fromkeys(("append", "commit", "abort"), ("pending",)),
    **dict.fromkeys(("rollback", "rollback_window", "roll_window", "unseal", "demote_begin"), ("home",)),
    **dict.fromkeys(("measure", "remap_rows", "defragment"), ("home",)),
    **dict.fromkeys(("demote_end", "promote_end", "promote_failed", "demote_failed", "transfer_failed"), ("moving",)),
    **dict.fromkeys(("spill", "promote_begin"), ("demoted",)),
    **dict.fromkeys(("evict", "quarantine"), ("home", "demoted")),
    "discard": ("quarantined",),
}
"""Forms from which each event starts."""


def possible(model: GroupModel, step: Step, own: Any) -> Any:
    """What an event acts upon is there, by facts that are known; pins and forms are asked apart.

    Raises:
        KeyError: These axioms do not know the event.
    """
    facts, enums, event, donor = model.group.facts, model.world.enums, step.event, step.donor
    true = model.true

    def known(*terms: Any) -> Any:
        return z3.And([term.known for term in terms])

    def tier_in(term: Any, *names: str) -> Any:
        kind = facts["tier"].type
        return z3.And(term.known, z3.Or([term.value == enums.member(kind, name) for name in names]))

    below = ("host", "disk")
    has_block = own("address").known
    match step.transition.id:
        case "append" | "commit":
            return has_block if model.group.constants.get("has_bytes") else true
        case "defragment":
            return has_block
        case "rollback" | "rollback_window":
            start, cut, end = own("start"), event("end"), own("end")
            inside = z3.And(known(start, cut, end), start.value <= cut.value, cut.value <= end.value)
            if step.transition.id == "rollback":
                return inside
            position = own("position")
            return z3.And(inside, position.known, position.value == end.value)
        case "roll_window":
            start, end, first, last = own("start"), own("end"), event("start"), event("end")
            onward = [start.value <= first.value, end.value <= last.value, first.value <= last.value]
            opened = z3.And(own("sealed").known, z3.Not(own("sealed").value))
            return z3.And(known(start, end, first, last), *onward, opened, has_block)
        case "demote_begin":
            return tier_in(event("bound_for"), *below)
        case "demote_end":
            return tier_in(own("bound_for"), *below)
        case "demote_failed":
            return z3.And(tier_in(own("tier"), "device"), tier_in(own("bound_for"), *below))
        case "spill":
            return tier_in(own("tier"), "host")
        case "promote_begin":
            return tier_in(own("tier"), *below)
        case "promote_end":
            return tier_in(own("bound_for"), "device")
        case "promote_failed":
            return z3.And(tier_in(own("tier"), *below), tier_in(own("bound_for"), "device"))
        case "share":
            if donor is None:
                return true
            home, sealed = enums.member(facts["form"].type, model.group.home), donor("sealed")
            return z3.And(donor("form").value == home, sealed.known, sealed.value)
        case "allocate" | "abort" | "unseal" | "measure" | "remap_rows" | "transfer_failed":
            return true
        case "evict" | "quarantine" | "discard":
            return true
        case other:
            raise KeyError(other)
