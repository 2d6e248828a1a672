"""One decision while it is carried out: what is held, with private copies in the place of what was mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hitproof.engine.decide import Engine, plan_step
from hitproof.engine.outcome import Outcome, Step
from hitproof.engine.state import Resolved
from hitproof.spec.decision import PlanStep
from hitproof.spec.facts import Value, admit
from hitproof.spec.repair import RepairRequest

__all__ = ["Trial"]


@dataclass(frozen=True, slots=True)
class Trial:
    """A length on its way to being usable; every repair that succeeded gives another trial.

    Args:
        held: Number of pieces of each group that were looked up; a piece beyond them is a copy of what was missing.
        state: The pieces as found, and the copies.
        outlook: What the length would still take.
        plan: Repairs of the decision that have not run; they go before those of the outlook, so that what is joint is
            run for all that it was paid for.
        copies: The copies, by group and index of the piece that each stands for, -1 where nothing was held.
        done: The repairs that made them.
    """

    engine: Engine
    held: Mapping[str, int]
    state: Resolved
    length: int
    outlook: Outcome
    plan: tuple[Step, ...]
    copies: Mapping[tuple[str, int], Any]
    done: tuple[Step, ...] = ()

    @classmethod
    def of(cls, engine: Engine, state: Resolved, length: int) -> Trial:
        """The trial of a length, before any repair."""
        held = {group: len(pieces) for group, pieces in state.pieces.items()}
        outlook = _look(engine, state, length)
        return cls(engine, held, state, length, outlook, tuple(outlook.steps), {})

    @property
    def failing(self) -> int:
        """Checks that fail, each piece's before its own repair and after those of its peers."""
        return sum(
            mask.bit_count()
            for group, masks in zip(self.engine.judge.groups, self.outlook.masks, strict=True)
            if group.mandatory
            for mask in masks
        )

    @property
    def hopeful(self) -> bool:
        """Whether what still fails can be mended by repairs that apply to what was measured."""
        return self.outlook.clean and (not self.failing or self.next_step() is not None)

    def next_step(self) -> Step | None:
        """The repair to run now, None where nothing fails.

        It runs after those of its peers, and one that reads the history of all groups runs last. A repair of the plan
        that no longer applies to what was measured gives way to what the outlook proposes.
        """
        if not self.failing:
            return None
        planned = self._order(self.plan)
        return next((step for step in (*planned, *self._order(self.outlook.steps)) if self._applies(step)), None)

    def _order(self, steps: Sequence[Step]) -> list[Step]:
        pending = {group.id for group, *_ in steps}
        first: dict[tuple[str, int], Step] = {}
        for step in steps:
            first.setdefault((step[0].id, step[1]), step)
        ready = [step for step in first.values() if pending.isdisjoint(step[0].bound.peers.values())]
        return sorted(ready, key=lambda step: step[2].bound.history)

    def _applies(self, step: Step) -> bool:
        group, _, option, _ = step
        if not any(place == step[1] for place, *_ in self.outlook.used[group.index]):
            return False
        piece, context = self._around(step)
        mask = group.judge(piece, *context)
        sources = all(context[7 + 2 * slot] for slot in option.peer_slots)
        return bool(
            option.mends & mask and not option.needs_true & mask and sources and option.when(piece, *context) is True
        ) and (option.apply(piece, *context) is not None)

    def joined(self, step: Step) -> list[Step]:
        """The step with all others that are part of the same joint repair."""
        joint = step[2].bound.joint
        pending = self.plan or tuple(self.outlook.steps)
        return [
            step,
            *(one for one in pending if joint is not None and one is not step and one[2].bound.joint == joint),
        ]

    def origin(self, step: Step) -> tuple[str, int]:
        """Group and index of the piece, as it was looked up, that a step mends."""
        group, index = step[0].id, step[1]
        return group, index if index < self.held.get(group, 0) else -1

    def told(self, step: Step) -> PlanStep:
        """A step as a decision tells it."""
        return replace(plan_step(step), segment=self.origin(step)[1])

    def request(self, step: Step) -> RepairRequest:
        """What the runner of a step is given."""
        group, _, option, _ = step
        piece, context = self._around(step)
        facts, (first, to), (a, b) = group.bound.facts, group.span(self.length), context[4:6]
        promised = option.apply(piece, *context)
        peers = context[6::2]
        return RepairRequest(
            repair=option.bound.repair,
            group=group.id,
            segment=self.origin(step)[1],
            length=self.length,
            first=max(first, a),
            to=min(to, b),
            facts={fact: getattr(piece, fact) for fact in facts},
            wanted={fact: getattr(promised, fact) for fact in facts},
            sources={role: peers[group.roles.index(role)].as_dict() for role in option.bound.peers},
        )

    def after(self, step: Step, measured: Mapping[str, Value]) -> Trial:
        """The trial once a repair has run, judged anew on what was measured of its copy.

        Facts that the repair's declaration calls measured have the runner's values, and are unknown where it gives
        none; all others are as the rule says. What else the runner claims is not listened to.
        """
        group, index, option, _ = step
        piece, context = self._around(step)
        copy = option.apply(piece, *context)
        rulebook = self.engine.bound.rulebook
        for fact, how in rulebook.repairs[option.bound.repair].establishes.items():
            if how != "measured" or fact not in group.bound.facts:
                continue
            value = admit(group.bound.facts[fact], measured.get(fact))
            if value is not None or fact not in rulebook.engine_owned:
                setattr(copy, fact, value)
        if option.bound.effect.renews:
            # New content has the fingerprint that was taken of it.
            copy.recorded = copy.measured
        pieces = list(self.state.pieces.get(group.id, ()))
        if index < 0:
            pieces.append(copy)
        else:
            pieces[index] = copy
        state = replace(self.state, pieces={**self.state.pieces, group.id: pieces})
        return replace(
            self,
            state=state,
            outlook=_look(self.engine, state, self.length),
            plan=tuple(one for one in self.plan if one is not step),
            copies={**self.copies, self.origin(step): copy},
            done=(*self.done, step),
        )

    def _around(self, step: Step) -> tuple[Any, tuple[Any, ...]]:
        """The piece that a step mends, and all that its functions read beside it."""
        group, index = step[0], step[1]
        state, judge = self.state, self.engine.judge
        a, b = next((a, b) for place, _, a, b, _ in self.outlook.used[group.index] if place == index)
        peers = judge.peers_of(group, self.outlook, a, b, *group.span(self.length)) if group.roles else ()
        piece = state.pieces[group.id][index] if index >= 0 else group.empty(state.request, state.matched)
        return piece, (state.request, state.runtime, state.kernels[group.id], self.length, a, b, *peers)


def _look(engine: Engine, state: Resolved, length: int) -> Outcome:
    return engine.judge.outcome(state, engine.judge.nothing(), length)
