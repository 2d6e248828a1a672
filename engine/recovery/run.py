"""Runs a decision's plan as the rulebook's process says, until it is used, recomputed or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.lease import Lease
from hitproof.engine.observe.observer import NOBODY, Observer, Served
from hitproof.engine.outcome import Step
from hitproof.engine.recovery.counting import Counting, Measures
from hitproof.engine.recovery.result import Recovered, StepTaken
from hitproof.engine.recovery.trial import Trial
from hitproof.engine.state import Resolved
from hitproof.spec.decision import SEVERITY, Decision, PlanStep, Verdict
from hitproof.spec.errors import SchemaError
from hitproof.spec.process import ENDS, ProcessStep
from hitproof.spec.repair import RunRepair
from hitproof.spec.rulebook import LEVELS

__all__ = ["Recovery"]

_NONE: frozenset[str] = frozenset()

Hold = Callable[[], tuple[Any, Resolved]]
"""Takes a lease, and reads what is leased: called for each new decision, with the same pieces at the same places."""

Point = Callable[[str], None]
"""Called where others may come in between: before a repair is `run`, and before the lease is asked to `confirm`."""


class Recovery:
    """Carries decisions out; holds no state of its own.

    It publishes nothing: repairs write private copies, and all of them are handed over together at the end. One
    recovery of a segment at a time is the caller's business, as are locks around segments that threads share.

    Args:
        engine: Decides, and judges what was measured.
        decide: Decides in the engine's stead, for admission or a policy.
        observer: Is told each decision, step and end.

    Raises:
        SchemaError: The rulebook declares no `recovering:`, or no `leasing:`.
    """

    def __init__(
        self, engine: Engine, decide: Callable[[Resolved], Decision] | None = None, observer: Observer = NOBODY
    ) -> None:
        rulebook = engine.bound.rulebook
        if rulebook.recovering is None:
            raise SchemaError(
                "the rulebook does not say how a plan is carried out", where=rulebook.where, expected="recovering"
            )
        self.engine, self.process, self.leasing = engine, rulebook.recovering, engine.leasing
        self.decide = decide or engine.decide
        self.observer = observer

    def run(self, state: Resolved, repair: RunRepair, at: Point | None = None, hold: Hold | None = None) -> Recovered:
        """Decide, repair, and confirm, until the process ends.

        Args:
            state: Segments, request, run time and kernels. Its segments are pinned meanwhile and never changed.
            repair: Runs one repair into a private copy.
            at: Called where others may come in between.
            hold: Takes the lease and reads the pieces anew, for a caller whose pieces are copies of what it holds;
                else the pieces of `state` are leased themselves.

        Raises:
            InternalError: Somebody else took a pin of the lease.
        """
        hit, began = _Hit(self, state, hold), perf_counter()
        try:
            ended = hit.run(repair, at or _nobody)
            self.observer.recovered(ended, perf_counter() - began)
            self.observer.served(Served(ended.decision, ended.verdict, ended.usable, state.request.length or 0))
            return ended
        except BaseException:
            hit.lease.release()
            raise


@dataclass(frozen=True, slots=True)
class _Turn:
    """What was reported, the repair that it is about, and what stands once its copy is kept."""

    report: str
    step: Step | None
    after: Trial | None


class _Hit:
    """One hit on its way through the process; `trial` is None where the last decision reuses nothing."""

    def __init__(self, recovery: Recovery, state: Resolved, hold: Hold | None) -> None:
        self.recovery, self.engine = recovery, recovery.engine
        # A piece is known by its place, whatever becomes of the caller's own lists.
        found = replace(state, pieces={group: tuple(pieces) for group, pieces in state.pieces.items()})
        self.hold = hold or (lambda: (Lease.take(_all(found), recovery.leasing), found))
        self.counting = Counting(recovery.process, state.environment(self.engine.counted))
        self.recomputable = self.engine.can_recompute(state)
        self.levels = {
            (group.id, place): group.levels
            for group in self.engine.judge.groups
            if group.mandatory
            for place in range(-1, len(state.pieces.get(group.id, ())))
        }
        self.barred = dict(state.barred)
        self.quarantined: list[PlanStep] = []
        self.taken: list[StepTaken] = []
        self.began = 0.0
        self.lease: Any
        self.lease, self.state = self.hold()
        self.held_anew = True
        self.decision: Decision
        self.trial: Trial | None = None

    def run(self, repair: RunRepair, at: Point) -> Recovered:
        self._decide()
        if self.trial is None:
            return self._end(self.decision.verdict)
        if not self.counting.begin(self._measures(self.trial)):
            return self._halt("start")
        while True:
            self.began = perf_counter()
            turn = self._turn(repair, at)
            step = self.counting.choose(turn.report, self._measures(turn.after))
            if step is None:
                return self._halt(f"report {turn.report}")
            ran = self._set_apart(step, turn.step)
            if step.then in ENDS:
                self._note(step, turn, ran)
                return self._use(self.trial) if step.then == "use" and self.trial else self._end(step.then)
            if step.then == "go_on":
                self.trial = turn.after
            elif step.then == "decide":
                self._decide()
            if not self.counting.change(step, self._measures(self.trial)):
                return self._halt(f"step {step.id}")
            self._note(step, turn, ran)

    def _turn(self, repair: RunRepair, at: Point) -> _Turn:
        trial = self.trial
        if trial is None:
            return _Turn("nothing", None, None)
        step = trial.next_step()
        at("confirm" if step is None else "run")
        if not self.lease.confirm():
            return _Turn("moved", None, trial)
        if step is None:
            return _Turn("ready", None, trial)
        outcome = repair(trial.request(step))
        if not self.lease.confirm():
            return _Turn("moved", step, trial)
        if outcome.status != "done":
            return _Turn(outcome.status, step, trial)
        after = trial.after(step, outcome.measured)
        return _Turn("done", step, after) if after.hopeful else _Turn("failed", step, trial)

    def _decide(self) -> None:
        """Pin what was looked up anew, then decide without what is barred; earlier copies are dropped."""
        if not self.held_anew:
            before = self.lease
            self.lease, self.state = self.hold()
            before.release()
        self.held_anew = False
        state = replace(self.state, barred=dict(self.barred))
        began = perf_counter()
        self.decision = self.recovery.decide(state)
        self.recovery.observer.decided(self.decision, perf_counter() - began)
        trial = Trial.of(self.engine, state, self.decision.usable) if self.decision.usable else None
        self.trial = trial if trial is not None and trial.hopeful else None

    def _measures(self, trial: Trial | None) -> Measures:
        return {
            "failing": 0 if trial is None else trial.failing,
            "levels": sum(len(levels - self.barred.get(place, _NONE)) for place, levels in self.levels.items()),
            "recomputable": self.recomputable,
        }

    def _set_apart(self, step: ProcessStep, ran: Step | None) -> PlanStep | None:
        """Quarantine the copy of the repair that ran, and bar its level for every piece that it was to serve.

        Returns:
            The repair as it is told.
        """
        if ran is None or self.trial is None:
            return None
        told = self.trial.told(ran)
        if step.quarantines:
            self.quarantined.append(told)
        if step.bars:
            for one in self.trial.joined(ran):
                place = self.trial.origin(one)
                self.barred[place] = self.barred.get(place, _NONE) | {one[2].bound.level}
        return told

    def _note(self, step: ProcessStep, turn: _Turn, ran: PlanStep | None) -> None:
        told = StepTaken(step.id, turn.report, ran, dict(self.counting.counters), perf_counter() - self.began)
        self.taken.append(told)
        self.recovery.observer.stepped(told)

    def _halt(self, why: str) -> Recovered:
        """The end of a process that breaks its promise: nothing is used, and nothing goes round for ever."""
        return replace(self._end("recompute" if self.recomputable else "refuse"), halted=why)

    def _end(self, verdict: Any) -> Recovered:
        self.lease.release()
        return self._recovered(verdict)

    def _use(self, trial: Trial) -> Recovered:
        level = max((option.level for _, _, option, _ in trial.done), default=None)
        verdict: Any = "reuse" if level is None else SEVERITY[LEVELS[level]]
        return replace(
            self._recovered(verdict),
            usable=trial.length,
            copies=trial.copies,
            lease=self.lease,
            outlook=trial.outlook,
        )

    def _recovered(self, verdict: Verdict) -> Recovered:
        return Recovered(
            verdict=verdict,
            usable=0,
            decision=self.decision,
            steps=tuple(self.taken),
            counters=dict(self.counting.counters),
            quarantined=tuple(self.quarantined),
            barred=dict(self.barred),
        )


def _all(state: Resolved) -> Iterator[Any]:
    return (piece for pieces in state.pieces.values() for piece in pieces)


def _nobody(_: str) -> None:
    return None
