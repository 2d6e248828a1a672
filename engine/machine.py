"""The form machine: one `transitions.Machine` over all segments, none of which it ever holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transitions import EventData, Machine, MachineError

from hitproof.engine.event import EventContext, ImpossibleEventError, PlainTransition
from hitproof.engine.facts import FactTypes
from hitproof.spec.bound import BoundGroup, BoundRulebook
from hitproof.spec.facts import Value

__all__ = ["FormMachine", "ImpossibleEventError"]


class FormMachine:
    """Changes the forms of segments by the transitions of a bound rulebook.

    States are `group.form`, as `SegmentFacts.state` gives them. The machine holds no segment and no state of
    its own; whoever shares segments between threads guards each event with the lock that guards their pins.

    Args:
        bound: The rulebook, bound to a profile.
        types: The carriers that the segments are made of.
    """

    def __init__(self, bound: BoundRulebook, types: FactTypes) -> None:
        self.bound, self.types = bound, types
        self._machine = Machine(**self._plan())

    def fire(self, segment: Any, trigger: str, context: EventContext) -> bool:
        """Let an event happen to a segment: the first transition in file order whose guard holds changes it.

        Args:
            segment: The segment; changed where the answer is True.
            trigger: Id of the transition.
            context: What the event reads beside the segment.

        Returns:
            False where the event is possible but pins, owner, donor or condition do not allow it, or where an
            effect would leave a fact unknown that must be known.

        Raises:
            ImpossibleEventError: The segment's object does not have the event, or not in this form.
        """
        event = self._machine.events.get(trigger)
        state = segment.state
        if event is None or state not in self._machine.states:
            raise ImpossibleEventError.of(segment, trigger)
        try:
            return bool(event.trigger(segment, firing=_Firing(context)))
        except MachineError as error:
            raise ImpossibleEventError.of(segment, trigger) from error

    def triggers(self, state: str) -> tuple[str, ...]:
        """The events that are possible in a state `group.form`, in file order."""
        return tuple(name for name, event in self._machine.events.items() if state in event.transitions)

    def as_data(self) -> dict[str, Any]:
        """The machine as plain data, read back from the library: states and transitions."""
        from transitions.extensions.markup import MarkupMachine

        markup = MarkupMachine(**self._plan()).markup
        return {
            "states": [state["name"] for state in markup["states"]],
            "transitions": [{key: one[key] for key in ("trigger", "source", "dest")} for one in markup["transitions"]],
        }

    def _plan(self) -> dict[str, Any]:
        forms = self.bound.rulebook.enums["form"]
        return {
            "model": None,
            "initial": None,
            "auto_transitions": False,
            "send_event": True,
            "model_attribute": "state",
            "states": [f"{group.id}.{form}" for group in self.bound.groups for form in forms],
            "transitions": [one for group in self.bound.groups for one in self._transitions(group)],
        }

    def _transitions(self, group: BoundGroup) -> list[dict[str, Any]]:
        found = []
        for transition in group.transitions:
            plain = PlainTransition(transition, group, self.bound.rulebook.engine_owned)
            for source in dict.fromkeys(transition.sources):
                found.append(
                    {
                        "trigger": transition.id,
                        "source": f"{group.id}.{source}",
                        "dest": f"{group.id}.{transition.target}",
                        "conditions": _guard(plain),
                        "after": _assign,
                    }
                )
        return found


class _Firing:
    """One event on its way: the guard works out the changes on the state before, `after` assigns them."""

    __slots__ = ("changes", "context")

    def __init__(self, context: EventContext) -> None:
        self.context = context
        self.changes: dict[str, Value] = {}


def _guard(plain: PlainTransition) -> Callable[[EventData], bool]:
    def guard(event: EventData) -> bool:
        firing: _Firing = event.kwargs["firing"]
        changes = plain.changes(event.model, firing.context)
        firing.changes = changes or {}
        return changes is not None

    return guard


def _assign(event: EventData) -> None:
    firing: _Firing = event.kwargs["firing"]
    for fact, value in firing.changes.items():
        setattr(event.model, fact, value)
