"""What whoever reads a segment relies on, and whether an event leaves it as it was.

Sources: article sections 5.1 and 6.3. What happens to the bytes is said by `events.py`; here it is seen by a reader who
noted the segment before the event and reads it afterwards.
"""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.leasing import BESIDE
from hitproof.verification.axioms.events import physically
from hitproof.verification.axioms.truth import Truth
from hitproof.verification.model import GroupModel
from hitproof.verification.steps import Step
from hitproof.verification.terms import all_of, equal, implies

__all__ = ["left_as_it_was"]

SILENT = ("closed",)
"""What is true of a block, and yet is nothing that its bytes tell: here whether its owner may write again."""


def left_as_it_was(model: GroupModel, step: Step, state: Any, before: Truth) -> Any | None:
    """That an event leaves content and place of a segment as they were for whoever noted it before.

    Bytes that an event may write, move or free count as changed, for a freed block is given to others who write into
    it. So do facts that tell of content or place. Rows that are added behind the last one, or before the first one,
    leave those that were noted.

    Args:
        model: The group.
        step: The event.
        state: The segment's facts before it.
        before: The truth about its bytes before it; its values do not matter, only which of them remain.

    Returns:
        None for an event of which no axiom says what it does.
    """
    moved = physically(model, step, before, before, frozenset())
    if moved is None:
        return None
    after, _ = moved
    if any(after[name] is not term for name, term in before.values.items() if name not in SILENT):
        return z3.BoolVal(False, ctx=model.world.ctx)
    kept = []
    for name in model.group.facts:
        old, new = state(name), step.post(name)
        if name in BESIDE or name == "form" or new is old:
            continue
        if name in ("start", "end"):
            grown = new.value <= old.value if name == "start" else old.value <= new.value
            kept.append(implies(old.known, all_of((new.known, grown), model.true)))
        else:
            same = implies(old.known, equal(old.value, new.value))
            kept.append(all_of((equal(old.known, new.known), same), model.true))
    return all_of(kept, model.true)
