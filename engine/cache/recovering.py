"""From a prompt to a hold: looked up, decided, recovered on private copies, published, leased."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitproof.engine.cache.core import Core
from hitproof.engine.cache.hold import Answer, Guarded, Held, Hold
from hitproof.engine.cache.look import Found, Piece, look, view_again
from hitproof.engine.cache.measuring import Measuring
from hitproof.engine.cache.promises import Promises
from hitproof.engine.cache.prompt import Prompt
from hitproof.engine.cache.publishing import Final, Publishing
from hitproof.engine.cache.repairs import Private, Repairs
from hitproof.engine.canonical import digest_of
from hitproof.engine.decide import Engine
from hitproof.engine.reasons import deciding_rules
from hitproof.engine.recovery import Recovered, Recovery
from hitproof.engine.state import Resolved
from hitproof.spec.decision import Decision
from hitproof.spec.repair import RepairOutcome, RepairRequest

__all__ = ["Attempt", "Recovering"]

ROUNDS = 4
"""How often a hit that moved between its last check and its publication is looked up anew."""


class _PostponedError(Exception):
    """The plan does not run now; the request is deferred."""


class Recovering:
    """Answers requests.

    Args:
        core: The manager's state.
        engine: Decides and judges; a policy's own one where there is a policy.
        decide: Decides, be it under a policy.
        repairs: Runs repairs.
        publishing: Puts private copies in the place of what they mend.
        measuring: Measures leased bytes where the manager is told to.
        promises: What admitted requests are promised.
    """

    def __init__(
        self,
        core: Core,
        engine: Engine,
        decide: Callable[[Resolved], Decision],
        repairs: Repairs,
        publishing: Publishing,
        measuring: Measuring,
        promises: Promises,
    ) -> None:
        self.core, self.engine, self.decide, self.repairs = core, engine, decide, repairs
        self.publishing, self.measuring, self.promises = publishing, measuring, promises
        self.read = frozenset(group.id for group in engine.judge.groups if group.mandatory)
        """Groups that queries read. What a repair reads of the others is measured when it does."""
        self.claimed: dict[Any, object] = {}
        """Who recovers a segment, or a gap, right now: one recovery of a segment at a time."""

    def answer(self, prompt: Prompt, *, postpones: bool) -> Answer:
        """Answer one request.

        Args:
            postpones: Whether a plan that the policy runs beside other work is left for later.
        """
        answer: Answer | None = None
        for _ in range(ROUNDS):
            attempt = Attempt(self, prompt, self.decide, postpones=postpones)
            answer = attempt.run()
            if answer is not None:
                return answer
        return Answer("defer", 0, None, None, "what was mended moved each time before it could be used")

    def attempt(self, prompt: Prompt, decide: Callable[[Resolved], Decision]) -> Attempt:
        """One attempt of somebody who decides otherwise, and concludes it later; its plan runs now in any case."""
        return Attempt(self, prompt, decide, postpones=False)


class Attempt:
    """One look-up and what follows from it.

    Args:
        of: Whose state it works on.
        prompt: The request.
        decide: Decides.
        postpones: As for `Recovering.answer`.
    """

    def __init__(
        self, of: Recovering, prompt: Prompt, decide: Callable[[Resolved], Decision], *, postpones: bool
    ) -> None:
        self.of, self.core, self.prompt, self.postpones = of, of.core, prompt, postpones
        self.decider = decide
        self.owner = object()
        self.claims: list[Any] = []
        self.decision: Decision | None = None
        self.core.at("look")
        with self.core.lock:
            self.found: Found = look(self.core, prompt)
            self.first: tuple[Guarded, Resolved] | None = self._read()
        self.state = self.first[1]
        self.private = Private(self.owner, self.found)

    def run(self) -> Answer | None:
        """The answer, or None where everything moved and must be looked up anew."""
        recovered = self.recover()
        return recovered if isinstance(recovered, Answer) else self.conclude(recovered)

    def recover(self) -> Recovered | Answer:
        """Decide, and repair privately what the plan asks for.

        Returns:
            What `conclude` or `give_up` ends, with everything pinned and claimed until then; an answer where the
            request is deferred, and holds nothing.
        """
        of = self.of
        try:
            recovery = Recovery(of.engine, self.decide, self.core.observer)
            ended = recovery.run(self.state, self.repair, at=self.core.at, hold=self.hold)
        except _PostponedError as why:
            self._end()
            return Answer("defer", 0, self.decision, None, str(why))
        except BaseException:
            self._end()
            raise
        self.decision = ended.decision
        self._condemn(ended.decision)
        return ended

    def conclude(self, ended: Recovered) -> Answer | None:
        """Publish what was repaired, and answer with a hold; None where everything moved meanwhile."""
        try:
            return self._answered(ended)
        finally:
            self._end()

    def give_up(self, ended: Recovered) -> None:
        """Publish nothing, and give everything back."""
        if ended.lease is not None:
            ended.lease.release()
        self._end()

    def epochs(self) -> str:
        """Digest of the epochs and forms of all that was found, as it was decided on last."""
        views = [(group, view) for group, pieces in self.state.pieces.items() for view in pieces]
        return digest_of([[group, view.epoch, view.form] for group, view in views])

    def hold(self) -> tuple[Guarded, Resolved]:
        """Pin and read everything that was found, in one step; earlier copies are dropped."""
        if self.first is not None:
            pair, self.first = self.first, None
            return pair
        self._end()
        self.core.at("again")
        with self.core.lock:
            pair = self._read()
        self.state = pair[1]
        return pair

    def decide(self, state: Resolved) -> Decision:
        """Decide, and remember the decision for the repairs that follow."""
        self.decision = self.decider(state)
        return self.decision

    def repair(self, request: RepairRequest) -> RepairOutcome:
        """Run one repair of the plan; the first one claims all places that the plan repairs."""
        if not self.claims:
            self._claim(request)
        plan = () if self.decision is None else self.decision.plan
        self.private.computed = frozenset((step.group, step.segment) for step in plan if step.repair == "forward")
        return self.of.repairs.run(self.private, self.state, request)

    def _read(self) -> tuple[Guarded, Resolved]:
        same = [piece.slot for piece in self._pieces() if piece.slot.incarnation == piece.incarnation]
        lease = Guarded(self.core, same)
        return lease, view_again(self.core, self.found)

    def _pieces(self) -> list[Piece]:
        return [piece for pieces in self.found.pieces.values() for piece in pieces]

    def _claim(self, request: RepairRequest) -> None:
        last = self.decision
        if last is not None and last.execution == "asynchronous" and self.postpones:
            raise _PostponedError("its plan runs beside other work")
        places = {(request.group, request.segment)} | {
            (step.group, step.segment) for step in (last.plan if last else ())
        }
        keys = [self._claim_key(*place) for place in sorted(places)]
        self.core.at("claim")
        with self.core.lock:
            if any(key in self.of.claimed for key in keys):
                raise _PostponedError("another request recovers the same segments")
            for key in keys:
                self.of.claimed[key] = self.owner
            self.claims = keys

    def _claim_key(self, group: str, index: int) -> Any:
        if index >= 0:
            piece = self.found.pieces[group][index]
            return piece.slot.number, piece.incarnation
        return group, self.prompt.digest(self.found.matched)

    def _answered(self, ended: Recovered) -> Answer | None:
        of, core, verdict = self.of, self.core, ended.verdict
        if verdict in ("defer", "refuse"):
            if ended.lease is not None:
                ended.lease.release()
            why = "; ".join(reason.because for reason in ended.decision.admission) or "nothing can be computed from"
            return Answer(verdict, 0, ended.decision, None, why)
        if not of.promises.promise(self.owner, ended.decision):
            if ended.lease is not None:
                ended.lease.release()
            return Answer("defer", 0, ended.decision, None, "what it needs was promised to others meanwhile")
        final: Final | None = None
        if ended.lease is None:
            with core.lock:
                final = Final(Guarded(core, ()), {}, ())
        else:
            final = of.publishing.publish(self.private, self.state, ended)
            if final is None:
                of.promises.end(self.owner)
                return None
        hold = Hold(
            core,
            self.prompt,
            ended.usable,
            final.lease,
            self._tables(final),
            approximate=any(view.exactness == "approximate" for views in final.views.values() for view, _ in views),
            measures=of.measuring.confirm,
            ended=lambda one: self._given_back(final),
        )
        return Answer(verdict, ended.usable, ended.decision, hold)

    def _tables(self, final: Final) -> dict[str, tuple[Held, ...]]:
        found: dict[str, tuple[Held, ...]] = {}
        for group, views in final.views.items():
            if group not in self.of.read:
                continue
            read = tuple(Held(view, slot.mapped, slot) for view, slot in views if slot.mapped is not None)
            if read:
                found[group] = read
        return found

    def _given_back(self, final: Final) -> None:
        for slot in final.private:
            self.core.at("abort")
            with self.core.lock:
                self.core.fire(slot, "abort")
        self.of.promises.end(self.owner)

    def _condemn(self, decision: Decision) -> None:
        """Note what the rules of disposition say of each segment that failed; it happens once nobody holds it."""
        if all(then == "keep" for then in decision.dispositions.values()):
            return
        judge, state = self.of.engine.judge, self.state
        length = decision.logical or self.found.matched
        outcome = judge.outcome(state, judge.nothing(), min(length, self.prompt.length - 1))
        for group, index, rule in deciding_rules(judge, state, outcome):
            if index >= 0 and rule.then != "keep" and decision.dispositions.get(group.id) == rule.then:
                piece = self.found.pieces[group.id][index]
                with self.core.lock:
                    if piece.slot.incarnation == piece.incarnation and not piece.slot.suspect:
                        piece.slot.suspect = f"{rule.then}: {rule.id}"

    def _end(self) -> None:
        """Drop private copies that nobody took over, and let others recover what was claimed."""
        self.of.repairs.drop(self.private)
        self._unclaim()

    def _unclaim(self) -> None:
        with self.core.lock:
            for key in self.claims:
                del self.of.claimed[key]
            self.claims = []
