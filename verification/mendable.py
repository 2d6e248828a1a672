"""What claim `complete` asks of recovery: no state that a declared repair could mend is without a way on."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.repairs import KNOWN_REPAIRS
from hitproof.verification.axioms.told import told
from hitproof.verification.axioms.truth import Truth, truthful
from hitproof.verification.claims.repair_sound import OptionStep
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Run
from hitproof.verification.terms import all_of, any_of, negated

__all__ = ["mendable_is_mended"]


def mendable_is_mended(run: Run) -> None:
    """Where the repair of some option could leave the group accepted, some option is wanted that applies."""
    model = World(run.bound).group(run.group.id)
    world, group = model.world, model.group
    before = Truth.fresh(world.ctx, f"{group.id}.")
    options = [OptionStep(run, model, option, before) for option in group.options if option.repair in KNOWN_REPAIRS]
    if not options:
        return
    base = [
        *(clause for _, clause in truthful(model, model.own, before)),
        *(clause for _, clause in told(model, model.own, before)),
        *_as_told(model, before),
        model.identity(),
        negated(model.accepted()),
        *(model.kernel(name).known for name in world.bound.rulebook.kernel),
        *(world.shared(f"request.{name}").known for name in world.bound.rulebook.request),
        world.shared("runtime.pool_epoch").known,
        *_far_from_their_ends(model),
        *world.usual(),
        world.length > 0,
    ]
    nothing = negated(any_of([option.wanted for option in options], model.false))
    # What makes bytes anew can be wanted for whatever fails; what copies them leaves to others what they do.
    refused = {one.label: nothing if one.option.own_bytes else negated(one.wanted) for one in options}
    questions = [
        (f"{option.label} could mend, and is not wanted", all_of([option.could(), refused[option.label]], model.true))
        for option in options
    ]
    premise = [*base, *world.domains()]
    found = run.must_none(world.ctx, premise, questions, soft=lambda: small(world, *world.models.values()))
    if found is None:
        mendable = any_of([option.could() for option in options], model.false)
        if run.must(world.ctx, [*base, mendable, *world.domains()], f"{group.id}: could be mended") is not None:
            run.witness = f"something of {group.id} can be mended"
        return
    label, answer = found
    option = next(one for one, (name, _) in zip(options, questions, strict=True) if name == label)
    idle = [one.label for one in options] if option.option.own_bytes else [option.label]
    length = answer.model.eval(world.length, model_completion=True).as_long()
    run.fail(
        f"{label} at length {length}",
        option.option.rule,
        option.option.where,
        decode_scenario(
            answer.model, world, "complete", label, Expectation(unready=[group.id], unwanted=idle, at=length)
        ),
    )


def _as_told(model: GroupModel, truth: Truth) -> list[Any]:
    """No more rows are there than the facts say; bytes that nobody has touched have the fingerprint that they had."""
    start, end = model.own("start"), model.own("end")
    return [
        truth["intact"] == (truth["fingerprint"] == truth["written"]),
        z3.Implies(start.known, truth["lo"] == start.value),
        z3.Implies(end.known, truth["hi"] == end.value),
    ]


def _far_from_their_ends(model: GroupModel) -> list[Any]:
    return [
        model.own(name).value < int(fact.hi) - 2
        for name, fact in model.group.facts.items()
        if fact.type.kind == "counter" and fact.hi is not None
    ]
