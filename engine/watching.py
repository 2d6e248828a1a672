"""A story step by step: the facts of every segment before the first of its steps and after each."""

from __future__ import annotations

from typing import Any

from hitproof.engine.scenario import ScenarioRun
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.scenario import Event, Fault, LeaseEvent, Scenario
from hitproof.spec.seen import FactValue, StepSeen, told_value

__all__ = ["steps_seen"]


def steps_seen(bound: BoundRulebook, scenario: Scenario) -> list[StepSeen]:
    """The states of a scenario on the engine; the first is the one before any step.

    Every beginning of the story is played by itself, so that what is told is what the engine holds then. The steps of
    a recovery come last; of them only their names are told, for it leaves segments as they are.

    Raises:
        HitproofError: The scenario cannot be run.
    """
    runs = [
        ScenarioRun(bound, scenario.model_copy(update={"events": scenario.events[:end]}))
        for end in range(len(scenario.events) + 1)
    ]
    states = [_state(run) for run in runs]
    found = [StepSeen(segments=states[0], leases=runs[0].leases.states())]
    for index, event in enumerate(scenario.events):
        run, changed = runs[index + 1], states[index] != states[index + 1]
        # A run knows the first event that was refused; a later one that changes nothing counts as refused too.
        found.append(_step(event, run, states[index + 1], happened=changed or run.refused is None))
    if scenario.recovery or scenario.expect.recovered is not None:
        ended, _ = runs[-1].recover()
        found += [
            StepSeen(who="recovery", does=step.step, segments=states[-1], leases=runs[-1].leases.states())
            for step in ended.steps
        ]
    return found


def _step(
    event: Event | LeaseEvent | Fault, run: ScenarioRun, state: dict[str, dict[str, FactValue]], *, happened: bool
) -> StepSeen:
    leases = run.leases.states()
    if isinstance(event, LeaseEvent):
        lease = leases[event.lease]
        answers = {"check": lease["checked"], "confirm": lease["confirmed"], "use": lease["reading"]}
        done = answers.get(event.does, True) is True
        to = sorted(run.leases.noted(event.lease))
        return StepSeen(who=event.lease, does=event.does, to=to, happened=done, segments=state, leases=leases)
    if isinstance(event, Fault):
        return StepSeen(who="fault", does="changes facts", to=[event.segment], segments=state, leases=leases)
    return StepSeen(does=event.trigger, to=[event.segment], happened=happened, segments=state, leases=leases)


def _state(run: ScenarioRun) -> dict[str, dict[str, FactValue]]:
    return {name: _facts(segment) for name, segment in run.segments.items()}


def _facts(segment: Any) -> dict[str, FactValue]:
    return {path: told_value(value) for path, value in segment.as_dict("").items()}
