"""Logs of a running cache manager, judged by the transition relation that the proofs are about.

What is proved of every step is said of this manager where each of its steps is one of the relation's: an event as
`steps.py` reads it from the rulebook, a call of a lease as `holder.py` has it, or a fault that was done on purpose; and
where nothing changes in between. The engine's own tables and leases are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.facts import Value
from hitproof.spec.steplog import EventTaken, Facts, FaultDone, LeaseTaken, Restored, Seen, StepTaken
from hitproof.verification.accepted_calls import Calls, Told
from hitproof.verification.accepted_events import Events

__all__ = ["Acceptor"]


@dataclass(frozen=True, slots=True)
class _Relation:
    events: Events
    calls: Calls


class Acceptor:
    """Reads the steps of one manager in their order, from its first one on.

    Args:
        bound: The rulebook, bound to the manager's model.
    """

    def __init__(self, bound: BoundRulebook) -> None:
        self._relations = {group.id: _Relation(Events(bound, group), Calls(bound, group)) for group in bound.groups}
        self._last: dict[int, Facts] = {}
        self._leases: dict[tuple[int, int], Told] = {}
        self.accepted = 0

    def restart(self) -> None:
        """What follows is the log of another manager of the same model."""
        self._last, self._leases = {}, {}

    def refusal(self, step: StepTaken) -> str:
        """Why a step is none of the relation's; empty where it is one."""
        seen = step.segments if isinstance(step, LeaseTaken) else (step.segment,)
        why = self._continues(seen) or self._judged(step)
        if not why:
            self.accepted += 1
        return why

    def unseen(self, now: Iterable[Seen]) -> str:
        """What was changed after the last step, and by none; empty where nothing was."""
        return self._continues(now)

    def _continues(self, segments: Iterable[Seen]) -> str:
        for one in segments:
            last = self._last.get(one.number)
            if last is None and not self._relations[one.group].calls.begins(one.before):
                return f"a segment of group '{one.group}' begins as {one.before['form']}"
            if last is not None and last != one.before:
                changed = sorted(name for name in last if last[name] != one.before[name])
                return f"{', '.join(changed)} of a segment of group '{one.group}' changed between two steps"
            self._last[one.number] = one.after
        return ""

    def _judged(self, step: StepTaken) -> str:
        if isinstance(step, FaultDone):
            return _fault(step.segment)
        what = "restore"
        if isinstance(step, EventTaken):
            what = step.event
        elif isinstance(step, LeaseTaken):
            what = step.does
        if not step.locked:
            return f"'{what}' was no single step: others could come in between"
        if isinstance(step, EventTaken):
            return self._relations[step.segment.group].events.refusal(step)
        if isinstance(step, Restored):
            return self._restored(step.segment)
        return self._called(step)

    def _restored(self, one: Seen) -> str:
        """A start may state what it likes of a segment that lies on the disk, but its epoch goes on."""
        grown = _count(one.after["epoch"]) > _count(one.before["epoch"])
        if one.before["form"] == "discarded" and grown and self._relations[one.group].calls.begins(one.after):
            return ""
        return f"a segment of group '{one.group}' is restored as nothing that a disk keeps"

    def _called(self, step: LeaseTaken) -> str:
        as_noted = []
        for one, noted in zip(step.segments, step.noted, strict=True):
            calls, key = self._relations[one.group].calls, (step.lease, one.number)
            told = self._leases.get(key, Told(0))
            if step.does == "confirm":
                as_noted.append(calls.as_noted(one.before, told))
            told, why = calls.after(step, one, told, tuple(sorted(noted.items())))
            if why:
                return f"group '{one.group}': {why}"
            self._leases[key] = told
            if calls.over(told):
                del self._leases[key]
        if step.does == "confirm" and step.answer is not all(as_noted):
            return f"a confirmation says {step.answer}, and that all is as noted is {all(as_noted)}"
        return ""


def _fault(one: Seen) -> str:
    """The faults of the relation: a pin is lost, or a page table entry is changed."""
    changed = {name for name in one.before if one.before[name] != one.after[name]}
    lost = changed == {"pins"} and _count(one.after["pins"]) == _count(one.before["pins"]) - 1
    return "" if lost or changed <= {"mapped_generation"} else f"no fault changes {', '.join(sorted(changed))}"


def _count(value: Value) -> int:
    return value if isinstance(value, int) else -1
