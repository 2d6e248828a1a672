"""Which rules decided something in a run of scenarios, and which never did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import Position
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.scenario import Event, Scenario, ScenarioResult

__all__ = ["Coverage"]


class Coverage:
    """Counts rules as they are written: one that several objects inherit counts once, as `*/id`.

    A check is decisive where it failed at the longest logical length, an option where it is part of the plan, the full
    recompute where the verdict says so, a transition where an event asked for it, a disposition where it was the first
    to apply to what failed, a flag where it was raised, a rule of admission where it stood against the plan that was
    wanted, a step of a recovery where it was taken.
    """

    def __init__(self, rulebook: Rulebook) -> None:
        rules = list(rulebook.objects.values())
        checks = [(check.where, check.object, check.id) for one in rules for check in one.checks]
        checks += [(one.resumable.where, one.name, "resumable") for one in rules if one.resumable.condition is not None]
        self._labels = {
            "checks": _labels(checks),
            "options": _labels((o.where, o.object, o.id) for one in rules for o in one.options),
            "transitions": {one.where: one.id for rule in rules for one in rule.transitions},
            "dispositions": _labels((d.where, d.object, d.id) for some in rulebook.dispositions.values() for d in some),
            "flags": {one.where: one.id for one in rulebook.flags},
            "admission": {one.where: one.id for one in rulebook.policy.admission.values()},
            "steps": {} if rulebook.recovering is None else {one.where: one.id for one in rulebook.recovering.steps},
        }
        self._seen: dict[str, set[Position]] = {kind: set() for kind in self._labels}

    def note(self, bound: BoundRulebook, scenario: Scenario, result: ScenarioResult) -> None:
        """Count what one scenario exercised; changes this object."""
        checks = {f"{group.id}/{check.id}": check.where for group in bound.groups for check in group.checks}
        options = {f"{group.id}/{option.id}": option.where for group in bound.groups for option in group.options}
        if result.decision is not None:
            self._count("checks", checks, [*result.decision.failed, *result.beside])
            plan = result.decision.plan
            self._count("options", options, (f"{step.group}/{step.option}" for step in plan))
            if result.decision.verdict == "recompute":
                self._seen["options"].update(one.recompute.where for one in bound.groups if one.recompute)
            self._count("flags", {flag.id: flag.where for flag in bound.flags}, result.decision.flags)
            admission = {f"admission/{one.id}": one.where for one in bound.rulebook.policy.admission.values()}
            self._count("admission", admission, (reason.rule for reason in result.decision.admission))
        disposing = {f"{group.id}/{one.id}": one.where for group in bound.groups for one in group.dispositions}
        self._count("dispositions", disposing, result.beside)
        groups = {segment.id: segment.group for segment in scenario.segments}
        transitions = {f"{group.id}/{one.id}": one.where for group in bound.groups for one in group.transitions}
        events = (event for event in scenario.events if isinstance(event, Event))
        fired = (f"{groups.get(event.segment)}/{event.trigger}" for event in events)
        self._count("transitions", transitions, fired)
        process = bound.rulebook.recovering
        self._count("steps", {} if process is None else {one.id: one.where for one in process.steps}, result.steps)

    def as_dict(self) -> dict[str, Any]:
        """By kind of rule: how many were decisive, of how many, and the ids of the rest."""
        return {
            kind: {
                "decisive": len(self._seen[kind] & set(labels)),
                "total": len(labels),
                "never": sorted(label for where, label in labels.items() if where not in self._seen[kind]),
            }
            for kind, labels in self._labels.items()
        }

    def _count(self, kind: str, places: Mapping[str, Position], names: Iterable[str]) -> None:
        self._seen[kind].update(places[name] for name in names if name in places)


def _labels(rules: Iterable[tuple[Position, str, str]]) -> dict[Position, str]:
    labels: dict[Position, str] = {}
    for where, owner, name in rules:
        labels[where] = f"*/{name}" if where in labels else f"{owner}/{name}"
    return labels
