"""When facts tell all that is true of the bytes: the other direction of `truthful`.

A rulebook that knows too little is safe and useless: what lies there in full would be refused. So claim `complete` asks
that every event leaves the facts that its actors can tell, and that checks refuse nothing that is there in full and
told. Sources: article sections 3.1 to 3.5, 4.1, 4.2 and 5.1, which say what is recorded of a segment, when and by whom.
"""

from __future__ import annotations

from typing import Any

import z3

from hitproof.verification.axioms.reading_sets import POSITIONAL, STATEFUL
from hitproof.verification.axioms.truth import IDENTITY, READABLE, SOURCE, VERSIONS, Truth
from hitproof.verification.model import GroupModel
from hitproof.verification.steps import Step
from hitproof.verification.terms import all_of, equal, implies

__all__ = ["exactly_told", "told", "told_by"]

PLACE = ("address", "offset", "stride", "pool_epoch")
FROM_THE_START = ("start", "media_from", "matched", "exactness", *IDENTITY, *READABLE)
"""Facts that are known from the allocation on."""

FROM_THE_COMMIT = (
    *("end", "recorded", "bytes", "sealed", "kv_generation", "window_size", "write_sequence", "marks", "filed"),
    *VERSIONS,
)
"""Facts that the writer adds at the commit."""

MEASURES = ("commit", "roll_window", "measure", "promote_end")
"""Events after which the fingerprint of the bytes is known, since whoever acts has read or written them all."""


KEEPS_THE_EPOCH = ("append", "commit", "measure")
"""Events that change nothing that somebody may have read."""

LANDS = {"demote_end": "bound_for", "spill": "disk", "promote_end": "device"}
"""Events that bring bytes to another tier, and to which."""

STAYS_FILED = (
    *("append", "demote_begin", "demote_end", "demote_failed", "spill", "promote_begin", "promote_end"),
    *("promote_failed", "measure", "remap_rows", "defragment", "share"),
)
"""Events after which a segment holds what its key names, as before."""


def told(model: GroupModel, own: Any, truth: Truth) -> list[tuple[str, Any]]:
    """The invariant: what is true of a segment that is there can be seen from its facts. Labelled clauses."""
    group, enums = model.group, model.world.enums
    facts, form, tier = group.facts, own("form").value, own("tier").value

    def at(*names: str) -> Any:
        kind = facts["form"].type
        return z3.Or([form == enums.member(kind, group.home if name == "home" else name) for name in names])

    device = enums.member(facts["tier"].type, "device")
    alive, begun = at("home", "moving", "demoted"), at("pending", "home", "moving", "demoted")
    pending, on_block = at("pending"), z3.And(tier == device, at("pending", "home", "moving"))
    clauses: list[tuple[str, Any]] = []

    def say(label: str, premise: Any, conclusion: Any) -> None:
        clauses.append((label, implies(premise, conclusion)))

    def same(one: str, other: str) -> Any:
        return z3.And(own(one).known, own(other).known, own(one).value == own(other).value)

    for name in FROM_THE_START:
        if name in facts:
            say(name, begun, own(name).known)
    for name in FROM_THE_COMMIT:
        if name in facts:
            say(name, alive, own(name).known)
    if "write_sequence" in facts:
        still = z3.And(same("write_sequence", "committed_sequence"), same("position", "end"))
        say("write_sequence", z3.And(alive, truth["ring_still"]), still)
    if not group.constants.get("has_bytes"):
        return clauses
    exact = enums.member(facts["exactness"].type, "exact")
    say("tier", at("pending", "home"), equal(tier, device))
    say("bound_for", at("pending", "home"), equal(own("bound_for").value, device))
    away = z3.And(tier == device, own("bound_for").value != device)
    back = z3.And(tier != device, own("bound_for").value == device)
    say("bound_for", at("moving"), z3.Or(away, back))
    say("origin_address", at("moving", "demoted"), own("origin_address").known)
    say("exactness", z3.Or(pending, z3.And(alive, truth["exact"])), own("exactness").value == exact)
    say("written_generation", z3.Or(pending, z3.And(alive, truth["mine"])), same("written_generation", "generation"))
    mapped = z3.And(on_block, truth["mapped"])
    say("mapped_generation", z3.Or(pending, mapped), same("mapped_generation", "generation"))
    say("sealed", z3.And(alive, truth["closed"]), own("sealed").value)
    for name in PLACE:
        say(name, on_block, own(name).known)
    return clauses


def told_by(model: GroupModel, step: Step) -> tuple[list[Any], list[tuple[str, Any]]]:
    """Whoever carries out an event tells all that it is asked for; and what must then be known beside the invariant."""
    given, name = [step.event(name).known for name in step.transition.takes], step.transition.id
    more: list[tuple[str, Any]] = []
    if name in MEASURES and model.group.constants.get("has_bytes"):
        more.append(("measured", step.post("measured").known))
    before, after = model.own("epoch").value, step.post("epoch").value
    more.append(("epoch", after == before if name in KEEPS_THE_EPOCH else after > before))
    filed = (model.own if step.donor is None else step.donor)("published").value
    if name == "commit":
        more.append(("published", step.post("published").value))
    else:
        # Keys become visible when bytes are written and committed, and at no other time.
        more.append(("published", implies(step.post("published").value, filed)))
    if name in STAYS_FILED:
        more.append(("published", implies(filed, step.post("published").value)))
    if name in LANDS:
        kind, enums = model.group.facts["tier"].type, model.world.enums
        there = LANDS[name]
        where = model.own("bound_for").value if there == "bound_for" else enums.member(kind, there)
        more.append(("tier", equal(step.post("tier").value, where)))
    return given, more


def exactly_told(model: GroupModel, truth: Truth) -> list[Any]:
    """A segment at home whose facts are all known and as true as they can be."""
    own, facts = model.own, model.group.facts
    home = model.world.enums.member(facts["form"].type, model.group.home)
    said = [own("form").value == home, *(clause for _, clause in told(model, own, truth))]
    same = {name: name for name in (*IDENTITY, *VERSIONS) if name in facts}
    same |= {"matched": "agree", "media_from": "media_from", "end": "hi", "start": "lo"}
    if "window_size" in facts:
        same["window_size"] = "window"
    enums, home_tiers = model.world.enums, ("host", "disk") if model.group.home == "demoted" else ("device",)
    tiers, tier = facts["tier"].type, own("tier").value
    said.append(z3.Or([tier == enums.member(tiers, name) for name in home_tiers]))
    if not model.group.constants.get("has_bytes"):
        # A record is made or it is not: nothing about it is approximate.
        said.append(own("exactness").value == enums.member(facts["exactness"].type, "exact"))
    if model.group.constants.get("has_bytes"):
        same |= {name: name for name in (*READABLE, "bytes", "address", "offset", "stride")}
        same |= {"recorded": "written", "measured": "fingerprint", "pool_epoch": "pool"}
    if "kv_generation" in facts:
        same["kv_generation"] = "kv_generation"
    said += [z3.And(own(name).known, own(name).value == truth[ghost]) for name, ghost in same.items()]
    said.append(truth["lo"] <= truth["hi"])
    # Bytes that nobody has touched have the fingerprint that they had.
    said.append(z3.Implies(truth["intact"], truth["fingerprint"] == truth["written"]))
    if model.group.object in STATEFUL or "marks" in facts:
        length = model.world.length
        said.append(z3.Select(own("marks").value, length) == z3.Select(truth["states"], length))
    if model.group.object in (*POSITIONAL, SOURCE):
        said.append(truth["origin"] == own("start").value)
    return [all_of(said, model.true)]
