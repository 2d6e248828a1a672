"""The decision as it would be told: try every length, keep the cheapest that ends clean."""

from __future__ import annotations

from collections.abc import Iterator

from hitproof.engine.plain.attempt import Attempt, attempt, prefill
from hitproof.engine.plain.repairs import of_self
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import SEVERITY, Decision, Verdict
from hitproof.spec.rulebook import LEVELS

__all__ = ["plain_decide", "plain_lengths"]


def plain_decide(bound: BoundRulebook, state: Resolved) -> Decision:
    """Decide one request by trying every length; reasons are left out.

    The longest length at which identity holds is logical. Of those up to it that end clean, the cheapest is used, the
    longest of them where several cost the same; none where computing everything is cheaper still.
    """
    unknown = [f"door/{name}" for name in bound.rulebook.door if getattr(state.request, name) is None]
    if unknown:
        return Decision("miss", 0, 0, failed=tuple(unknown), digest=bound.rulebook.digest)
    tried = [attempt(bound, state, length) for length in plain_lengths(state)]
    longest = next((one for one in tried if one.matches), None)
    logical = longest.length if longest else 0
    from_nothing = prefill(bound, state, 0)
    sound = [one for one in tried if one.clean and one.length <= logical and one.total <= from_nothing]
    best = min(sound, key=lambda one: (one.total, -one.length), default=None)
    told = longest or next(iter(tried), None)
    return Decision(
        verdict=_verdict(bound, state, logical, best),
        logical=logical,
        usable=best.length if best else 0,
        plan=tuple(best.steps) if best else (),
        cost_us=best.cost if best else 0.0,
        total_us=best.total if best else from_nothing,
        failed=_failed(told) if told else (),
        dispositions=_dispositions(told) if told else {},
        flags=tuple(_flags(bound, state, best)),
        digest=bound.rulebook.digest,
    )


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
    request = state.request.as_dict("request.")
    if not all(one.recompute and interpret(one.recompute.when, request) is True for one in bound.groups):
        return "refuse"
    return "recompute" if logical else "miss"


def _failed(told: Attempt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{one.group.id}/{check}" for one in told.mandatory for check in one.failed))


def _dispositions(told: Attempt) -> dict[str, str]:
    result: dict[str, str] = {}
    for pieces in told.looked.values():
        for one in pieces:
            if not one.failed:
                continue
            if one.group.rules.mandatory:
                result.setdefault(one.group.id, "keep")
            rules = one.group.dispositions if one.before["form"] != "discarded" else ()
            then = next((rule.then for rule in rules if interpret(rule.when, one.env) is True), "keep")
            if then != "keep":
                result[one.group.id] = then
    return result


def _flags(bound: BoundRulebook, state: Resolved, best: Attempt | None) -> Iterator[str]:
    request = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime.")}
    used = [one for pieces in best.looked.values() for one in pieces] if best else []
    for flag in bound.flags:
        if flag.over == "request":
            if interpret(flag.unless["*"], {**request, "length": best.length if best else 0}) is not True:
                yield flag.id
        elif any(
            interpret(flag.unless[one.group.object], of_self(one.after)) is not True
            for one in used
            if one.index >= 0 and one.group.constants.get("has_bytes") and one.after["form"] == one.group.home
        ):
            yield flag.id
