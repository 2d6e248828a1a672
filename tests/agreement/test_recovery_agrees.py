"""Recoveries end whatever is reported: bounded, sound, as the plain twin says, and within what the proof allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from hitproof.engine.decide import Engine
from hitproof.engine.plain import attempt
from hitproof.engine.recovery import Recovered, Recovery
from hitproof.engine.state import Resolved
from hitproof.spec.process import OF_A_REPAIR
from hitproof.spec.repair import RepairOutcome, RepairRequest
from hitproof.verification.axioms.recovery import Measured, follows, reported
from tests.agreement.plain_recovery import plain_recover
from tests.engine.state_cases import SHIPPED, SMALL, engine_of, random_build

STATUSES = ("done", "done", "done", *OF_A_REPAIR)


class Hostile:
    """A runner that fails, lies, and changes what others hold, by its own dice; the same seed does the same again.

    Whatever it changes of a segment that was found, it lets the epoch grow, as every event does; what a page table
    maps changes behind every event's back.
    """

    def __init__(self, engine: Engine, state: Resolved, seed: int, malice: float) -> None:
        self.engine, self.random, self.malice = engine, Random(seed), malice
        self.pieces = [piece for name in sorted(state.pieces) for piece in state.pieces[name]]
        self.calls = 0

    def at(self, _: str = "") -> None:
        """Sometimes interfere before anything is asked."""
        if self.random.random() < self.malice / 3:
            self._interfere()

    def answer(self, repair: str, promised: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """A status and what was measured, true or not."""
        self.calls += 1
        establishes = self.engine.bound.rulebook.repairs[repair].establishes
        measured = {fact: promised.get(fact) for fact, how in establishes.items() if how == "measured"}
        if self.random.random() < self.malice / 3:
            self._interfere()
        for fact in sorted(measured):
            if self.random.random() < self.malice / 4:
                measured[fact] = self.random.choice([None, 0, 1, 10**6, "torn"])
        status = self.random.choice(STATUSES) if self.random.random() < self.malice else "done"
        return status, measured

    def run(self, request: RepairRequest) -> RepairOutcome:
        """The same as a runner."""
        status, measured = self.answer(request.repair, request.wanted)
        return RepairOutcome(status, measured)  # type: ignore[arg-type]

    def _interfere(self) -> None:
        if self.pieces:
            piece = self.random.choice(self.pieces)
            what = self.random.random()
            if what > 0.8:
                piece.mapped_generation = (piece.mapped_generation or 0) + 1
                return
            piece.epoch += 1
            if what < 0.3:
                piece.end = max(0, (piece.end or 0) // 2)
            elif what < 0.5:
                piece.form = "discarded"


def bound_of(engine: Engine, state: Resolved) -> int:
    """Most steps that the measure allows: attempts, levels, and between two of them all checks of all pieces."""
    groups = [group for group in engine.bound.groups if group.rules.mandatory]
    pieces = {group.id: len(state.pieces.get(group.id, ())) + 1 for group in groups}
    levels = sum(pieces[group.id] * len({option.level for option in group.options}) for group in groups)
    checks = sum(pieces[group.id] * len(group.checks) for group in groups)
    return (3 + levels + 1) * (checks + 1) + 1


def recover(engine: Engine, state: Resolved, seed: int, malice: float) -> tuple[Recovered, Hostile]:
    """A recovery against a hostile runner; its lease is given back."""
    hostile = Hostile(engine, state, seed, malice)
    ended = Recovery(engine).run(state, hostile.run, hostile.at)
    if ended.lease is not None:
        assert ended.lease.confirm()
        ended.lease.release()
    return ended, hostile


def drawn(name: str, seed: int) -> Resolved:
    """A random state that nobody holds, of several one whose decision has repairs; prefill is dear."""
    random, engine = Random(seed), engine_of(name)
    for _ in range(8):
        build = random_build(engine, random)
        build.runtime.prefill_us_per_token = 4000.0
        for pieces in build.pieces.values():
            for piece in pieces:
                piece.pins = 0
        if engine.decide(build.state(), explain=False).plan:
            break
    return build.state()


def assert_sound(engine: Engine, state: Resolved, ended: Recovered) -> None:
    """What may be used passes every check at its length, as judged by the plain reading; else nothing is held."""
    assert (ended.usable > 0) == (ended.verdict in ("reuse", "repair", "rebuild"))
    assert (ended.lease is not None) == (ended.usable > 0)
    assert all(piece.pins == 0 for pieces in state.pieces.values() for piece in pieces)
    if not ended.usable:
        assert {} == ended.copies
        return
    pieces = {group: list(held) for group, held in state.pieces.items()}
    for (group, index), copy in sorted(ended.copies.items()):
        if index < 0:
            pieces.setdefault(group, []).append(copy)
        else:
            pieces[group][index] = copy
    now = Resolved(state.request, state.runtime, state.kernels, pieces, state.matched)
    assert [] == [one.failed for one in attempt(engine.bound, now, ended.usable).mandatory if one.failed]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from((*SHIPPED, *SMALL)), st.integers(0, 2**32), st.floats(0, 1))
def test_any_recovery_ends_within_the_bound_and_soundly(name: str, seed: int, malice: float) -> None:
    """However hostile the runner, the steps are as few as the measure says, and what is used passes every check."""
    engine, state = engine_of(name), drawn(name, seed)
    ended, hostile = recover(engine, state, seed, malice)
    event(ended.verdict)
    assert ended.halted is None
    assert len(ended.steps) <= bound_of(engine, state)
    assert hostile.calls <= len(ended.steps)
    assert_sound(engine, state, ended)
    counted = [tuple(step.counters.values()) for step in ended.steps]
    assert all(later < earlier for earlier, later in pairwise(counted[:-1]))
    assert all(value >= 0 for values in counted for value in values)


@pytest.mark.parametrize("name", SMALL)
def test_the_plain_twin_takes_the_same_steps(name: str) -> None:
    """The process by its declared data and the process by plain ifs agree on steps, end, bars and quarantine."""
    seen: Counter[str] = Counter()
    engine = engine_of(name)
    for seed in range(24):
        malice = (0.0, 0.3, 0.6, 1.0)[seed % 4]
        state, again = drawn(name, seed), drawn(name, seed)
        ended, _ = recover(engine, state, seed, malice)
        hostile = Hostile(engine, again, seed, malice)
        plain = plain_recover(
            engine.bound, engine.types, again, hostile.answer, hostile.at, engine.can_recompute(again)
        )
        told = [(one.group, one.segment, one.option) for one in ended.quarantined]
        assert (seed, plain.verdict, plain.usable, plain.steps) == (
            seed,
            ended.verdict,
            ended.usable,
            [step.step for step in ended.steps],
        )
        assert (plain.barred, plain.quarantined) == (ended.barred, told)
        assert not ended.counters or plain.attempts == ended.counters["attempts"]
        seen.update(plain.steps)
    assert {"confirmed", "interfered", "mended"} <= set(seen)


def test_what_the_engine_counts_is_what_the_proof_assumes() -> None:
    """Logs of random recoveries are accepted by the transition relation that the claim reasons about."""
    seen: Counter[str] = Counter()
    declared: set[str] = set()
    for seed in range(200):
        name = (*SHIPPED, *SMALL)[seed % (len(SHIPPED) + len(SMALL))]
        engine, state = engine_of(name), drawn(name, seed)
        process = engine.bound.rulebook.recovering
        assert process is not None
        by_id = {step.id: step for step in process.steps}
        declared |= set(by_id)
        ended, _ = recover(engine, state, seed, 0.5)
        for before, now in pairwise(ended.steps):
            step = by_id[now.step]
            seen[now.step] += 1
            assert allowed(now.report, step.then, step.bars, before.counters, now.counters), (seed, now)
    assert declared == set(seen)


def allowed(report: str, then: str, bars: bool, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether counts at a report exist with which the relation leads from the ones to the others."""
    ctx = z3.Context()
    first, now, last = (Measured.fresh(ctx, f"{at}.") for at in ("first", "now", "last"))
    solver = z3.Solver(ctx=ctx)
    solver.add(*first.domain(), *now.domain(), *last.domain(), *reported(report, first, now))
    solver.add(first.failing == before["failing"], first.levels == before["levels"])
    if then in ("go_on", "retry", "decide"):
        solver.add(*follows(then, bars, now, last))
        solver.add(last.failing == after["failing"], last.levels == after["levels"])
    return bool(solver.check() == z3.sat)
