"""A counterexample as a trace in the Informal Trace Format of Apalache (its ADR-015), which trace viewers read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitproof.spec.proof import Counterexample
from hitproof.spec.seen import FactValue, StepSeen

__all__ = ["itf"]

LARGEST = 2**53 - 1
"""Beyond it, and below its negative, a number of JSON is not exact in every reader."""

BEFORE = {"checked": None, "confirmed": None, "reading": False, "released": False}
"""What a lease has come to before it is taken."""


def itf(found: Counterexample, steps: Sequence[StepSeen]) -> dict[str, Any]:
    """The trace: a variable for each segment and lease, and `action` for what led to the state.

    A fact that is unknown, or a fraction, is no value of that format and stands there as unserializable.

    Args:
        found: The counterexample.
        steps: Its states; the first is before any step.
    """
    leases = sorted({name for step in steps for name in step.leases})
    segments = list(steps[0].segments)
    return {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "description": found.sentence,
            "source": f"{found.rule} ({found.place})",
        },
        "vars": ["action", *(f"segment_{name}" for name in segments), *(f"lease_{name}" for name in leases)],
        "states": [
            {
                "#meta": {"index": index},
                "action": _action(step),
                **{f"segment_{name}": _record(step.segments[name]) for name in segments},
                **{f"lease_{name}": _record({"taken": name in step.leases, **_lease(step, name)}) for name in leases},
            }
            for index, step in enumerate(steps)
        ],
    }


def _action(step: StepSeen) -> str:
    told = " ".join(part for part in (step.who, step.does, *step.to) if part) or "the beginning"
    return told if step.happened else f"{told}: no"


def _lease(step: StepSeen, name: str) -> dict[str, FactValue]:
    return {**BEFORE, **step.leases.get(name, {})}


def _record(facts: dict[str, FactValue]) -> dict[str, Any]:
    return {name: _value(value) for name, value in facts.items()}


def _value(value: FactValue) -> Any:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -LARGEST <= value <= LARGEST else {"#bigint": str(value)}
    if isinstance(value, list):
        return {"#set": [_value(one) for one in value]}
    return {"#unserializable": "unknown" if value is None else repr(value)}
