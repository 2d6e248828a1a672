"""Claim `terminates`: every recovery ends, whatever is reported and whoever interferes, and none before it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import z3

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.errors import HitproofError
from hitproof.spec.process import ENDS, REPORTS, ProcessStep, RecoveryProcess
from hitproof.spec.scenario import Expectation, RecoveredExpectation, Replayer, Scenario
from hitproof.verification.axioms.recovery import Onward, follows, onward, reported
from hitproof.verification.parts import Part
from hitproof.verification.process import ProcessModel
from hitproof.verification.run import Claim, Run
from hitproof.verification.stories import (
    answers_in,
    halting_stories,
    quiet_story,
    refused_story,
    stale_stories,
    way_stories,
)

__all__ = ["CLAIM"]

Answers = Sequence[tuple[str, str]]
"""What was reported in a story, each with the step that answered it."""


def parts(bound: BoundRulebook) -> list[Part]:
    """The process is the same for every model."""
    return [Part("the process", (), reads=frozenset({"rulebook"}))]


def prove(run: Run) -> None:
    """Starts within bounds, an answer to every report, and a lower measure after every step that does not end."""
    process = run.bound.rulebook.recovering
    if process is None:
        run.gaps.append("the rulebook does not say how a plan is carried out")
        return
    model = ProcessModel(run.bound, process)
    _starts(run, model)
    for report in REPORTS:
        _answers(run, model, report)
    for report in REPORTS:
        for step in (one for one in process.steps if report in one.on):
            if step.then in ENDS:
                _ends_well(run, model, report, step)
            else:
                _lowers(run, model, report, step)
            if not run.done:
                _goes_on(run, model, report, step)
            if run.done:
                return
    _can_end_in_use(run, model)
    run.count = len(process.steps)


def _starts(run: Run, model: ProcessModel) -> None:
    """Every counter starts within its domain."""
    for counter in model.process.counters:
        start = model.number(counter.start, model.before)
        good = z3.And(start.known, model.inside(counter.id, start.value))
        found = run.must_not(
            model.ctx, [*model.before.domain(), *model.world.domains(), z3.Not(good)], f"{counter.id} starts"
        )
        if found is not None:
            sentence = f"the counter '{counter.id}' may start outside its domain"
            _refute(run, sentence, f"recovering/{counter.id}", counter.where, "start", ())


def _answers(run: Run, model: ProcessModel, report: str) -> None:
    """No state and no report is without a step: there is no deadlock."""
    guards = [z3.Not(model.guard(one)) for one in model.process.steps if report in one.on]
    question = [*model.state(), *reported(report, model.before, model.now), *guards]
    if run.must_not(model.ctx, question, f"{report} is answered") is not None:
        sentence = f"after the report '{report}' a recovery may stand still: no step answers it"
        _refute(run, sentence, "recovering", model.process.where, f"report {report}", [report])


def _lowers(run: Run, model: ProcessModel, report: str, step: ProcessStep) -> None:
    """The step leaves every counter within its domain, and the whole lower in the order in which they weigh."""
    after = model.changed(step)
    names = [one.id for one in model.process.counters]
    inside = [z3.And(after[name].known, model.inside(name, after[name].value)) for name in names]
    lower = _less([after[name].value for name in names], [model.counters[name].value for name in names], model.ctx)
    premise = [*model.taken(report, step), *follows(step.then, step.bars, model.now, model.after)]
    found = run.must_not(
        model.ctx, [*premise, z3.Not(z3.And(*inside, lower))], f"{step.id} after {report} lowers the measure"
    )
    if found is not None:
        sentence = (
            f"'{step.id}' after the report '{report}' may leave the measure as high as it was: it may go on for ever"
        )
        _refute(run, sentence, f"recovering/{step.id}", step.where, f"step {step.id}", step.on)
        return
    forgets = z3.Not(z3.And(z3.BoolVal(True, ctx=model.ctx), *model.repeats(after, model.after)))
    if run.must_not(model.ctx, [*premise, forgets], f"{step.id} after {report} keeps counts") is not None:
        _refute_count(run, model.process, report, step)


def _ends_well(run: Run, model: ProcessModel, report: str, step: ProcessStep) -> None:
    """Nothing is recomputed that cannot be; that nothing is used unless it is ready, the reader of rules sees to."""
    if step.then != "recompute":
        return
    question = [*model.taken(report, step), z3.Not(model.now.recomputable)]
    if run.must_not(model.ctx, question, f"{step.id} after {report} can be computed") is not None:
        run.fail(
            f"'{step.id}' after the report '{report}' recomputes what cannot be recomputed",
            f"recovering/{step.id}",
            step.where,
            refused_story(run),
        )


def _goes_on(run: Run, model: ProcessModel, report: str, step: ProcessStep) -> None:
    """What follows is what should: no step gives up, bars or sets apart where another way is left."""
    for case in onward(report, model.before, model.now, model.budget()):
        if (step.then, step.bars, step.quarantines) == (case.then, case.bars, case.quarantines):
            continue
        question = [*model.taken(report, step), case.when]
        if run.must_not(model.ctx, question, f"{step.id} after {report}, where {case.case}") is None:
            continue
        sentence = (
            f"'{step.id}' answers the report '{report}' with {_told(step)} though {case.case}, "
            f"and {_told(case)} should follow"
        )
        stories = way_stories(run, report, spent=case.spent, mended=case.then == "go_on")
        shown = _shown(run, stories, partial(_answers_last if case.spent else _answers_first, report, step.id))
        if shown is None:
            run.gaps.append(f"{sentence}, which no story shows")
        else:
            run.fail(sentence, f"recovering/{step.id}", step.where, shown)
            return


def _answers_first(report: str, step: str, seen: Answers) -> bool:
    return next((taken for told, taken in seen if told == report), None) == step


def _answers_last(report: str, step: str, seen: Answers) -> bool:
    """Where attempts are spent on a report, none is left at the last."""
    return _answers_first(report, step, seen[::-1])


def _told(way: ProcessStep | Onward) -> str:
    flags = [text for flag, text in ((way.bars, "a barred level"), (way.quarantines, "a copy set apart")) if flag]
    return " and ".join([f"'{way.then}'", *flags])


def _refute_count(run: Run, process: RecoveryProcess, report: str, step: ProcessStep) -> None:
    """A counter that no longer repeats its count: fail with a story in which it misleads a later step."""
    follows_from = {"ready": "use", "done": "go_on"}
    ways = {one.id: one.then for one in process.steps}

    def misled(seen: Answers) -> bool:
        if (report, step.id) not in seen:
            return False
        later = seen[seen.index((report, step.id)) + 1 :]
        return any(ways[taken] != follows_from.get(told, ways[taken]) for told, taken in later)

    sentence = f"{step.id} after {report}: a counter no longer repeats what it started from"
    shown = _shown(run, stale_stories(run, report), misled)
    if shown is None:
        run.gaps.append(sentence)
    else:
        run.fail(f"{sentence}, and a later step is misled by it", f"recovering/{step.id}", step.where, shown)


def _shown(run: Run, stories: Iterable[Scenario], shows: Callable[[Answers], bool]) -> Scenario | None:
    """The first story that the engine is seen to show it in, with the steps that it takes; None where none does."""
    for story in stories:
        seen = answers_in(run, story)
        if shows(seen):
            wanted = RecoveredExpectation(steps=[step for _, step in seen])
            return story.model_copy(update={"expect": Expectation(recovered=wanted)})
    return None


def _can_end_in_use(run: Run, model: ProcessModel) -> None:
    """The premise: a state that is ready ends in use, and the engine is seen to do so."""
    for step in model.process.steps:
        if step.then == "use" and run.must(model.ctx, model.taken("ready", step), f"{step.id}: witness") is not None:
            story = quiet_story(run, step.id)
            if run.replayer is not None and not _plays(run, run.replayer, story):
                run.gaps.append(f"{step.id}: the engine does not use what is ready")
            run.witness = f"what is ready is used, by '{step.id}'"
            return


def _refute(run: Run, sentence: str, rule: str, place: object, halted: str, reports: Sequence[str]) -> None:
    """Fail with the first story in which the engine is seen to halt there."""
    last = None
    for story in halting_stories(run, halted, reports):
        last = story
        if run.replayer is None or _plays(run, run.replayer, story):
            break
    run.fail(sentence, rule, place, last)


def _plays(run: Run, replayer: Replayer, story: Scenario) -> bool:
    try:
        return replayer.replay(run.whole.rulebook, story).passed
    except HitproofError:
        return False


def _less(after: Sequence[Any], before: Sequence[Any], ctx: z3.Context) -> Any:
    """Less in the order of words in a dictionary."""
    less = z3.BoolVal(False, ctx=ctx)
    for new, old in reversed(list(zip(after, before, strict=True))):
        less = z3.Or(new < old, z3.And(new == old, less))
    return less


CLAIM = Claim(
    id="terminates",
    sentence="Every step of a recovery that does not end it lowers attempts, then levels, then failing checks, and "
    "none falls below 0, whatever a repair reports and whoever interferes; every report is answered, the ends are use, "
    "recompute or refuse, and nothing is given up, barred or set apart where another way is left.",
    method="one-step obligations a report and step over counters and the engine's own counts, for the measure and for "
    "what should follow; one question a report for states without an answer",
    assumptions=("the engine counts what it judges",),
    prove=prove,
    parts=parts,
    covers="{count} steps",
)
