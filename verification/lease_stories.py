"""From a trace of one holder and one segment to a scenario that the engine replays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hitproof.spec.leasing import BESIDE
from hitproof.spec.scenario import (
    Event,
    Expectation,
    FactValue,
    Fault,
    LeaseEvent,
    LeaseExpectation,
    Scenario,
    SegmentDecl,
)
from hitproof.verification.decode import decode_event, decode_scenario, decode_value, segment_of
from hitproof.verification.holder import Move, State
from hitproof.verification.traces import Trace

__all__ = ["tell"]

SEGMENT, LEASE = "s", "l"
NEXT_OWNER = "t"
SAYS = {
    "read as checked": "the device reads what is no longer what was checked",
    "confirmation tells": "a lease is confirmed although what it noted has changed",
    "epoch tells": "what a lease noted has changed, and its epoch has not",
    "pins stay": "a lease is held, and its pin is gone",
    "pins given back": "a lease is over, and its pin is still there",
}
"""What a failed goal means, in plain words."""


def tell(trace: Trace) -> tuple[str, Scenario | None]:
    """A trace in words, and as a scenario; None where no fact would show what went wrong."""
    steps = ", ".join(move.label for move in trace.moves)
    broken = trace.broken[0]
    sentence = f"{SAYS.get(broken, f'{broken} fails')}, after: {steps}"
    known = {name for name in trace.broken if name in SAYS}
    of_content = known & {"read as checked", "confirmation tells", "epoch tells"}
    changed = _changed(trace) if of_content else []
    if of_content and not changed:
        return sentence, None
    facts: dict[str, FactValue] = {}
    segments, events = _segments(trace), list(_events(trace))
    if known & {"pins given back", "pins stay"}:
        facts[f"{SEGMENT}.pins"] = _value(trace, trace.states[-1], "pins")
    if "read as checked" in known:
        taken = _taken_by_another(trace)
        if taken is not None:
            segments.append(taken[0])
            events.append(taken[1])
            facts |= {
                f"{NEXT_OWNER}.form": "pending",
                **{f"{NEXT_OWNER}.{k}": v for k, v in taken[1].arguments.items()},
            }
    lease = LeaseExpectation(
        confirmed=True if known & {"read as checked", "confirmation tells"} else None,
        reading=True if "read as checked" in known else None,
        epochs_kept=True if "epoch tells" in known else None,
        released=True if "pins given back" in known else False if "pins stay" in known else None,
        changed={SEGMENT: changed} if changed else None,
        violates=sorted(set(trace.broken) - known) or None,
    )
    scenario = decode_scenario(
        trace.model,
        trace.world,
        "check_to_use",
        SAYS.get(broken, f"'{broken}' is violated"),
        Expectation(leases={LEASE: lease}, facts=facts or None),
        segments=segments,
        fill=False,
    )
    return sentence, scenario.model_copy(update={"events": events})


def _segments(trace: Trace) -> list[SegmentDecl]:
    """The segment, the peers that its checks read, and those whose facts were copied."""
    found = [segment_of(trace.model, trace.group, name=SEGMENT, length=trace.length)]
    for name, model in trace.world.models.items():
        if name != trace.group.group.id:
            found.append(segment_of(trace.model, model, length=trace.length))
    for depth, move in enumerate(trace.moves):
        if move.step is not None and move.step.donor is not None:
            found.append(segment_of(trace.model, trace.group, move.step.donor, _donor(depth)))
    return found


def _donor(depth: int) -> str:
    return f"d{depth}"


def _events(trace: Trace) -> Iterator[Event | LeaseEvent | Fault]:
    for depth, (move, before, after) in enumerate(zip(trace.moves, trace.states[:-1], trace.states[1:], strict=True)):
        if move.step is not None:
            donor = _donor(depth) if move.step.donor is not None else None
            yield decode_event(trace.model, trace.group, SEGMENT, move.step, donor=donor, length=trace.length)
        elif move.does == "fault":
            names = [name for name in ("pins", "mapped_generation") if _moved(trace, before, after, name)]
            yield Fault(segment=SEGMENT, leaves={name: _value(trace, after, name) for name in names})
        else:
            yield _call(trace, move, before)


def _call(trace: Trace, move: Move, before: State) -> LeaseEvent:
    if move.does == "take":
        return LeaseEvent(lease=LEASE, does="take", segments=[SEGMENT])
    if move.does == "check":
        at_home = _value(trace, before, "form") == trace.group.group.home
        return LeaseEvent(lease=LEASE, does="check", at=trace.length if at_home else None)
    return LeaseEvent.model_validate({"lease": LEASE, "does": move.does})


def _value(trace: Trace, state: State, name: str) -> FactValue:
    return decode_value(trace.model, trace.group.group.facts[name], state.facts(name), {trace.length})


def _moved(trace: Trace, before: State, after: State, name: str) -> bool:
    return _value(trace, before, name) != _value(trace, after, name)


def _changed(trace: Trace) -> list[str]:
    """Facts of content and place that at the end are not what they were when they were noted.

    Sets are left out: of one only the members are told that a story mentions.
    """
    taken = next((index for index, move in enumerate(trace.moves) if move.does == "take"), None)
    if taken is None:
        return []
    noted, last = trace.states[taken], trace.states[-1]
    facts = trace.group.group.facts
    names = [name for name, fact in facts.items() if name not in BESIDE and fact.type.kind != "set"]
    return sorted(name for name in names if _moved(trace, noted, last, name))


def _taken_by_another(trace: Trace) -> tuple[SegmentDecl, Event] | None:
    """Where the last event has freed the block that is read: another segment to which it is given."""
    step = next((move.step for move in reversed(trace.moves) if move.step is not None), None)
    group = trace.group.group
    allocate: Any = next((one for one in group.transitions if one.allocates and "discarded" in one.sources), None)
    if step is None or not step.transition.frees or allocate is None or allocate.when is not None:
        return None
    address = _value(trace, trace.states[0], "address")
    if address is None:
        return None
    nothing: dict[str, FactValue] = {
        "form": "discarded",
        "tier": "nowhere",
        "bound_for": "device",
        "generation": 0,
        "published": False,
        "pins": 0,
        "epoch": 0,
    }
    spare = SegmentDecl(id=NEXT_OWNER, group=group.id, blank=True, facts=nothing)
    return spare, Event(segment=NEXT_OWNER, trigger=allocate.id, arguments={"address": address})
