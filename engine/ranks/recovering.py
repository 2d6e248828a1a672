"""A rank over an engine, a look-up and a runner of repairs, for whoever keeps segments without the cache manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from hitproof.engine.canonical import digest_of
from hitproof.engine.decide import Engine
from hitproof.engine.offers import NOTHING, Offer, decide_at, offers
from hitproof.engine.ranks.agree import Offered
from hitproof.engine.ranks.turn import Held
from hitproof.engine.recovery import Recovered, Recovery
from hitproof.engine.state import Resolved
from hitproof.spec.decision import Decision
from hitproof.spec.repair import RunRepair

__all__ = ["RecoveringMember"]

P = TypeVar("P")


class RecoveringMember(Generic[P]):
    """Offers what the rules allow, and prepares by the recovery process at the agreed length only.

    A repair that fails is answered as the rulebook's process says, with other repairs for the same length; where none
    is left, preparing fails. The others need not know: what they agreed on is the length, and each rank's vote tells
    what it holds in the end. Locks around segments that threads share are the caller's business.

    Args:
        engine: Judges.
        look: Looks a prompt up in this rank's cache.
        subject: Digest of what a prompt asks for, equal on all ranks: tokens, and facts of the request.
        repair: Runs one repair into a private copy.
        publish: Puts the copies of a recovery into the cache, all or none; whether it could.
    """

    def __init__(
        self,
        engine: Engine,
        look: Callable[[P], Resolved],
        subject: Callable[[P], str],
        repair: RunRepair,
        publish: Callable[[Recovered], bool],
    ) -> None:
        self._engine, self._look, self._subject = engine, look, subject
        self._repair, self._publish = repair, publish
        self._state: Resolved | None = None
        self.recovered: Recovered | None = None
        """What was prepared, with its lease; after a go the caller's, to release after the last read."""

    def offers(self, prompt: P, at_most: int | None) -> Offered:
        """As `Member.offers`; what an earlier turn that got its go still reads stays its caller's to release."""
        self.recovered = None
        self._state = state = self._look(prompt)
        found = offers(self._engine, state, at_most)
        return Offered(self._subject(prompt), self._engine.bound.rulebook.digest, found)

    def prepare(self, prompt: P, length: int, offer: Offer) -> Held | str:
        """As `Member.prepare`."""
        state = self._state or self._look(prompt)
        if length == 0:
            return Held(NOTHING, NOTHING) if self._engine.can_recompute(state) else "the prompt cannot be computed"
        first = True

        def decide(looked_at: Resolved) -> Decision:
            """At the agreed length; the first time, with everything leased, only if the offer still stands."""
            nonlocal first
            stands, first = not first or offer.stands(self._engine, looked_at, length), False
            return decide_at(self._engine, looked_at, length if stands else 0)

        ended = Recovery(self._engine, decide).run(state, self._repair)
        if ended.lease is None or ended.usable != length:
            return f"length {length} was offered and cannot be held: {ended.verdict}"
        self.recovered = ended
        plan = [[step.group, step.segment, step.option] for step in ended.decision.plan]
        epochs = [[segment.group, segment.epoch, segment.form] for segment in ended.lease.segments]
        return Held(digest_of(plan), digest_of(epochs))

    def commit(self) -> bool:
        """As `Member.commit`."""
        ended = self.recovered
        if ended is None or ended.lease is None:
            return True
        if not ended.lease.confirm() or not self._publish(ended):
            return False
        ended.lease.rebase()
        return True

    def abort(self) -> None:
        """As `Member.abort`."""
        ended, self.recovered, self._state = self.recovered, None, None
        if ended is not None and ended.lease is not None:
            ended.lease.release()
