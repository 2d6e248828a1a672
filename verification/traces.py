"""The shortest story in which a lease does not hold what it should: states unrolled step by step, depth by depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from hitproof.spec.bound import BoundGroup
from hitproof.spec.condition import Node
from hitproof.spec.leasing import Leasing
from hitproof.verification.bystanders import Bystanders
from hitproof.verification.encode import Z3Facts
from hitproof.verification.holder import Holder, Move, Program, State
from hitproof.verification.model import FAR, GroupModel, World
from hitproof.verification.run import Run
from hitproof.verification.template import goals
from hitproof.verification.terms import all_of, any_of, equal, implies, negated

__all__ = ["DEEPEST", "SHORT", "Trace", "shortest"]

DEEPEST = 12
"""Steps beyond which no story is searched."""

SHORT = 8
"""Steps up to which only the worst is searched, before anything that fails is told."""

WORST = ("read as checked", "confirmation tells")
"""Goals whose failure means that a reader gets something else than was checked."""


@dataclass(frozen=True)
class Trace:
    """A story of one holder and one segment.

    Args:
        model: What the solver chose.
        states: Before the first step and after each.
        moves: One between every two states.
        broken: The goals that fail in the last state.
        length: Tokens at which the segment was checked.
    """

    model: Any
    world: World
    group: GroupModel
    states: tuple[State, ...]
    moves: tuple[Move, ...]
    broken: tuple[str, ...]
    length: int


def shortest(
    run: Run, group: BoundGroup, leasing: Leasing, declared: Sequence[tuple[str, Node]], deepest: int
) -> Trace | None:
    """The shortest story at whose end a goal fails; None where there is none, or the solver gave up.

    The holder calls as a manager does: each phase is one step, up to where a release must wait. At its check the
    segment passes every check of its group, or rests below the device, as the source of a copy.
    """
    return _Search(run, group, leasing, declared).found(deepest)


class _Search:
    """States side by side, each with one step that leads to the next."""

    def __init__(self, run: Run, group: BoundGroup, leasing: Leasing, declared: Sequence[tuple[str, Node]]) -> None:
        self.run, self.declared = run, declared
        self.world = World(run.whole)
        self.model = self.world.group(group.id)
        self.program = Program(self.model, leasing, has_bytes=bool(group.constants.get("has_bytes")))
        self.others = Bystanders(self.program)
        self.solver = run.asker.solver(self.world.ctx)
        first = State(self.model.own, Holder.fresh(self.model, "0.holder."))
        self.states, self.moves = [first], list[list[Move]]()

    def found(self, deepest: int) -> Trace | None:
        """Search depth by depth."""
        self.solver.add(*self._start())
        for depth in range(1, deepest + 1):
            self._step(depth)
            found = self._ask(depth, worst=True)
            if found is not None:
                return found
            if depth >= SHORT:
                # What misleads a reader is told before what only could: a longer story may be the better one.
                for shallow in range(1 if depth == SHORT else depth, depth + 1):
                    found = self._ask(shallow, worst=False)
                    if found is not None:
                        return found
        return None

    def _ask(self, depth: int, *, worst: bool) -> Trace | None:
        """A story of so many steps at whose end one of the worst goals fails, or any."""
        state = self.states[depth]
        claims = [claim for name, claim in goals(self.program, state, self.declared) if name in WORST or not worst]
        bad = z3.Bool(f"{'misread' if worst else 'bad'}.{depth}", ctx=self.world.ctx)
        self.solver.add(implies(bad, negated(all_of(claims, self.model.true))), *self._domains())
        answer = self.run.asker.answer(self.solver, bad)
        return self._trace(self._read_well(answer.model, bad), depth) if answer.status == "sat" else None

    def _start(self) -> list[Any]:
        """Nobody holds the segment; request, run time and peers are such that a check can pass."""
        model, world = self.model, self.world
        own, unit = model.own, world.shared("request.granularity").value
        apart = [
            negated(equal(own("address").value, peer.own("address").value))
            for peer in model.peers.values()
            if "address" in peer.group.facts and "address" in model.group.facts
        ]
        epochs = own("epoch").value
        return [
            *self.states[0].holder.starts(),
            own("pins").value == 0,
            epochs <= 9,
            world.length > 0,
            *world.usual(),
            unit == 1,
            model.share_first == 0,
            model.share_to == FAR,
            *apart,
        ]

    def _step(self, depth: int) -> None:
        model, program, state = self.model, self.program, self.states[-1]
        tag = f"{depth}."
        facts = Z3Facts(self.world.enums, dict(model.group.facts), tag, self.world.bound.rulebook.engine_owned)
        after = State(facts, Holder.fresh(model, f"{tag}holder."))
        moves = [
            *(self._checked(move, state) for move in program.calls_of_holder(state)),
            *self.others.events(state, tag),
            *self.others.faults(state, tag),
        ]
        chosen = z3.Int(f"chosen.{depth}", ctx=self.world.ctx)
        same = {name: self._same(state.facts(name), facts(name)) for name in model.group.facts}
        happens = [
            all_of([chosen == index, move.guard, *self._leads(move, state, after, same)], model.true)
            for index, move in enumerate(moves)
        ]
        self.solver.add(any_of(happens, model.false))
        self.states.append(after)
        self.moves.append(moves)

    def _checked(self, move: Move, state: State) -> Move:
        """A check on the device is that of the rules."""
        if move.does != "check":
            return move
        home = self.world.enums.member(self.model.group.facts["form"].type, self.model.group.home)
        at_home = equal(state.facts("form").value, home)
        passes = all_of((self.model.accepted(state.facts), self.model.needed(state.facts)), self.model.true)
        guard = all_of((move.guard, implies(at_home, passes)), self.model.true)
        return Move(move.label, guard, move.post, move.rule, move.where, move.does)

    def _leads(self, move: Move, state: State, after: State, same: dict[str, Any]) -> list[Any]:
        facts = [
            same[name]
            if move.post.facts(name) is state.facts(name)
            else self._same(move.post.facts(name), after.facts(name))
            for name in self.model.group.facts
        ]
        return [*facts, *(equal(mine, theirs) for mine, theirs in move.post.holder.differs(after.holder))]

    def _same(self, one: Any, other: Any) -> Any:
        return all_of(
            (equal(one.known, other.known), implies(one.known, equal(one.value, other.value))), self.model.true
        )

    def _domains(self) -> list[Any]:
        found = [*self.world.domains()]
        for state in self.states[1:]:
            found += state.facts.assumptions  # type: ignore[attr-defined]
        return found

    def _read_well(self, model: Any, bad: Any) -> Any:
        """Among stories of that length one that is easy to read."""
        own = self.model.own
        home = self.world.enums.member(self.model.group.facts["form"].type, self.model.group.home)
        wishes = [
            equal(own("form").value, home),
            self._some(lambda move: move.step is not None and move.step.transition.frees),
            self._some(lambda move: move.step is not None and move.step.transition.moves),
            self.world.shared("request.length").value == self.world.length + 1,
            self.world.length <= 65_536,
            self.world.length <= 4096,
            *(self.world.shared(path).known for path in self.world.shared.paths),
            *(own(name).known for name in self.model.group.facts),
        ]
        for wish in wishes:
            self.solver.push()
            self.solver.add(wish)
            again = self.run.asker.answer(self.solver, bad)
            if again.status == "sat":
                model = again.model
            else:
                self.solver.pop()
        return model

    def _some(self, which: Callable[[Move], bool]) -> Any:
        """A step of this kind is in the story."""
        chosen = [
            z3.Int(f"chosen.{depth}", ctx=self.world.ctx) == index
            for depth, moves in enumerate(self.moves, start=1)
            for index, move in enumerate(moves)
            if which(move)
        ]
        return any_of(chosen, self.model.false)

    def _trace(self, found: Any, steps: int) -> Trace:
        moves = []
        for depth, choices in enumerate(self.moves[:steps], start=1):
            chosen = z3.Int(f"chosen.{depth}", ctx=self.world.ctx)
            moves.append(choices[found.eval(chosen, model_completion=True).as_long()])
        states = tuple(self.states[: steps + 1])
        claims = goals(self.program, states[-1], self.declared)
        broken = tuple(name for name, claim in claims if not z3.is_true(found.eval(claim, model_completion=True)))
        length = found.eval(self.world.length, model_completion=True).as_long()
        return Trace(found, self.world, self.model, states, tuple(moves), broken, length)
