"""The decision as it would be told: try every length, keep the cheapest that ends clean."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hitproof.engine.plain.attempt import Attempt, Looked, can_compute, in_order, peers_as_found, prefill
from hitproof.engine.plain.repairs import of_self
from hitproof.engine.plain.ways import attempt
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import SEVERITY, Decision, Verdict
from hitproof.spec.price import UNKNOWN_PRICE, microseconds
from hitproof.spec.rulebook import LEVELS

__all__ = ["plain_decide", "plain_lengths"]


def plain_decide(bound: BoundRulebook, state: Resolved) -> Decision:
    """Decide one request by trying every length; reasons are left out.

    The longest length at which identity holds is logical. Of the best plans of all lengths up to it, the first in the
    declared order is taken, unless reusing nothing comes before it, where that is possible at all. Prices that are
    unknown are all alike.
    """
    unknown = [f"door/{name}" for name in bound.rulebook.door if getattr(state.request, name) is None]
    if unknown:
        return Decision("miss", 0, 0, failed=tuple(unknown), digest=bound.rulebook.digest)
    tried = [attempt(bound, state, length) for length in plain_lengths(state)]
    longest = next((one for one in tried if one.matches), None)
    logical = longest.length if longest else 0
    from_nothing = prefill(bound, state, 0)
    best = min((one for one in tried if one.clean and one.length <= logical), key=partial(_place, bound), default=None)
    computes = can_compute(bound, state)
    if best is not None and computes and in_order(bound, from_nothing, 0, len(LEVELS), 0, ()) < _place(bound, best):
        best = None
    told = longest or next(iter(tried), None)
    return Decision(
        verdict=_verdict(bound, state, logical, best),
        logical=logical,
        usable=best.length if best else 0,
        plan=tuple(best.steps) if best else (),
        cost_us=microseconds(best.cost) if best else 0.0,
        total_us=microseconds(best.total if best else from_nothing),
        failed=_failed(told) if told else (),
        dispositions=_dispositions(told, best) if told else {},
        flags=tuple(_flags(bound, state, best)),
        digest=bound.rulebook.digest,
    )


def _place(bound: BoundRulebook, one: Attempt) -> tuple[object, ...]:
    mended = tuple(ids for ids in one.ids if ids)
    return in_order(bound, min(one.total, UNKNOWN_PRICE), one.length, one.level, len(one.steps), mended)


def plain_lengths(state: Resolved) -> list[int]:
    """Candidate lengths, longest first: hash units, stored boundaries and ends of segments."""
    pieces = [piece for held in state.pieces.values() for piece in held]
    odd = {piece.end for piece in pieces} | {mark for piece in pieces for mark in piece.marks or ()}
    top = min(state.request.length - 1, state.matched)
    return [length for length in range(top, 0, -1) if length % state.request.granularity == 0 or length in odd]


def _verdict(bound: BoundRulebook, state: Resolved, logical: int, best: Attempt | None) -> Verdict:
    if best is not None:
        level = max((LEVELS.index(step.level) for step in best.steps), default=None)
        return "reuse" if level is None else SEVERITY[LEVELS[level]]  # type: ignore[return-value]
    if not can_compute(bound, state):
        return "refuse"
    return "recompute" if logical else "miss"


def _failed(told: Attempt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{one.group.id}/{check}" for one in told.mandatory for check in one.failed))


def _dispositions(told: Attempt, best: Attempt | None) -> dict[str, str]:
    """The first rule that applies to a piece which failed, with peers as they were found; what is read is kept."""
    read = {(one.group.id, one.index) for one in _read_as_found(best)}
    result: dict[str, str] = {}
    for pieces in told.looked.values():
        for one in pieces:
            if not one.failed:
                continue
            if one.group.rules.mandatory:
                result.setdefault(one.group.id, "keep")
            gone = one.before["form"] == "discarded" or (one.group.id, one.index) in read
            rules = () if gone else one.group.dispositions
            env = {**one.env, **peers_as_found(told, one)}
            then = next((rule.then for rule in rules if interpret(rule.when, env) is True), "keep")
            if then != "keep":
                result[one.group.id] = then
    return result


def _flags(bound: BoundRulebook, state: Resolved, best: Attempt | None) -> Iterator[str]:
    request = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime.")}
    used = list(_read_as_found(best))
    for flag in bound.flags:
        if flag.over == "request":
            if interpret(flag.unless["*"], {**request, "length": best.length if best else 0}) is not True:
                yield flag.id
        elif any(
            interpret(flag.unless[one.group.object], of_self(one.before)) is not True
            for one in used
            if one.group.constants.get("has_bytes") and one.before["form"] == one.group.home
        ):
            yield flag.id


def _read_as_found(best: Attempt | None) -> Iterator[Looked]:
    """Pieces whose own bytes the answer reads, or copies: those that are needed and that no repair makes anew."""
    for one in best.mandatory if best else ():
        taken = {step.option for step in one.steps}
        anew = any(option.id in taken and not option.own_bytes for option in one.group.options)
        if one.index >= 0 and not anew and interpret(one.group.needed, one.env) is not False:
            yield one
