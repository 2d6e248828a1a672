"""From a model of the solver to a scenario that the engine can replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import z3

from hitproof.spec.bound import BoundOption
from hitproof.spec.facts import Fact
from hitproof.spec.scenario import Event, Expectation, FactValue, Scenario, SegmentDecl
from hitproof.verification.encode import Z3Fact
from hitproof.verification.model import FAR, GroupModel, Post, World

__all__ = ["decode_event", "decode_scenario", "decode_value", "option_story", "segment_of", "small"]

Source = Any
"""Gives a fact's terms by name: a `Z3Facts` or a `Post`."""


def small(world: World, *models: GroupModel) -> Iterator[Any]:
    """Wishes that make a counterexample easy to read: a short length, a request just longer, few unknowns."""
    n = world.shared("request.length").value
    unit = world.shared("request.granularity").value
    yield from (n == world.length + 1, unit == 1)
    yield from (world.length <= short for short in (65_536, 4096, 64))
    yield from (world.shared(path).known for path in world.shared.paths)
    for model in models:
        # The engine asks one piece for everything.
        yield from (model.share_first == 0, model.share_to == FAR)
        # A piece that begins behind the length would not be asked at all.
        if "start" in model.group.facts:
            yield model.own("start").value < world.length
        if "end" in model.group.facts:
            # Where it takes several pieces, the engine has each one answer up to its own end.
            end = model.own("end")
            yield z3.Or(model.share_to == FAR, z3.And(end.known, end.value == model.share_to))
        yield from (model.own(path).known for path in model.own.paths)


def decode_value(model: z3.ModelRef, fact: Fact, term: Z3Fact, points: Iterable[int] = ()) -> FactValue:
    """The value of a fact in a model, None where it is unknown; a set is rebuilt from the points asked for."""
    if not z3.is_true(model.eval(term.known, model_completion=True)):
        return None
    if fact.type.kind == "set":
        ctx = term.value.ctx
        return sorted(
            point
            for point in set(points)
            if z3.is_true(model.eval(z3.Select(term.value, z3.IntVal(point, ctx=ctx)), model_completion=True))
        )
    value = model.eval(term.value, model_completion=True)
    match fact.type.kind:
        case "bool":
            return bool(z3.is_true(value))
        case "real":
            return float(value.as_fraction())
        case "enum":
            return str(value).split(".", 1)[1]
        case "identity":
            return f"id{value.as_long()}"
        case _:
            return int(value.as_long())


def segment_of(
    model: z3.ModelRef, group: GroupModel, own: Source | None = None, name: str | None = None, *, length: int = 0
) -> SegmentDecl:
    """A segment with exactly the facts that the solver chose."""
    source = group.own if own is None else own
    facts: dict[str, FactValue] = {}
    points = {length}
    for fact, declared in group.group.facts.items():
        if own is None and fact not in group.own.paths and declared.type.kind == "set":
            continue
        value = decode_value(model, declared, source(fact), points)
        if isinstance(value, int) and not isinstance(value, bool):
            points.add(value)
        if value is not None:
            facts[fact] = value
    return SegmentDecl(id=name or group.group.id.replace("@", "_r"), group=group.group.id, blank=True, facts=facts)


def _pieces(model: z3.ModelRef, group: GroupModel, length: int) -> list[SegmentDecl]:
    """The group's segment, with faultless ones before and behind it where it answers for a share in the middle."""
    own = segment_of(model, group, length=length)
    if group.group.rules.pieces != "span" or not group.reads_share:
        return [own]
    first, to = (model.eval(end, model_completion=True).as_long() for end in (group.share_first, group.share_to))
    whole = next(one for one in group.world.everyone if one.id == group.group.id)
    n = model.eval(group.world.shared("request.length").value, model_completion=True).as_long()
    agreed = max(n, length) + int(whole.constants.get("lookahead", 0))

    def healthy(where: str, start: int, end: int) -> SegmentDecl:
        facts: dict[str, FactValue] = {"start": start, "end": end, "matched": agreed}
        return SegmentDecl(id=f"{own.id}_{where}", group=own.group, facts=facts)

    before = [healthy("before", 0, first)] if first else []
    behind = [healthy("behind", to, length)] if first <= to < length else []
    return [*before, own, *behind]


def decode_event(
    model: z3.ModelRef, group: GroupModel, segment: str, step: Any, *, donor: str | None = None, length: int = 0
) -> Event:
    """The event of a step with the arguments that the solver chose."""
    arguments: dict[str, FactValue] = {}
    for name in (*step.transition.takes, *(p for p in step.event.paths if p not in step.transition.takes)):
        value = decode_value(model, group.group.facts[name], step.event(name), {length})
        if value is not None:
            arguments[name] = value
    return Event(segment=segment, trigger=step.transition.id, arguments=arguments, donor=donor)


def decode_scenario(
    model: z3.ModelRef,
    world: World,
    claim: str,
    title: str,
    expect: Expectation,
    *,
    segments: list[SegmentDecl] | None = None,
    events: list[Event] | None = None,
    fill: bool = True,
) -> Scenario:
    """A whole scenario: the request, run time and kernels that the solver chose, and the segments of its groups.

    Args:
        segments: Stand for the groups in question; else every group of the world is decoded.
        fill: Give all other groups of the profile a healthy segment.
    """
    length = model.eval(world.length, model_completion=True).as_long()
    request = _environment(model, world, "request", world.bound.rulebook.request)
    request.setdefault("length", length + 1)
    chosen = (
        segments
        if segments is not None
        else [piece for group in world.models.values() for piece in _pieces(model, group, length)]
    )
    taken = {segment.group for segment in chosen}
    if fill:
        chosen = [
            *chosen,
            *(
                SegmentDecl(id=f"healthy_{group.id.replace('@', '_r')}", group=group.id)
                for group in world.everyone
                if group.id not in taken and group.rules.mandatory
            ),
        ]
    kernels: dict[str, dict[str, FactValue]] = {}
    for name, group in world.models.items():
        found = {
            fact: decode_value(model, declared, group.kernel(fact))
            for fact, declared in world.bound.rulebook.kernel.items()
            if fact in group.kernel.paths
        }
        if found:
            kernels[name] = found
    return Scenario(
        scenario=f"{claim}-{world.bound.profile.profile}".replace("_", "-"),
        title=title,
        because=f"Counterexample to the claim `{claim}`.",
        profile=world.bound.profile,
        request=request,
        runtime=_environment(model, world, "runtime", world.bound.rulebook.runtime),
        kernels=kernels,
        segments=chosen,
        events=events or [],
        expect=expect,
    )


def option_story(
    found: z3.ModelRef, model: GroupModel, option: BoundOption, post: Post, claim: str, title: str
) -> Scenario:
    """An option that runs, with the checks that fail afterwards and the facts that it leaves.

    Places that are chosen and fingerprints that are taken anew are left out: the engine's are its own.
    """
    own = (*option.effect.chooses, *(("recorded", "measured") if option.effect.renews else ()))
    leaves = {
        name: decode_value(found, fact, post(name))
        for name, fact in model.group.facts.items()
        if name not in own and fact.type.kind not in ("set", "real")
    }
    failing = [
        check.id
        for check in model.group.checks
        if not z3.is_true(found.eval(model.holds(check.id, post), model_completion=True))
    ]
    length = found.eval(model.world.length, model_completion=True).as_long()
    expect = Expectation(option=f"{model.group.id}/{option.id}", at=length, fails_after=failing, leaves=leaves)
    return decode_scenario(found, model.world, claim, title, expect)


def _environment(model: z3.ModelRef, world: World, scope: str, facts: Mapping[str, Fact]) -> dict[str, FactValue]:
    return {
        name: decode_value(model, fact, world.shared(f"{scope}.{name}"))
        for name, fact in facts.items()
        if f"{scope}.{name}" in world.shared.paths
    }
