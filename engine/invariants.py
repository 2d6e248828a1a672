"""The machine's invariants, checked on a state: what the verifier proves, an integrity check can also ask."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import interpret
from hitproof.spec.facts import Value

__all__ = ["owns_block", "pair_holds", "violated_invariants"]

UNOWNED = ("discarded", "demoted", "quarantined")
"""Forms in which a segment owns no device block."""


def owns_block(segment: Any) -> bool:
    """The segment owns a device block: not in forms without one, nor while it is still on its way to the device."""
    return segment.form not in UNOWNED and not (segment.form == "moving" and segment.tier != "device")


def violated_invariants(engine: Engine, state: Resolved) -> list[str]:
    """Ids of the invariants that do not surely hold.

    Pair invariants must surely hold of every two segments that own a device block. Those over used segments are broken
    where they surely fail for a segment in its home form, those over the run time where they surely fail. Those over a
    lease are asked of the leases of a story, in `lease_story.py`.
    """
    violated: set[str] = set()
    groups = {group.id: group for group in engine.bound.groups}
    segments = [segment for pieces in state.pieces.values() for segment in pieces]
    owners = [s for s in segments if owns_block(s) and groups[s.group].constants.get("has_bytes")]
    for invariant in engine.bound.invariants:
        if invariant.over == "pair":
            for one, other in combinations(owners, 2):
                if not pair_holds(invariant.require[groups[one.group].object], one, other, groups):
                    violated.add(invariant.id)
        elif invariant.over == "used":
            for segment in segments:
                group = groups[segment.group]
                at_home = segment.form == group.home and group.constants.get("has_bytes")
                if at_home and interpret(invariant.require[group.object], _facts_of(state, group, segment)) is False:
                    violated.add(invariant.id)
        elif invariant.over == "runtime" and interpret(invariant.require["*"], state.environment()) is False:
            violated.add(invariant.id)
    return sorted(violated)


def pair_holds(require: Any, one: Any, other: Any, groups: dict[str, Any]) -> bool:
    """Whether an invariant over pairs, as it reads for the first one's object, surely holds of two segments."""
    env: dict[str, Value] = {
        **one.as_dict("self."),
        **other.as_dict("other."),
        "same_object": groups[one.group].object == groups[other.group].object,
    }
    return interpret(require, env) is True


def _facts_of(state: Resolved, group: BoundGroup, segment: Any) -> dict[str, Value]:
    constants: dict[str, Value] = {f"group.{name}": value for name, value in group.constants.items()}
    kernel = state.kernels[group.id].as_dict("kernel.")
    return {**state.environment(), **segment.as_dict("self."), **kernel, **constants}
