"""What an event of the form machine means: its guard and its effects, written to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import Node, interpret, reads
from hitproof.spec.errors import HitproofError
from hitproof.spec.facts import Fact, Value, admit
from hitproof.spec.rulebook import Transition

__all__ = [
    "EventContext",
    "ImpossibleEventError",
    "PINS_ALLOWED",
    "PlainTransition",
    "admit_argument",
    "paths_read",
]

PINS_ALLOWED: Mapping[str, int | None] = {"unpinned": 0, "exclusive": 1, "any": None}
"""How many pins a segment must have, by the transition's `pins`; None is any number."""


class ImpossibleEventError(HitproofError):
    """An event that a segment's object does not have, or not in the form that the segment is in."""

    code = "event"

    @classmethod
    def of(cls, segment: Any, trigger: str) -> ImpossibleEventError:
        """The error for this segment and this event."""
        return cls(
            f"'{trigger}' cannot happen to a segment of group '{segment.group}' in the form '{segment.form}'",
            rule=trigger,
            got=f"{segment.group}.{segment.form}",
            hint="the group's object declares its events, each with the forms that it leaves from",
        )


@dataclass(frozen=True, slots=True)
class EventContext:
    """What an event reads beside the segment.

    Args:
        runtime: Run-time facts.
        kernel: Kernel contract of the segment's group.
        arguments: What the actor measured or chose, by fact; what does not fit the fact's domain is unknown.
        donor: A segment of the same group whose facts a transition with `donor` copies.
        sole: The segment's block has no other owner.
    """

    runtime: Any
    kernel: Any
    arguments: Mapping[str, object] = field(default_factory=dict)
    donor: Any = None
    sole: bool = False


def admit_argument(fact: Fact, value: object) -> Value:
    """An argument as a fact: a list of tokens counts as a set, what does not fit is unknown."""
    if fact.type.kind == "set" and isinstance(value, list | tuple | set):
        value = frozenset(value) if all(type(item) is int for item in value) else None
    return admit(fact, value)


def paths_read(transition: Transition) -> frozenset[str]:
    """Every fact that the guard or an effect of a transition reads."""
    guard = () if transition.when is None else (transition.when,)
    return frozenset(path for node in (*transition.sets.values(), *guard) for path in reads(node))


class PlainTransition:
    """One transition of one group, interpreted; the plain twin of the table's generated functions.

    Effects read the state before and are assigned at once: first the donor's facts, over them what is taken,
    over that what is set, over that what is forgotten. The form then is the target. The pins stay, or are
    none where a donor's facts were copied, and the epoch grows by one unless the transition `keeps_prefix`;
    an effect that names one of the two has the last word.

    Args:
        transition: The bound transition.
        group: The group whose segments it changes.
        owned: Facts that must stay known; a transition that would lose one does not fire.
    """

    def __init__(self, transition: Transition, group: BoundGroup, owned: frozenset[str]) -> None:
        self.transition, self.facts, self.owned = transition, group.facts, owned
        self._paths = sorted(paths_read(transition))

    def changes(self, segment: Any, context: EventContext) -> dict[str, Value] | None:
        """The facts that the event assigns, or None where the transition does not fire; changes nothing."""
        transition = self.transition
        if not (self._pins_allow(segment) and self._owner_allows(context)):
            return None
        if not self._donor_fits(segment, context):
            return None
        env = self._environment(segment, context)
        if transition.when is not None and interpret(transition.when, env) is not True:
            return None
        changes: dict[str, Value] = {"form": transition.target}
        if not transition.keeps_prefix:
            changes["epoch"] = admit(self.facts["epoch"], segment.epoch + 1)
        if transition.donor:
            copied = (fact for fact in self.facts if fact not in ("form", "epoch", "pins"))
            changes |= {fact: getattr(context.donor, fact) for fact in copied}
            changes["pins"] = 0
        for fact in transition.takes:
            changes[fact] = admit_argument(self.facts[fact], context.arguments.get(fact))
        for fact, node in transition.sets.items():
            changes[fact] = self._value(fact, node, env)
        changes |= dict.fromkeys(transition.forgets)
        changes["form"] = transition.target
        lost = any(changes[fact] is None for fact in self.owned & set(changes))
        return None if lost else changes

    def _pins_allow(self, segment: Any) -> bool:
        allowed = PINS_ALLOWED[self.transition.pins]
        return allowed is None or segment.pins == allowed

    def _owner_allows(self, context: EventContext) -> bool:
        return self.transition.owner != "sole" or context.sole is True

    def _donor_fits(self, segment: Any, context: EventContext) -> bool:
        if not self.transition.donor:
            return True
        donor = context.donor
        return donor is not None and donor is not segment and donor.group == segment.group

    def _value(self, fact: str, node: Node, env: Mapping[str, Value]) -> Value:
        return admit(self.facts[fact], interpret(node, env))

    def _environment(self, segment: Any, context: EventContext) -> dict[str, Value]:
        """Facts by path; what an event cannot read (the request, a donor it did not ask for) is left out."""
        carriers = {"self": segment, "runtime": context.runtime, "kernel": context.kernel}
        if self.transition.donor:
            carriers["donor"] = context.donor
        env: dict[str, Value] = {}
        for path in self._paths:
            scope, _, fact = path.partition(".")
            if scope in carriers:
                env[path] = getattr(carriers[scope], fact)
            elif scope == "event":
                env[path] = admit_argument(self.facts[fact], context.arguments.get(fact))
        return env
