"""Claim `graph_covers_machine`: from every reachable form there is a way on, to reuse or to discard."""

from __future__ import annotations

from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.scenario import Event, Expectation, Scenario, SegmentDecl
from hitproof.verification.decode import decode_scenario, segment_of
from hitproof.verification.model import GroupModel, World
from hitproof.verification.parts import Part, each_group
from hitproof.verification.run import Claim, Run
from hitproof.verification.steps import make_step, steps
from hitproof.verification.terms import all_of

__all__ = ["CLAIM"]

START = "discarded"


def parts(bound: BoundRulebook) -> list[Part]:
    """One a group: its form machine, with nothing of its bytes."""
    groups = [group for group in bound.groups if group.transitions]
    return each_group(groups, "transitions", constants=(), free=("stride",))


def prove(run: Run) -> None:
    """Forms reachable by guards that can be true, and from each a guarded path to the home form or to discarded."""
    group = run.group
    world = World(run.bound)
    model = GroupModel(world, group, prefix=f"{group.id}:")
    possible = _can_fire(run, model)
    reached = _closure({START}, group, possible)
    run.count += len(reached)
    goals = {group.home, START}
    # A form without any way on explains more than a state of a form before it.
    for form in sorted(reached - goals):
        if not _leads(form, goals, group, possible):
            _stuck(run, group, form, "no guarded path leads on")
            return
    # Whatever the state in a form, as long as nobody holds it, some event of such a path can be made to fire.
    for form in sorted(reached - goals):
        _no_state_is_stuck(run, model, form, goals, possible)
        if run.done:
            return
    if group.home not in reached:
        _stuck(run, group, group.home, "the home form is never reached")
    else:
        run.witness = f"{group.id} reaches {', '.join(sorted(reached))}"


def _can_fire(run: Run, model: GroupModel) -> dict[tuple[str, str], bool]:
    """Which transitions have a state of each of their source forms in which they can fire."""
    guards: dict[str, Any] = {}
    named: dict[str, tuple[str, str]] = {}
    for step in steps(model):
        label = f"{model.group.id}: {step.transition.id} from {step.source}"
        assumed = [] if step.donor is None else step.donor.assumptions
        guards[label] = all_of([step.guard, *assumed], model.true)
        named[label] = step.transition.id, step.source
    alive = run.must_each(model.world.ctx, model.domains(), list(guards.items()))
    return {place: label in alive for label, place in named.items()}


def _closure(start: set[str], group: BoundGroup, possible: dict[tuple[str, str], bool]) -> set[str]:
    reached = set(start)
    while True:
        more = {t.target for t in group.transitions for s in t.sources if s in reached and possible[t.id, s]} - reached
        if not more:
            return reached
        reached |= more


def _leads(form: str, goals: set[str], group: BoundGroup, possible: dict[tuple[str, str], bool]) -> bool:
    return bool(_closure({form}, group, possible) & goals)


def _no_state_is_stuck(
    run: Run, model: GroupModel, form: str, goals: set[str], possible: dict[tuple[str, str], bool]
) -> None:
    world, group = model.world, model.group
    exits = [
        t
        for t in group.transitions
        if form in t.sources and (t.target in goals or (t.target != form and _leads(t.target, goals, group, possible)))
    ]
    closed: list[Any] = []
    for transition in exits:
        step = make_step(model, transition, form)
        free = [term for path in step.event.paths for term in (step.event(path).value, step.event.flag(path))]
        guard = z3.And(step.guard, *step.event.assumptions)
        closed.append(z3.ForAll(free, z3.Not(guard)) if free else z3.Not(guard))
    at_form = model.own("form").value == world.enums.member(group.facts["form"].type, form)
    # Counters far from the end of their range; nobody holds the segment.
    room = [
        model.own(name).value < int(fact.hi) - 2
        for name, fact in group.facts.items()
        if fact.type.kind == "counter" and name in world.bound.rulebook.engine_owned and fact.hi is not None
    ]
    question = [at_form, model.own("pins").value == 0, *room, *closed, *model.domains()]
    found = run.must_not(world.ctx, question, f"{group.id}: stuck in {form}")
    if found is not None:
        segment = segment_of(found.model, model, name="s")
        events = [Event(segment="s", trigger=t.id) for t in exits]
        scenario = decode_scenario(
            found.model,
            world,
            "graph_covers_machine",
            f"a segment in form '{form}' has no way on",
            Expectation(facts={"s.form": form}, refused_event=0 if events else None),
            segments=[segment],
            events=events,
            fill=False,
        )
        dead = [t for t in group.transitions if not any(possible[t.id, source] for source in t.sources)]
        blamed = dead or exits
        place = blamed[0].where if blamed else group.rules.where
        run.fail(
            f"{group.id}: a segment in form '{form}' can be in a state that no event leaves",
            f"{group.object}/{form}",
            place,
            scenario,
        )


def _stuck(run: Run, group: BoundGroup, form: str, why: str) -> None:
    leaving = [t for t in group.transitions if form in t.sources and t.target != form]
    entering = [t for t in group.transitions if t.target == form]
    rule = next(iter(leaving or entering), None)
    scenario = Scenario(
        scenario=f"graph-covers-machine-{run.bound.profile.profile}",
        title=f"a segment in form '{form}' has no way on",
        because="Counterexample to the claim `graph_covers_machine`.",
        profile=run.bound.profile,
        request={"length": 2},
        segments=[SegmentDecl(id="s", group=group.id, facts={"form": form})],
        events=[Event(segment="s", trigger=t.id) for t in leaving],
        expect=Expectation(facts={"s.form": form}, refused_event=0 if leaving else None),
    )
    run.fail(
        f"{group.id}: form '{form}': {why}",
        f"{group.object}/{form}",
        rule.where if rule else group.rules.where,
        scenario,
    )


CLAIM = Claim(
    id="graph_covers_machine",
    sentence="Every form that can be reached has, from each of its states, an event that leads on towards reuse or "
    "towards discard.",
    method="reachability over satisfiable guards; one quantified question a form for states without an exit",
    assumptions=("counters_never_wrap", "unheld segments"),
    prove=prove,
    parts=parts,
    covers="{count} reachable forms, each with an exit from every state",
)
