"""What claim `complete` asks of recovery: no state that a declared repair could mend is without a way on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.errors import Position
from hitproof.spec.scenario import Expectation
from hitproof.verification.axioms.repairs import KNOWN_REPAIRS, MEASURING, warmed_up
from hitproof.verification.axioms.told import told
from hitproof.verification.axioms.truth import Truth, truthful
from hitproof.verification.claims.repair_sound import OptionStep
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.model import GroupModel, World
from hitproof.verification.run import Run
from hitproof.verification.terms import all_of, any_of, negated

__all__ = ["mendable_is_mended", "reading_contracts"]


def reading_contracts(bound: BoundRulebook, group: BoundGroup) -> tuple[str, ...]:
    """The alignment in bytes that each repair asks of what it reads of the segment itself, as `bytes repair`."""
    repairs = {one.repair: bound.rulebook.repairs[one.repair].reads_at for one in group.options if one.own_bytes}
    return tuple(f"{asked} {name}" for name, asked in sorted(repairs.items()) if asked > 1)


def mendable_is_mended(run: Run) -> None:
    """Where the repair of some option could leave the group accepted, some option is wanted that applies.

    Nor are several steps taken where one repair would do, and what a pass over the last tokens could bring is not left.
    """
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
    contracts = {repair: int(asked) for asked, _, repair in (one.partition(" ") for one in run.part.about[1:])}
    questions = [*_each_could(model, options, contracts), *_warmed_up(model, options)]
    premise = [*base, *world.domains()]
    found = run.must_none(
        world.ctx,
        premise,
        [(one.label, one.formula) for one in questions],
        soft=lambda: small(world, *world.models.values()),
    )
    if found is None:
        mendable = any_of([option.could() for option in options], model.false)
        if run.must(world.ctx, [*base, mendable, *world.domains()], f"{group.id}: could be mended") is not None:
            run.witness = f"something of {group.id} can be mended"
        return
    label, answer = found
    question = next(one for one in questions if one.label == label)
    length = answer.model.eval(world.length, model_completion=True).as_long()
    expect = Expectation(unready=[group.id], unwanted=list(question.idle), at=length)
    story = decode_scenario(answer.model, world, "complete", label, expect)
    run.fail(f"{label} at length {length}", question.rule, question.where, story)


@dataclass(frozen=True)
class _Question:
    """States from which there should be a way on, and options of which none is wanted there."""

    label: str
    formula: Any
    idle: tuple[str, ...]
    rule: str
    where: Position


def _each_could(model: GroupModel, options: list[OptionStep], contracts: Mapping[str, int]) -> Iterator[_Question]:
    """What some repair could mend is mended, and in one step where one step is enough."""
    nobody = [negated(option.wanted) for option in options]
    alone = [negated(option.alone()) for option in options]
    every = tuple(option.label for option in options)
    for option in options:
        bound, could = option.option, option.could()
        # What makes bytes anew can be wanted for whatever fails; what copies them leaves to others what they do.
        idle, refused = (every, nobody) if bound.own_bytes else ((option.label,), [negated(option.wanted)])
        formula = all_of([could, *refused], model.true)
        yield _Question(f"{option.label} could mend, and is not wanted", formula, idle, bound.rule, bound.where)
        if bound.own_bytes:
            label = f"{option.label} could mend in one step what is mended in several"
            readable = [*_told_intact(model, option), *_aligned(model, contracts.get(bound.repair, 1))]
            formula = all_of([could, *readable, *alone], model.true)
            yield _Question(label, formula, (option.label,), bound.rule, bound.where)


def _told_intact(model: GroupModel, option: OptionStep) -> list[Any]:
    """What does not measure its source can rely on nothing but an earlier measurement."""
    measured, recorded = model.own("measured"), model.own("recorded")
    told = [measured.known, recorded.known, measured.value == recorded.value]
    return [] if option.option.repair in MEASURING else told


def _aligned(model: GroupModel, asked: int) -> list[Any]:
    """The rows lie where the repair can read them."""
    address, offset, stride = (model.own(name) for name in ("address", "offset", "stride"))
    if asked == 1:
        return []
    known = [one.known for one in (address, offset, stride)]
    return [*known, (address.value + offset.value) % asked == 0, stride.value % asked == 0]


def _warmed_up(model: GroupModel, options: list[OptionStep]) -> Iterator[_Question]:
    """What a pass over the last tokens before the length would bring whole, some option mends."""
    warmed, group = warmed_up(model), model.group
    if warmed is not None:
        formula = all_of([warmed, *(negated(option.wanted) for option in options)], model.true)
        # Of whatever options there are: those of other rules too, where the story is played by them.
        idle = (group.id,)
        label = f"a pass over the last tokens could mend {group.id}, and nothing is wanted"
        yield _Question(label, formula, idle, f"{group.object}/recovery", group.rules.where)


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
