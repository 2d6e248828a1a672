"""What each event physically does to a segment's bytes: the other half of a transition, which no rule file states.

Sources: article sections 3.2, 3.5, 4.1, 5.1 and 6.3; faults are those of the public bugs that the rulebook names: torn
copies, blocks given out again, rows overwritten, pools moved.
"""

from __future__ import annotations

from typing import Any

import z3

from hitproof.verification.axioms.truth import IDENTITY, READABLE, VERSIONS, Truth
from hitproof.verification.model import GroupModel
from hitproof.verification.steps import Step

__all__ = ["KNOWN_EVENTS", "physically"]

KNOWN_EVENTS = frozenset(
    {
        "allocate",
        "append",
        "commit",
        "abort",
        "rollback",
        "rollback_window",
        "roll_window",
        "unseal",
        "demote_begin",
        "demote_failed",
        "demote_end",
        "spill",
        "promote_begin",
        "promote_failed",
        "measure",
        "remap_rows",
        "promote_end",
        "transfer_failed",
        "defragment",
        "share",
        "evict",
        "quarantine",
        "discard",
    }
)


def physically(
    model: GroupModel, step: Step, before: Truth, donor: Truth, assumptions: frozenset[str]
) -> tuple[Truth, list[Any]] | None:
    """The truth after an event, and what is assumed of those who act.

    Args:
        model: The group.
        step: The transition.
        before: Truth before.
        donor: Truth of the donor, where there is one.
        assumptions: Ids of the rulebook's assumptions; `writers_tell` and `fingerprints_tell` are used here.

    Returns:
        None for an event that these axioms do not know.
    """
    ctx = model.world.ctx
    true, false = z3.BoolVal(True, ctx=ctx), z3.BoolVal(False, ctx=ctx)
    after = Truth.fresh(ctx, f"{model.own.prefix}{step.transition.id}.after.")
    pool = model.world.shared("runtime.pool_epoch").value
    new_bytes = {"fingerprint": after["fingerprint"], "intact": after["intact"]}
    match step.transition.id:
        case "append" | "demote_begin" | "promote_begin" | "quarantine" | "promote_failed" | "demote_failed":
            # Nothing is written, or only rows that no key names yet.
            return before, []
        case "rollback" | "rollback_window":
            # Nothing is written, but rows behind the cut belong to a continuation that was given up.
            cut = step.event("end")
            return before.but(hi=z3.If(z3.And(cut.known, cut.value < before["hi"]), cut.value, before["hi"])), []
        case "measure":
            # Reading moves nothing; what it finds is what is there, good or bad.
            return before, _measured(step, before, ())
        case "unseal":
            # From here on the owner may write.
            return before.but(closed=false), []
        case "allocate":
            return after.but(pool=pool), []
        case "abort" | "transfer_failed" | "evict" | "discard":
            return after, []
        case "commit":
            written = after.but(committed=true, device=true, mine=true, mapped=true, intact=true, ring_still=true)
            written = written.but(written=after["fingerprint"], pool=before["pool"], closed=true)
            return written, _reported(model, step, written, assumptions)
        case "roll_window":
            rolled = before.but(
                lo=after["lo"],
                hi=after["hi"],
                origin=after["origin"],
                bytes=after["bytes"],
                written=after["fingerprint"],
                fingerprint=after["fingerprint"],
                intact=true,
                ring_still=true,
                closed=false,
            )
            return rolled, _reported(model, step, rolled, assumptions)
        case "demote_end" | "spill":
            # A copy may be torn; whether it is, nobody knows until the bytes are measured.
            return before.but(device=false, mapped=false, mine=true, **new_bytes), []
        case "promote_end":
            moved = before.but(
                device=true,
                mine=true,
                mapped=true,
                address=after["address"],
                offset=after["offset"],
                stride=after["stride"],
                pool=pool,
                **new_bytes,
            )
            return moved, _measured(step, moved, ("address", "offset", "stride"))
        case "defragment":
            # Rows are moved to the front of their new block.
            front = z3.IntVal(0, ctx=ctx)
            moved = before.but(mine=true, mapped=true, address=after["address"], offset=front, **new_bytes)
            return moved, _measured(step, moved, ("address",))
        case "remap_rows":
            mapped = before.but(kv_generation=after["kv_generation"])
            told = step.event("kv_generation")
            return mapped, [z3.Implies(told.known, told.value == mapped["kv_generation"])]
        case "share":
            return donor, []
        case _:
            return None


def _measured(step: Step, truth: Truth, places: tuple[str, ...]) -> list[Any]:
    """What the manager measures: where bytes that it moved lie, and their fingerprint if it took one."""
    said = [z3.Implies(step.event(name).known, step.event(name).value == truth[name]) for name in places]
    fingerprint = step.event("measured")
    return [*said, z3.Implies(fingerprint.known, fingerprint.value == truth["fingerprint"])]


def _reported(model: GroupModel, step: Step, truth: Truth, assumptions: frozenset[str]) -> list[Any]:
    """`writers_tell`: at a commit the facts of identity, span, form of the numbers and versions are as written."""
    if "writers_tell" not in assumptions:
        return []
    facts, said = model.group.facts, list[Any]()

    def post(name: str) -> Any:
        # Where rows move on, the writer tells of them by what it reports, or not at all.
        told = step.transition.id == "roll_window" and name in ("start", "end", "bytes")
        return step.event(name) if told else step.post(name)

    def tell(name: str, conclusion: Any) -> None:
        if name in facts:
            said.append(z3.Implies(post(name).known, conclusion(post(name).value)))

    places = ("address", "offset", "stride")
    for name in (*IDENTITY, *READABLE, *VERSIONS, *places, "bytes", "kv_generation", "media_from"):
        tell(name, lambda value, name=name: value == truth[name])
    tell("start", lambda value: z3.And(truth["lo"] <= value, truth["origin"] == value))
    tell("end", lambda value: value <= truth["hi"])
    tell("matched", lambda value: value <= truth["agree"])
    tell("window_size", lambda value: value <= truth["window"])
    # The fingerprint that a writer reports is that of its own bytes.
    reported = step.event("recorded")
    said.append(z3.Implies(reported.known, reported.value == truth["fingerprint"]))
    exact = model.world.enums.member(facts["exactness"].type, "exact")
    tell("exactness", lambda value: z3.Implies(value == exact, truth["exact"]))
    if "marks" in facts:
        for point in (model.world.length, z3.Int(f"{model.own.prefix}any.mark", ctx=model.world.ctx)):
            tell(
                "marks",
                lambda value, point=point: z3.Implies(z3.Select(value, point), z3.Select(truth["states"], point)),
            )
    return said
