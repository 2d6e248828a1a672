"""The answer about a hit of which not all may be used: how long it is, and why not longer."""

from __future__ import annotations

from hitproof.engine import Engine, Resolved
from hitproof.engine.reasons import explain_failures
from hitproof.spec.decision import Decision

__all__ = ["answer", "at_the_door"]


def at_the_door(engine: Engine, state: Resolved) -> bool:
    """Whether some fact of the request is unknown without which no rule is asked."""
    return any(getattr(state.request, name) is None for name in engine.bound.rulebook.door)


def answer(engine: Engine, state: Resolved, usable: int) -> Decision:
    """The decision of a look-up whose longest clean length is known to be `usable` and is not all of it.

    Args:
        engine: Rules and model.
        state: The look-up; the door is passed, and `matched` is the longest length that may be used.
        usable: The longest length at which nothing fails, 0 for none.
    """
    logical = engine.longest_match(state)
    # An engine explains its longest logical length; here the question is what stood in the way of the whole claim.
    outcome = engine.judge.outcome(state, engine.judge.nothing(), state.matched) if state.matched else None
    failed, reasons = explain_failures(engine.judge, state, outcome)
    verdict = "reuse" if usable else "recompute" if logical else "miss"
    if not usable and not engine.can_recompute(state):
        verdict = "refuse"
    total = engine.prefill(state, usable)
    digest = engine.bound.rulebook.digest
    return Decision(verdict, logical, usable, (), 0.0, total, failed, reasons, digest=digest)  # type: ignore[arg-type]
