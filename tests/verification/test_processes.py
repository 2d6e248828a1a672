"""Recovery processes that the solver calls equal are those that the engine's counting cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from hitproof.engine.recovery.counting import Counting
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import HitproofError
from hitproof.spec.process import ENDS, OF_A_REPAIR, REPORTS, ProcessStep, RecoveryProcess
from hitproof.spec.profile import Profile
from hitproof.verification.mutation.operators import all_edits
from hitproof.verification.mutation.processes import processes_are_equal
from hitproof.verification.solve import Asker

FEW = range(3)
Measures = dict[str, Any]


def reported(report: str) -> Iterator[tuple[Measures, Measures]]:
    """Counts before a report and at it, as the engine makes them: those of small states."""
    for failing, levels, recomputable in product(FEW, FEW, (False, True)):
        before = {"failing": failing, "levels": levels, "recomputable": recomputable}
        if report in OF_A_REPAIR and not (failing and levels):
            continue
        if report in ("ready", "nothing") and failing:
            continue
        for now in FEW if report == "done" else (failing,):
            yield before, {**before, "failing": now}


def after(step: ProcessStep, now: Measures) -> Iterator[Measures]:
    """Counts once a step's consequence was carried out."""
    fewer = range(now["levels"]) if step.bars else (now["levels"],)
    for failing, levels in product(FEW if step.then == "decide" else (now["failing"],), fewer):
        yield {**now, "failing": failing, "levels": levels}


def effect(
    process: RecoveryProcess, step: ProcessStep, counters: Mapping[str, int], now: Measures
) -> Mapping[str, Any]:
    """The counters after a step by the engine; None where it would not take it."""
    counting = Counting(process, {})
    counting.counters = dict(counters)
    return dict(counting.counters) if counting.change(step, now) else {}


def outcomes(process: RecoveryProcess) -> list[object]:
    """What the engine does in every small state after every report."""
    found: list[object] = []
    for report in REPORTS:
        for (before, now), attempts in product(reported(report), range(4)):
            counting = Counting(process, {})
            counters = {"attempts": attempts, "levels": before["levels"], "failing": before["failing"]}
            counting.counters = dict(counters)
            step = counting.choose(report, now)
            told = None if step is None else (step.id, step.then, step.bars, step.quarantines)
            changed = (
                []
                if step is None or step.then in ENDS
                else [effect(process, step, counters, later) for later in after(step, now)]
            )
            found.append((told, changed))
    return found


def test_edits_are_redundant_just_where_the_engine_tells_no_difference(
    source: RuleSource, profiles: dict[str, Profile]
) -> None:
    """Every edit of the process that can be read, judged by the solver and by counting through small states."""
    profile = profiles["gemma-3-27b"]
    intact = bind_rulebook(resolve(source), profile)
    assert intact.rulebook.recovering is not None
    expected, equal, asker = outcomes(intact.rulebook.recovering), 0, Asker()
    for edit in (one for one in all_edits(source) if one.section == "recovering"):
        other = _edited(source, profile, edit.path, edit.value)
        if other is not None and other.rulebook.recovering is not None:
            same = outcomes(other.rulebook.recovering) == expected
            assert same == processes_are_equal(asker, intact, other), edit.id
            equal += same
    assert equal > 0


def _edited(source: RuleSource, profile: Profile, path: tuple[Any, ...], value: object) -> BoundRulebook | None:
    try:
        return bind_rulebook(resolve(source.edited(path, value)[0]), profile)
    except HitproofError:
        return None
