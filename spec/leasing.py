"""How what a decision rests on is held from the check to the end of the use: steps in three phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.spec.errors import Position

__all__ = ["ACTIONS", "BESIDE", "COMPARED", "LeaseStep", "Leasing"]

COMPARED: Mapping[str, str] = {
    "compare_epochs": "epoch",
    "compare_forms": "form",
    "compare_mapping": "mapped_generation",
}
"""The fact that each comparison of a confirmation reads; what was unknown and still is counts as equal."""

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "take": ("pin", "note"),
    "confirm": tuple(COMPARED),
    "release": ("fence", "unpin"),
}
"""What can be done in each phase. `pin` adds a pin to each segment, `unpin` gives those back that were added. `note`
remembers the facts that the confirmation compares. `fence` waits until the device has completed the last read.
"""

BESIDE = frozenset({"bound_for", "epoch", "idle_us", "measured", "origin_address", "pins", "published"})
"""Facts that say nothing of a segment's content or place: of who holds it, of where it may go, of when it was used, and
of what was found when its bytes were last measured. Whoever reads the segment does not depend on them.
"""


@dataclass(frozen=True, slots=True)
class LeaseStep:
    """One step of a phase.

    Args:
        does: One of the phase's `ACTIONS`.
    """

    id: str
    does: str
    because: str
    source: str
    where: Position


@dataclass(frozen=True, slots=True)
class Leasing:
    """The life of a lease; the steps of each phase stand in the order in which they are carried out.

    Args:
        take: Before the check.
        confirm: Right before the use.
        release: Once the last read has been issued.
    """

    take: tuple[LeaseStep, ...]
    confirm: tuple[LeaseStep, ...]
    release: tuple[LeaseStep, ...]
    where: Position
