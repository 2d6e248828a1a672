"""The cache manager as one rank of several: what it offers, and what it prepares at the length that was agreed on."""

from __future__ import annotations

from collections.abc import Callable

from hitproof.engine.cache.adopting import Adopting
from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Answer, Hold
from hitproof.engine.cache.look import look, view_again
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.recovering import Attempt, Recovering
from hitproof.engine.canonical import digest_of
from hitproof.engine.offers import NOTHING, Offer, decide_at, offers
from hitproof.engine.ranks import Held, Offered
from hitproof.engine.recovery import Recovered
from hitproof.engine.state import Resolved
from hitproof.spec.decision import Decision

__all__ = ["CacheMember"]


class CacheMember:
    """A manager's part in the turns of `engine.ranks`, one turn at a time; other requests go on beside it.

    What is repaired stays private until the commit, and what it repairs is claimed so long, as by any other request.
    Rules of admission are not asked.

    Args:
        core: The manager's state.
        recovering: Runs recoveries.
        adopting: Takes in what the disk held before.
        opened: Is told each hold.

    Attributes:
        hold: What may be read once there is a go, to `confirm` right before the launch, to begin writing by, and to
            release after the last read; None before the commit and after an abort.
    """

    def __init__(self, core: Core, recovering: Recovering, adopting: Adopting, opened: Callable[[Hold], None]) -> None:
        self._core, self._recovering, self._adopting, self._opened = core, recovering, adopting, opened
        self._prepared: tuple[Attempt, Recovered] | None = None
        self.hold: Hold | None = None

    def offers(self, prompt: Prompt, at_most: int | None) -> Offered:
        """As `Member.offers`; nothing is pinned. An open hold of an earlier turn stays its holder's to release."""
        self._drop()
        self.hold = None
        core = self._core
        self._adopting.adopt(prompt)
        core.at("look")
        with core.lock:
            state = view_again(core, look(core, prompt))
        found = offers(core.engine, state, at_most)
        return Offered(_subject(prompt), core.bound.rulebook.digest, found)

    def prepare(self, prompt: Prompt, length: int, offer: Offer) -> Held | str:
        """As `Member.prepare`."""
        engine, first = self._core.engine, True

        def decide(state: Resolved) -> Decision:
            """At the agreed length; the first time, with everything leased, only if the offer still stands."""
            nonlocal first
            stands, first = not (first and length) or offer.stands(engine, state, length), False
            return decide_at(engine, state, length if stands else 0)

        attempt = self._recovering.attempt(prompt, decide)
        ended = attempt.recover()
        if isinstance(ended, Answer):
            return ended.why
        if ended.usable != length or ended.verdict == "refuse":
            attempt.give_up(ended)
            return f"length {length} was offered and cannot be held: {ended.verdict}"
        self._prepared = attempt, ended
        plan = [[step.group, step.segment, step.option] for step in ended.decision.plan]
        return Held(digest_of(plan), attempt.epochs() if length else NOTHING)

    def commit(self) -> bool:
        """As `Member.commit`."""
        if self._prepared is None:
            return False
        (attempt, ended), self._prepared = self._prepared, None
        answer = attempt.conclude(ended)
        if answer is None or answer.hold is None:
            return False
        self.hold = answer.hold
        self._opened(answer.hold)
        return answer.hold.confirm()

    def abort(self) -> None:
        """As `Member.abort`."""
        self._drop()
        if self.hold is not None:
            self.hold.release()
        self.hold = None

    def _drop(self) -> None:
        if self._prepared is not None:
            (attempt, ended), self._prepared = self._prepared, None
            attempt.give_up(ended)


def _subject(prompt: Prompt) -> str:
    """Digest of a prompt's tokens and of all facts of its request, each with its type."""
    facts = prompt.request.as_dict()
    told = [
        [name, type(value).__name__, sorted(value) if isinstance(value, frozenset) else str(value)]
        for name, value in sorted(facts.items())
    ]
    return digest_of([prompt.digest(prompt.length), told])
