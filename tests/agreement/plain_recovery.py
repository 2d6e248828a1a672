"""The shipped process of recovery written out by hand: plain ifs, the plain decision, and nothing of the rule file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hitproof.engine.plain import Attempt, Looked, attempt, failing, of_self, options_of, plain_decide, run
from hitproof.engine.state import Resolved
from hitproof.spec.bound import BoundOption, BoundRulebook
from hitproof.spec.decision import PlanStep
from hitproof.spec.facts import admit

__all__ = ["PlainEnd", "Runner", "plain_recover"]

Place = tuple[str, int]
Runner = Callable[[str, Mapping[str, Any]], tuple[str, Mapping[str, Any]]]
"""From a repair's name and the facts promised to a status and the facts measured."""


@dataclass
class PlainEnd:
    """How it ended, what was counted, and what was set apart."""

    verdict: str
    usable: int = 0
    steps: list[str] = field(default_factory=list)
    attempts: int = 3
    barred: dict[Place, frozenset[str]] = field(default_factory=dict)
    quarantined: list[tuple[str, int, str]] = field(default_factory=list)


def state_of(piece: Any) -> tuple[Any, ...]:
    """What must be as it was when the segment was checked."""
    return piece.epoch, piece.form, piece.mapped_generation


class _Work:
    """A length on its way: pieces with copies in their place, and what of the plan is left."""

    def __init__(self, bound: BoundRulebook, types: Any, state: Resolved, length: int) -> None:
        self.bound, self.types, self.length = bound, types, length
        self.held = {group: len(pieces) for group, pieces in state.pieces.items()}
        self.state = state
        self.done: list[PlanStep] = []
        self.look: Attempt = attempt(bound, state, length)
        self.plan = list(self.look.steps)

    @property
    def failing(self) -> int:
        return sum(len(one.failed) for one in self.look.mandatory)

    def place(self, step: PlanStep) -> Place:
        return step.group, step.segment if step.segment < self.held.get(step.group, 0) else -1

    def next(self) -> PlanStep | None:
        if not self.failing:
            return None
        steps = [*self.ordered(self.plan), *self.ordered(self.look.steps)]
        return next((step for step in steps if self.promise(step) is not None), None)

    def ordered(self, steps: Sequence[PlanStep]) -> list[PlanStep]:
        waiting = {step.group for step in steps}
        firsts = {(step.group, step.segment): step for step in reversed(steps)}
        ready = [
            step
            for step in steps
            if firsts[step.group, step.segment] is step
            and not waiting & set(self.bound.group(step.group).peers.values())
        ]
        return [s for s in ready if not self.option(s).history] + [s for s in ready if self.option(s).history]

    def option(self, step: PlanStep) -> BoundOption:
        return next(one for one in self.bound.group(step.group).options if one.id == step.option)

    def promise(self, step: PlanStep) -> dict[str, Any] | None:
        """The facts that the repair promises; None where it does not apply to what is there now."""
        found: Looked | None = next((one for one in self.look.looked[step.group] if one.index == step.segment), None)
        if found is None:
            return None
        env = {**found.env, **of_self(found.before)}
        offered = [option.id for _, option in options_of(found.group, failing(found.group, env), env)]
        if step.option not in offered:
            return None
        return run(found.group, self.option(step), env, self.bound.rulebook.engine_owned)

    def after(self, step: PlanStep, promised: Mapping[str, Any], measured: Mapping[str, Any]) -> _Work:
        group, facts = self.bound.group(step.group), dict(promised)
        rulebook = self.bound.rulebook
        for fact, how in rulebook.repairs[step.repair].establishes.items():
            if how == "measured" and fact in group.facts:
                value = admit(group.facts[fact], measured.get(fact))
                if value is not None or fact not in rulebook.engine_owned:
                    facts[fact] = value
        if self.option(step).effect.renews:
            facts["recorded"] = facts["measured"]
        copy = self.types.segment_of(step.group, facts)
        pieces = list(self.state.pieces.get(step.group, ()))
        if step.segment < 0:
            pieces.append(copy)
        else:
            pieces[step.segment] = copy
        other = _Work.__new__(_Work)
        other.__dict__.update(self.__dict__)
        other.state = replace(self.state, pieces={**self.state.pieces, step.group: pieces})
        other.look = attempt(self.bound, other.state, self.length)
        other.plan = [one for one in self.plan if one is not step]
        other.done = [*self.done, step]
        return other

    @property
    def hopeful(self) -> bool:
        return self.look.clean and (not self.failing or self.next() is not None)


def plain_recover(
    bound: BoundRulebook, types: Any, state: Resolved, runner: Runner, at: Callable[[], None], computable: bool
) -> PlainEnd:
    """Decide, repair and confirm as the article tells it: three more attempts, three levels, then from token 0."""
    end = PlainEnd("?")
    given_up = "recompute" if computable else "refuse"

    def look() -> tuple[_Work | None, list[Any]]:
        held = [piece for pieces in state.pieces.values() for piece in pieces]
        now = replace(state, barred=dict(end.barred))
        decision = plain_decide(bound, now)
        work = _Work(bound, types, now, decision.usable) if decision.usable else None
        if not end.steps and work is None:
            end.verdict = decision.verdict
        seen = [(piece, state_of(piece)) for piece in held]
        return (work if work is not None and work.hopeful else None), seen

    work, seen = look()
    if work is None:
        return end
    while True:
        if work is None:
            end.steps.append("given_up" if computable else "refused")
            end.verdict = given_up
            return end
        step = work.next()
        report, better = "ready", work
        at()
        if any(state_of(piece) != was for piece, was in seen):
            report, step = "moved", None
        elif step is not None:
            promised = work.promise(step) or {}
            report, measured = runner(step.repair, promised)
            if any(state_of(piece) != was for piece, was in seen):
                report = "moved"
            elif report == "done":
                better = work.after(step, promised, measured)
                if not better.hopeful:
                    report = "failed"
        if report == "ready":
            end.steps.append("confirmed")
            levels = [one.level for one in work.done]
            end.verdict = "rebuild" if "intra_layer" in levels else "repair" if levels else "reuse"
            end.usable = work.length
            return end
        if report == "moved":
            if end.attempts == 0:
                work = None
                continue
            end.attempts -= 1
            end.steps.append("interfered")
            work, seen = look()
        elif report == "transfer_failed" and end.attempts > 0:
            end.attempts -= 1
            end.steps.append("transfer_failed")
        elif report == "done" and better.failing < work.failing:
            end.steps.append("mended")
            work = better
        elif step is not None:
            if report != "source_lost":
                end.quarantined.append((*work.place(step), step.option))
            pending = work.plan or work.look.steps
            joint = [one for one in pending if step.joint is not None and one is not step and one.joint == step.joint]
            for one in (step, *joint):
                place = work.place(one)
                end.barred[place] = end.barred.get(place, frozenset()) | {one.level}
            end.steps.append("source_lost" if report == "source_lost" else "repair_failed")
            work, seen = look()
