"""A random life of one engine: decisions, recoveries and events, with everything that an observer was told."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.event import ImpossibleEventError
from hitproof.engine.observe import ObservedEngine, ObservedTable, Observer, Served
from hitproof.engine.recovery import Recovered, Recovery, StepTaken
from hitproof.engine.recovery.story import as_promised
from hitproof.engine.table import TransitionTable
from hitproof.spec.decision import Decision
from hitproof.spec.repair import RepairOutcome, RepairRequest
from tests.engine.event_cases import cases
from tests.engine.state_cases import engine_of, random_build


@dataclass
class Diary:
    """Writes down all that it is told."""

    decisions: list[Decision] = field(default_factory=list)
    served: list[Served] = field(default_factory=list)
    steps: list[StepTaken] = field(default_factory=list)
    ends: list[Recovered] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)


class Writer:
    """The observer that keeps a diary."""

    def __init__(self) -> None:
        self.diary = Diary()

    def decided(self, decision: Decision, seconds: float) -> None:
        assert seconds >= 0
        self.diary.decisions.append(decision)

    def served(self, served: Served) -> None:
        self.diary.served.append(served)

    def stepped(self, step: StepTaken) -> None:
        self.diary.steps.append(step)

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        assert seconds >= 0
        self.diary.ends.append(recovered)

    def changed(self, group: str, transition: str, result: str) -> None:
        self.diary.events.append((group, transition, result))


def live(name: str, observer: Observer, seed: int, count: int) -> None:
    """Decide, recover and fire events at random, all told to the observer."""
    random, engine = Random(seed), engine_of(name)
    decider = ObservedEngine(engine, observer)
    recovery = Recovery(engine, observer=observer)
    table = ObservedTable(TransitionTable(engine.bound), observer)
    for _ in range(count):
        decider.decide(random_build(engine, random).state(), explain=random.random() < 0.7)
        ended = recovery.run(random_build(engine, random).state(), _runner(engine, random))
        if ended.lease is not None:
            ended.lease.release()
        _event(engine, table, random)


def _runner(engine: Engine, random: Random) -> Any:
    def run(request: RepairRequest) -> RepairOutcome:
        status = random.choice(["done", "done", "done", "failed", "transfer_failed", "source_lost"])
        return RepairOutcome(status, as_promised(engine.bound.rulebook.repairs, request))  # type: ignore[arg-type]

    return run


def _event(engine: Engine, table: ObservedTable, random: Random) -> None:
    group = random.choice(engine.bound.groups)
    form = random.choice(["pending", group.home, "moving", "demoted", "quarantined"])
    trigger = random.choice([event.id for event in group.transitions])
    (case,) = cases(engine.bound, engine.types, group, form, seed=random.randrange(10**6), count=1)
    try:
        if random.random() < 0.5:
            table.fire(case.fresh(), trigger, case.context)
        else:
            table.fire_all([case.fresh(), case.fresh()], trigger, case.context)
    except ImpossibleEventError:
        pass
