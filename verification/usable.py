"""What claim `complete` asks beside recovery: whole segments are accepted, and events leave what can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.rulebook import Transition
from hitproof.spec.scenario import Expectation, FactValue
from hitproof.verification.axioms.blocks import owns
from hitproof.verification.axioms.events import KNOWN_EVENTS, physically
from hitproof.verification.axioms.held import held_parts, serve_parts
from hitproof.verification.axioms.possible import BESIDE_READERS, SOLE_OWNERS, STARTS, possible
from hitproof.verification.axioms.reading_sets import POSITIONAL
from hitproof.verification.axioms.told import exactly_told, told, told_by
from hitproof.verification.axioms.truth import Truth, fingerprints, truthful
from hitproof.verification.decode import decode_event, decode_scenario, decode_value, segment_of, small
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Run
from hitproof.verification.steps import Step, make_step
from hitproof.verification.terms import all_of, equal, negated

__all__ = ["events_tell", "whole_is_accepted"]

BESIDE_OWNER = "happens beside another owner of the block though it cannot"
NOT_BESIDE_OWNER = "does not happen beside another owner of the block though it can"


def whole_is_accepted(run: Run) -> None:
    """Of a segment whose facts tell all, and that holds every row that is read, no check fails."""
    world, group = World(run.bound), run.group
    model = world.group(group.id)
    truth = Truth.fresh(world.ctx, f"{group.id}.")
    # Rows are there at every position that is read: the ends of what is needed are such positions, or nothing is read.
    held = [
        z3.Implies(wanted, z3.And([part for _, part in parts]))
        for wanted, parts in (held_parts(model, truth, position) for position in _positions(model, truth))
    ]
    base = [
        *exactly_told(model, truth),
        *held,
        *(part for _, part in serve_parts(model, truth)),
        *_whole_rows(model, truth),
        *(z3.And(model.ready(role).value) for role in model.peers),
        *_environment_known(model),
        *world.usual(),
        world.length > 0,
        model.needed(),
    ]
    fails = {check.id: negated(model.holds(check.id)) for check in group.checks}
    found = run.must_none(
        world.ctx,
        [*base, *world.domains()],
        [(f"{group.id}/{name} refuses what is whole", term) for name, term in fails.items()],
        soft=lambda: small(world, *world.models.values()),
    )
    if found is None:
        if run.must(world.ctx, [*base, *world.domains()], f"{group.id}: something whole") is not None:
            run.witness = f"{group.id} can be whole and told"
        return
    label, answer = found
    check = next(check for check in group.checks if label == f"{group.id}/{check.id} refuses what is whole")
    length = answer.model.eval(world.length, model_completion=True).as_long()
    run.fail(
        f"{check.rule} refuses {group.id} at length {length}, though all that is read is there and told",
        check.rule,
        check.where,
        decode_scenario(
            answer.model,
            world,
            "complete",
            f"{group.id} is whole and is refused",
            Expectation(unready=[group.id], at=length),
        ),
    )


def _positions(model: GroupModel, truth: Truth) -> list[Any]:
    """Tokens at which rows are asked for: the first and the last of what the piece is needed for."""
    if model.group.object not in POSITIONAL:
        return [truth["lo"]]
    first, _ = model.number(model.group.raw_first)
    to, _ = model.number(model.group.raw_to)
    first = z3.If(first > model.share_first, first, model.share_first)
    to = z3.If(to < model.share_to, to, model.share_to)
    return [first, to - 1, truth["hi"] - 1]


def _whole_rows(model: GroupModel, truth: Truth) -> list[Any]:
    """The segment begins and ends with whole rows and entries, and has the bytes of all of them."""
    constants = model.group.constants
    whole = [truth["lo"] >= 0]
    for name in ("row_tokens", "ratio"):
        size = int(constants.get(name, 1))
        if size > 1 and model.group.object in POSITIONAL:
            whole += [truth["lo"] % size == 0, truth["hi"] % size == 0]
    if constants.get("has_bytes") and "row_bytes" in constants:
        rows = (truth["hi"] - truth["lo"]) / int(constants.get("row_tokens", 1))
        whole.append(truth["bytes"] >= rows * int(constants["row_bytes"]))
    if constants.get("stored_boundaries") or model.group.resumable == "stored":
        whole.append(z3.Select(truth["states"], model.world.length))
    if model.group.every:
        whole.append(model.world.length % model.group.every == 0)
    media = model.world.shared("request.media").value
    # Media of one digest begin at one token.
    from_one = truth["media_from"] == model.world.shared("request.media_from").value
    return [*whole, z3.Implies(truth["media"] == media, from_one)]


def _environment_known(model: GroupModel) -> list[Any]:
    shared, rulebook = model.world.shared, model.world.bound.rulebook
    known = [model.kernel(name).known for name in rulebook.kernel]
    return [*known, *(shared(f"request.{name}").known for name in rulebook.request)]


def events_tell(run: Run) -> None:
    """Events happen exactly where they can be carried out, and what they leave can be seen from the facts."""
    world = World(run.bound)
    model = world.group(run.group.id)
    truth = Truth.fresh(world.ctx, f"{run.group.id}.self.")
    events = [
        _Event.of(run, model, make_step(model, transition, source), truth)
        for transition in run.group.transitions
        if transition.id in KNOWN_EVENTS
        for source in dict.fromkeys((*transition.sources, *_starts(run, transition)))
    ]
    run.count += len(events)
    base = [clause for _, clause in truthful(model, model.own, truth)]
    base += [world.shared(f"runtime.{name}").known for name in world.bound.rulebook.runtime]
    base += [model.kernel(name).known for name in world.bound.rulebook.kernel]
    base += [*_far_from_their_ends(model), *world.domains()]
    tells = all_of([clause for _, clause in told(model, model.own, truth)], model.true)
    questions = [question for event in events for question in event.questions(model, tells)]
    found = run.must_none(world.ctx, base, [(label, formula) for label, formula, _ in questions])
    if found is not None:
        event = next(event for label, _, event in questions if label == found[0])
        _report(run, model, event, found[0], found[1].model)
    elif run.must(world.ctx, [*base, tells, model.own("pins").value == 0], "a segment that tells all") is not None:
        run.witness = f"a segment of {run.group.id} can tell all"


def _starts(run: Run, transition: Transition) -> list[str]:
    """Forms from which the event starts, with the group's own name for its home."""
    return [run.group.home if form == "home" else form for form in STARTS[transition.id]]


def _far_from_their_ends(model: GroupModel) -> list[Any]:
    return [
        model.own(name).value < int(fact.hi) - 2
        for name, fact in model.group.facts.items()
        if fact.type.kind == "counter" and fact.hi is not None
    ]


@dataclass(frozen=True)
class _Event:
    """One event from one form, with what is true and told after it."""

    step: Step
    can: Any
    carried: Any
    clauses: list[tuple[str, Any]]

    @classmethod
    def of(cls, run: Run, model: GroupModel, step: Step, truth: Truth) -> _Event:
        donor = Truth.fresh(model.world.ctx, f"{model.group.id}.donor.")
        moved = physically(model, step, truth, donor, run.assumptions)
        after, said = (truth, []) if moved is None else moved
        given, more = told_by(model, step)
        true = model.true
        here = [
            equal(model.own("form").value, model.world.enums.member(model.group.facts["form"].type, step.source)),
            *([] if step.transition.id in BESIDE_READERS else [model.own("pins").value == 0]),
            *given,
            *(fact.known for fact in _always_known(model, step)),
        ]
        premise = [*said, *(f for ghost in (truth, donor, after) for f in fingerprints(ghost, run.assumptions))]
        if step.donor is not None:
            premise += [clause for _, clause in truthful(model, step.donor, donor)]
            premise += [clause for _, clause in told(model, step.donor, donor)]
            premise += step.donor.assumptions
        starts = true if step.source in _starts(run, step.transition) else model.false
        can = all_of([*here, starts, possible(model, step, model.own)], true)
        return cls(step, can, all_of(premise, true), [*told(model, step.post, after), *more])

    def questions(self, model: GroupModel, tells: Any) -> list[tuple[str, Any, _Event]]:
        step, true = self.step, model.true
        name = f"{step.transition.id} from {step.source}"
        kept = all_of([clause for _, clause in self.clauses], true)
        given = [step.event(fact).known for fact in step.transition.takes]
        guard = step.guard if step.source in step.transition.sources else model.false
        fires = all_of([guard, *given], true)
        alone, asks = step.transition.id in SOLE_OWNERS, step.transition.owner == "sole"
        beside = all_of([self.can, owns(model, model.own), model.own("address").known], true)
        owned = bool(model.group.constants.get("has_bytes"))
        return [
            (f"{name} {BESIDE_OWNER}", beside if owned and alone and not asks else model.false, self),
            (f"{name} {NOT_BESIDE_OWNER}", beside if owned and asks and not alone else model.false, self),
            (f"{name} does not happen though it can", all_of([tells, self.can, negated(guard)], true), self),
            (f"{name} happens though it cannot", all_of([fires, negated(self.can)], true), self),
            (f"{name} leaves what cannot be told", all_of([tells, fires, self.carried, negated(kept)], true), self),
        ]


def _always_known(model: GroupModel, step: Step) -> list[Any]:
    owned = model.world.bound.rulebook.engine_owned & set(model.group.facts)
    return [step.post(name) for name in sorted(owned)]


def _report(run: Run, model: GroupModel, event: _Event, label: str, found: Any) -> None:
    step, group = event.step, model.group
    segments = [segment_of(found, model, name="s")]
    if step.donor is not None:
        segments.append(segment_of(found, model, step.donor, "d"))
    if label.endswith((NOT_BESIDE_OWNER, BESIDE_OWNER)):
        segments.append(segments[0].model_copy(update={"id": "t"}))
    lost = [name for name, clause in event.clauses if z3.is_false(found.eval(clause, model_completion=True))]
    told_facts: dict[str, FactValue] = {
        f"s.{fact}": decode_value(found, declared, step.post(fact))
        for fact, declared in group.facts.items()
        if declared.type.kind != "set"
    }
    refused = label.endswith("though it can")
    expect = Expectation(refused_event=0) if refused else Expectation(facts=told_facts)
    why = f" ({', '.join(lost)})" if label.endswith("told") else ""
    run.fail(
        f"{group.id}: {label}{why}",
        f"{group.object}/{step.transition.id}",
        step.transition.where,
        decode_scenario(
            found,
            model.world,
            "complete",
            label,
            expect,
            segments=segments,
            events=[decode_event(found, model, "s", step, donor="d" if step.donor is not None else None)],
            fill=False,
        ),
    )
