"""Stories of recoveries that the engine can replay: hits left alone, interfered with, and repairs that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup, BoundOption
from hitproof.spec.errors import HitproofError
from hitproof.spec.process import OF_A_REPAIR
from hitproof.spec.rulebook import OF_REQUEST
from hitproof.spec.scenario import (
    Expectation,
    FactValue,
    RecoveredExpectation,
    RecoveryTurn,
    Scenario,
    SegmentDecl,
)
from hitproof.verification.decode import decode_scenario, small
from hitproof.verification.model import World
from hitproof.verification.run import Run

__all__ = ["answers_in", "halting_stories", "quiet_story", "refused_story", "stale_stories", "way_stories"]

LONG = 257
"""Tokens of a prompt whose prefix is worth a repair."""

MOST_TURNS = 6
"""Most turns that a story tells; a failure that needs more of them is left unknown."""

UNMEASURED: dict[str, FactValue] = {"measured": None}
"""What a runner leaves out that calls its repair done and took no fingerprint of the copy."""

FAR_EPOCH = 1_000_000
"""Epochs that others leave behind in a story are counted from here."""


def quiet_story(run: Run, step: str) -> Scenario:
    """A hit of which nothing fails and with which nobody interferes ends by that step."""
    return _clean(run, [], RecoveredExpectation(steps=[step]))


def refused_story(run: Run) -> Scenario:
    """A hit that never stands still, of a request that brings nothing to compute from, ends in recomputing."""
    moves = _moves(_segments(run)[0].id, MOST_TURNS)
    return _without_sources(_clean(run, moves, RecoveredExpectation(verdict="recompute")))


def halting_stories(run: Run, halted: str, reports: Sequence[str]) -> Iterator[Scenario]:
    """Stories that may show the engine halting there, the short ones first.

    One of the reports is told once or several times, after others have moved something or not, of a request that can
    be computed from nothing or not.
    """
    for story in _told(run, RecoveredExpectation(halted=halted), reports):
        yield story
        yield _without_sources(story)


def way_stories(run: Run, report: str, *, spent: bool, mended: bool) -> Iterator[Scenario]:
    """Stories in which that is reported, of requests that can be computed from nothing or not.

    Args:
        spent: It is reported until no attempt is left.
        mended: Where it is `done`, the repair did what it should.
    """
    count = MOST_TURNS if spent else 1
    for story in _with_report(run, report, count, mended=mended):
        yield story
        yield _without_sources(story)


def _with_report(run: Run, report: str, count: int, *, mended: bool) -> Iterator[Scenario]:
    wanted = RecoveredExpectation()
    if report == "ready":
        yield _clean(run, [], wanted)
    elif report == "moved":
        yield _clean(run, _moves(_segments(run)[0].id, count), wanted)
    else:
        told: Any = "failed" if report == "nothing" else report
        again = MOST_TURNS if report == "nothing" else count
        lie = {} if mended else UNMEASURED
        turns = [] if report == "done" and mended else [RecoveryTurn(report=told, measured=lie)] * again
        for damaged in _damaged(run):
            yield _with(damaged, turns, wanted)


def stale_stories(run: Run, report: str) -> Iterator[Scenario]:
    """Stories in which that is reported once, and other checks fail afterwards than before; then all goes well."""
    names = {group.id for group in run.whole.groups if group.rules.mandatory}
    for damaged in _damaged(run):
        hurt = [one for one in damaged.segments if one.facts and one.group in names]
        if report in OF_A_REPAIR:
            # A measurement keeps the epoch: what it takes away is missed by the next decision alone.
            others = [one for one in damaged.segments if one.group in names and one not in hurt]
            told: Any = report
            lost: dict[str, FactValue] = {f"{one.id}.measured": None for one in others if _is_measured(run, one.group)}
            turn = RecoveryTurn(report=told, measured=UNMEASURED, meanwhile=lost)
            yield _with(damaged, [turn], RecoveredExpectation())
            continue
        for one in hurt:
            spoilt = {f"{one.id}.{name}": value for name, value in one.facts.items() if name != "pins"}
            turn = RecoveryTurn(meanwhile={**spoilt, f"{one.id}.epoch": FAR_EPOCH})
            whole = SegmentDecl(id=one.id, group=one.group)
            healthy = [whole if two is one else two for two in damaged.segments]
            yield _with(damaged.model_copy(update={"segments": healthy}), [turn], RecoveredExpectation())


def _is_measured(run: Run, name: str) -> bool:
    return bool(run.whole.group(name).constants.get("has_bytes"))


def answers_in(run: Run, story: Scenario) -> list[tuple[str, str]]:
    """What the engine is seen to report in a story, each with the step that answers it; nothing without an engine."""
    if run.replayer is None:
        return []
    try:
        result = run.replayer.replay(run.whole.rulebook, story)
    except HitproofError:
        return []
    return list(zip(result.reports, result.steps, strict=True))


def _told(run: Run, wanted: RecoveredExpectation, reports: Sequence[str]) -> Iterator[Scenario]:
    if not set(reports) <= set(OF_A_REPAIR):
        for count in range(MOST_TURNS):
            yield _clean(run, _moves(_segments(run)[0].id, count), wanted)
    # A lie is the last that is tried: a repair of which nothing is measured cannot tell one.
    told: list[Any] = sorted(set(reports) & set(OF_A_REPAIR), key=lambda one: one == "done") or ["failed"]
    for damaged in _damaged(run):
        for count, moves, report in product((1, MOST_TURNS), (0, 3), told):
            failures = [RecoveryTurn(report=report, measured=UNMEASURED)] * count
            yield _with(damaged, [*_moves(damaged.segments[0].id, moves), *failures], wanted)


def _without_sources(story: Scenario) -> Scenario:
    """The same of a request that brings neither tokens nor media."""
    without: dict[str, FactValue] = {f"has_{source}": False for source in OF_REQUEST}
    return story.model_copy(update={"request": {**story.request, **without}})


def _moves(segment: str, count: int) -> list[RecoveryTurn]:
    return [RecoveryTurn(meanwhile={f"{segment}.epoch": FAR_EPOCH + turn}) for turn in range(count)]


def _segments(run: Run) -> list[SegmentDecl]:
    mandatory = [group for group in run.whole.groups if group.rules.mandatory]
    return [SegmentDecl(id=f"s{index}", group=group.id) for index, group in enumerate(mandatory)]


def _clean(run: Run, turns: list[RecoveryTurn], wanted: RecoveredExpectation) -> Scenario:
    """Every group holds a healthy segment."""
    story = Scenario(
        scenario=f"terminates-{run.whole.profile.profile}",
        title="a recovery that should end",
        because="Counterexample to the claim `terminates`.",
        profile=run.whole.profile,
        request={"length": LONG},
        segments=_segments(run),
    )
    return _with(story, turns, wanted)


def _with(story: Scenario, turns: list[RecoveryTurn], wanted: RecoveredExpectation) -> Scenario:
    return story.model_copy(update={"recovery": turns, "expect": Expectation(recovered=wanted)})


def _damaged(run: Run) -> Iterator[Scenario]:
    """Hits of which one segment needs a repair, one story an option that can be wanted."""
    for group in run.whole.groups:
        if group.rules.mandatory:
            for option in group.options:
                story = _wanting(run, group, option)
                if story is not None and _is_repaired(run, story):
                    yield story


def _is_repaired(run: Run, story: Scenario) -> bool:
    """Whether the engine would rather repair than compute; told without an engine only by the story's own try."""
    if run.replayer is None:
        return True
    try:
        decision = run.replayer.replay(run.whole.rulebook, story).decision
    except HitproofError:
        return False
    return decision is not None and bool(decision.plan)


def _wanting(run: Run, group: BoundGroup, option: BoundOption) -> Scenario | None:
    world = World(run.whole)
    model = world.group(group.id)
    failing = [z3.Not(model.holds(check)) for check in sorted(option.mends)]
    others = [model.holds(check.id) for check in group.checks if check.id not in option.mends]
    peers = [peer.accepted() for peer in model.peers.values()]
    question = [model.applies(option), z3.Or(failing), *others, *peers, model.identity(), *world.usual()]
    length = world.length >= LONG - 1
    found = run.asker.ask(
        world.ctx,
        [*question, length, *world.domains()],
        soft=lambda: [world.length <= 4 * LONG, *small(world, *world.models.values())],
    )
    if found.status != "sat":
        return None
    return decode_scenario(found.model, world, "terminates", f"{group.id} needs a repair", Expectation())
