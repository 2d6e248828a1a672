"""Another plan beside the engine's: whether it ends well, and what it costs at the declared prices."""

from __future__ import annotations

from collections.abc import Sequence

from hitproof.engine.plain.attempt import Looked, can_compute, surroundings
from hitproof.engine.plain.pieces import pieces_at
from hitproof.engine.plain.repairs import failing, may_run, of_self, run
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import interpret
from hitproof.spec.decision import Decision

__all__ = ["declared_price", "why_not_cheaper"]


def why_not_cheaper(
    bound: BoundRulebook, state: Resolved, decision: Decision, length: int, steps: Sequence[str]
) -> str | None:
    """None where a plan ends well and costs less than the decision at the declared prices; else why not.

    Args:
        steps: `group/option`, each on the first piece of the group that is read.
    """
    names = [(name.partition("/")[0], None, name.partition("/")[2]) for name in steps]
    theirs = declared_price(bound, state, length, names)
    chosen = [(step.group, step.segment, step.option) for step in decision.plan]
    ours = declared_price(bound, state, decision.usable, chosen)
    for price, whose in ((theirs, "it"), (ours, "the decision's plan")):
        if isinstance(price, str):
            return f"{whose} has no price: {price}"
    return None if theirs < ours else f"it costs {theirs} and the decision {ours} us"  # type: ignore[operator]


def declared_price(
    bound: BoundRulebook, state: Resolved, length: int, steps: Sequence[tuple[str, int | None, str]]
) -> float | str:
    """What a plan and the prefill behind its length cost as the rules declare it, in microseconds.

    Nothing is rounded, and a price below 0 stays below 0.

    Args:
        steps: Group, index of the piece, and option; no index stands for the first piece of the group that is read.

    Returns:
        The price; a text where a step may not run, some price is unknown, or a check fails at the end.
    """
    request = {**state.request.as_dict("request."), **state.runtime.as_dict("runtime.")}
    rest = interpret(bound.rulebook.prefill.cost, {**request, "length": length})
    if rest is None:
        return "the price of prefill is unknown"
    total = float(rest)
    if not length and not can_compute(bound, state):
        return "the request does not bring what the prompt is computed from"
    if not length:
        return total if not steps else "nothing is reused, so no step can run"
    joint: dict[str, float] = {}
    looked: dict[str, list[Looked]] = {}
    for group in bound.groups:
        looked[group.id] = []
        for place, (index, segment, share) in enumerate(pieces_at(group, state, length)):
            around, after = surroundings(group, state, length, looked, share), segment
            wanted = [
                name for owner, at, name in steps if owner == group.id and (at == index or (at is None and not place))
            ]
            for name in wanted:
                now = {**around, **of_self(after)}
                option = next((one for one in group.options if one.id == name), None)
                if option is None or not may_run(group, option, failing(group, now), now):
                    return f"{group.id}/{name} may not run"
                price, then = interpret(option.cost, now), run(group, option, now, bound.rulebook.engine_owned)
                if price is None or then is None:
                    return f"{group.id}/{name} has no price, or cannot run"
                after = then
                if option.joint is None:
                    total += float(price)
                else:
                    joint[option.joint] = max(float(price), joint.get(option.joint, float(price)))
            env = {**around, **of_self(after)}
            left = failing(group, env)
            looked[group.id].append(Looked(group, index, share, segment, env, left, after, left, []))
            if left and group.rules.mandatory:
                return f"{group.id} is left with {', '.join(left)}"
    return total + sum(joint.values())
