"""What was seen while a story was played: rules with the values that they read, and the state after each step."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from hitproof.spec.facts import Value

__all__ = ["ConjunctSeen", "FactValue", "RuleSeen", "StepSeen", "told_value"]

FactValue = bool | int | float | str | list[int] | None
"""A fact as it stands in a file: a list of integers is a set of tokens; `unknown` or nothing is unknown."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ConjunctSeen(_Model):
    """One part of a condition, as it was judged.

    Args:
        text: The part as it is written.
        holds: None where it is neither surely true nor surely false.
        values: Facts that it read; None is unknown.
    """

    text: str
    holds: bool | None
    values: dict[str, FactValue] = {}


class RuleSeen(_Model):
    """One rule of a story, as it was judged at one moment of it.

    Args:
        rule: `object/check`, `object/option`, `object/event`, or the id of an invariant.
        place: `file:line:column`.
        moment: When: at a length, before an event, after a repair.
        conjuncts: The parts of its condition, in the order in which they are written.
        changes: Facts that the event or the repair has changed, before and after.
    """

    rule: str
    place: str
    moment: str
    conjuncts: list[ConjunctSeen]
    changes: dict[str, tuple[FactValue, FactValue]] = {}


class StepSeen(_Model):
    """The state of a story after one of its steps; the first is the state before any.

    Args:
        who: Who acts: a lease, `recovery`, or nobody in particular.
        does: What is done.
        to: The segments that it is done to.
        happened: False where the event was refused, or the answer was no.
        segments: Facts of every segment, by its id; None is unknown.
        leases: What each lease has come to, by its name.
    """

    who: str = ""
    does: str = ""
    to: list[str] = []
    happened: bool = True
    segments: dict[str, dict[str, FactValue]]
    leases: dict[str, dict[str, bool | None]] = {}


def told_value(value: Value) -> FactValue:
    """A fact's value as files tell it: a set as its sorted members."""
    return sorted(value) if isinstance(value, frozenset) else value
