"""What each length would take: for ranks that choose one together, and a decision at a length that was agreed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitproof.engine.candidates import proposed_lengths, resumable_lengths
from hitproof.engine.canonical import digest_of
from hitproof.engine.decide import Engine, plan_step, verdict_of
from hitproof.engine.outcome import Outcome
from hitproof.engine.state import Resolved
from hitproof.spec.decision import Decision, Verdict
from hitproof.spec.price import UNKNOWN_PRICE, microseconds
from hitproof.spec.rulebook import LEVELS

__all__ = ["MOST", "NOTHING", "Offer", "decide_at", "offer_at", "offers"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A length at which one rank could resume.

    Args:
        price: Price of the plan's repairs and of computing the rest, in ticks.
        level: Severest level of a repair, -1 without any; that of length 0 is above all.
        steps: Number of repairs.
        plan: Digest of the repairs, each with its piece.
        epochs: Digest of the epochs and forms of the pieces that the plan rests on.
    """

    price: int
    level: int
    steps: int
    plan: str
    epochs: str

    def stands(self, engine: Engine, state: Resolved, length: int) -> bool:
        """Whether the same repairs of the same epochs would be offered now; prices may have changed with the load."""
        now = offer_at(engine, state, length)
        return now is not None and (now.plan, now.epochs) == (self.plan, self.epochs)


NOTHING = digest_of([])
"""Digest of a plan without repairs, and of the epochs of no pieces."""

MOST = 4096
"""Most lengths that are looked at, the longest ones; length 0 comes on top. Leaving some out loses reuse only."""


def offers(engine: Engine, state: Resolved, at_most: int | None = None) -> Mapping[int, Offer]:
    """Every length at which the state can be resumed, after repairs where it needs them.

    Args:
        engine: Judges and prices.
        state: What the look-up found; its segments are read and not changed.
        at_most: No longer lengths than this one, in tokens.

    Returns:
        Offers by length, the longest first. Length 0, nothing reused, is among them where the prompt can be computed
        from its first token on.
    """
    top = _logical(engine, state)
    top = top if at_most is None else min(top, at_most)
    lengths = resumable_lengths(engine.judge.groups, state, proposed_lengths(state)) if top else []
    looked_at = [length for length in lengths if length <= top][:MOST]
    found = {length: offer for length in looked_at if (offer := offer_at(engine, state, length)) is not None}
    nothing = offer_at(engine, state, 0)
    if nothing is not None:
        found[0] = nothing
    return found


def offer_at(engine: Engine, state: Resolved, length: int) -> Offer | None:
    """The offer of one length; None where some group can neither be used nor mended there.

    Args:
        length: 0, or one of the lengths that `offers` looks at, in tokens.
    """
    if length == 0:
        rest = engine.prefill_price(state, 0)
        return Offer(rest, len(LEVELS), 0, NOTHING, NOTHING) if engine.can_recompute(state) else None
    outcome = engine.judge.outcome(state, engine.judge.nothing(), length, full=False)
    if not outcome.clean:
        return None
    return Offer(
        price=min(engine.prefill_price(state, length) + outcome.price, UNKNOWN_PRICE),
        level=max((option.level for _, _, option, _ in outcome.steps), default=-1),
        steps=len(outcome.steps),
        plan=digest_of([[group.id, place, option.bound.id] for group, place, option, _ in outcome.steps]),
        epochs=digest_of(_epochs(engine, state, outcome)),
    )


def decide_at(engine: Engine, state: Resolved, length: int) -> Decision:
    """The decision of whoever may resume at one length only; it reuses nothing where that cannot be done.

    Args:
        length: 0, or one of the lengths that `offers` looks at, in tokens.
    """
    logical = _logical(engine, state)
    outcome = engine.judge.outcome(state, engine.judge.nothing(), length, full=False) if 0 < length <= logical else None
    if outcome is None or not outcome.clean:
        verdict: Verdict = "recompute" if logical else "miss"
        if not engine.can_recompute(state):
            verdict = "refuse"
        return Decision(verdict, logical, 0, total_us=engine.prefill(state, 0))
    steps = tuple(map(plan_step, outcome.steps))
    total = min(engine.prefill_price(state, length) + outcome.price, UNKNOWN_PRICE)
    return Decision(verdict_of(outcome), logical, length, steps, outcome.cost, microseconds(total))


def _logical(engine: Engine, state: Resolved) -> int:
    """The longest match, and 0 where nobody knows what to match."""
    door = engine.bound.rulebook.door
    return 0 if any(getattr(state.request, name) is None for name in door) else engine.longest_match(state)


def _epochs(engine: Engine, state: Resolved, outcome: Outcome) -> list[list[object]]:
    """Epoch and form of each piece, as it was found, that a length reads or mends, peers and sources too."""
    return [
        [group.id, place, piece.epoch, piece.form]
        for group, used in zip(engine.judge.groups, outcome.used, strict=True)
        for place, *_ in used
        if place >= 0
        for piece in (state.pieces[group.id][place],)
    ]
