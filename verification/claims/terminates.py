"""Claim `terminates`: every recovery ends, whatever is reported and whoever interferes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import z3

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.condition import Node
from hitproof.spec.errors import HitproofError
from hitproof.spec.process import ENDS, REPORTS, ProcessStep, RecoveryProcess
from hitproof.spec.scenario import Replayer, Scenario
from hitproof.verification.axioms.recovery import Measured, follows, reported
from hitproof.verification.encode import encode, encode_number
from hitproof.verification.model import World
from hitproof.verification.parts import Part
from hitproof.verification.run import Claim, Run
from hitproof.verification.stories import halting_stories, quiet_story, refused_story
from hitproof.verification.z3_facts import Z3Fact

__all__ = ["CLAIM"]


def parts(bound: BoundRulebook) -> list[Part]:
    """The process is the same for every model."""
    return [Part("the process", (), reads=frozenset({"rulebook"}))]


def prove(run: Run) -> None:
    """Starts within bounds, an answer to every report, and a lower measure after every step that does not end."""
    process = run.bound.rulebook.recovering
    if process is None:
        run.gaps.append("the rulebook does not say how a plan is carried out")
        return
    model = _Model(run, process)
    _starts(run, model)
    for report in REPORTS:
        _answers(run, model, report)
        for step in (one for one in process.steps if report in one.on):
            if step.then in ENDS:
                _ends_well(run, model, report, step)
            else:
                _lowers(run, model, report, step)
            if run.done:
                return
    _can_end_in_use(run, model)
    run.count = len(process.steps)


class _Model:
    """A state of the process as terms: counters and counts before, at a report, and after what follows."""

    def __init__(self, run: Run, process: RecoveryProcess) -> None:
        self.process, self.world = process, World(run.bound)
        self.ctx = self.world.ctx
        self.before, self.now, self.after = (Measured.fresh(self.ctx, f"{at}.") for at in ("before", "now", "after"))
        true = z3.BoolVal(True, ctx=self.ctx)
        self.counters = {one.id: Z3Fact(z3.Int(one.id, ctx=self.ctx), true) for one in process.counters}

    def state(self) -> list[Any]:
        """A state that can be: counters within their domains, those that repeat a count equal to it."""
        inside = [self.inside(one.id, self.counters[one.id].value) for one in self.process.counters]
        return [*inside, *self.repeats(self.counters, self.before), *self._domains()]

    def repeats(self, counters: Mapping[str, Z3Fact], counts: Measured) -> list[Any]:
        """Every counter that starts from a count is equal to it."""
        found = [(counters[one.id].value, one.measure) for one in self.process.counters if one.measure is not None]
        return [value == counts.fact(measure).value for value, measure in found]

    def inside(self, counter: str, value: Any) -> Any:
        fact = next(one.fact for one in self.process.counters if one.id == counter)
        return z3.And(value >= int(fact.lo or 0), value <= int(fact.hi or 0))

    def guard(self, step: ProcessStep) -> Any:
        """Surely true, at the report."""
        if step.when is None:
            return z3.BoolVal(True, ctx=self.ctx)
        return encode(step.when, lambda path: self._name(path, self.now), ctx=self.ctx, enums=self.world.enums).T

    def taken(self, report: str, step: ProcessStep) -> list[Any]:
        """The step is the first of those that answer the report whose guard surely holds."""
        earlier = []
        for one in self.process.steps:
            if one is step:
                break
            earlier += [z3.Not(self.guard(one))] if report in one.on else []
        return [*self.state(), *reported(report, self.before, self.now), *earlier, self.guard(step)]

    def changed(self, step: ProcessStep) -> dict[str, Z3Fact]:
        """The counters after a step."""
        found = dict(self.counters)
        found.update({name: self.after.fact(name) for name in step.takes})
        found.update({name: self.number(node, self.after) for name, node in step.sets.items()})
        return found

    def number(self, node: Node, counts: Measured) -> Z3Fact:
        """An expression over the counters before and these counts."""
        names = lambda path: self._name(path, counts)  # noqa: E731 - a name for the argument
        return Z3Fact(*encode_number(node, names, ctx=self.ctx, enums=self.world.enums))

    def _name(self, path: str, counts: Measured) -> Z3Fact:
        scope, _, name = path.partition(".")
        if scope == "event":
            return counts.fact(name)
        return self.counters[path] if path in self.counters else self.world.shared(path)

    def _domains(self) -> list[Any]:
        counts = (self.before, self.now, self.after)
        return [*(bound for one in counts for bound in one.domain()), *self.world.domains()]


def _starts(run: Run, model: _Model) -> None:
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


def _answers(run: Run, model: _Model, report: str) -> None:
    """No state and no report is without a step: there is no deadlock."""
    guards = [z3.Not(model.guard(one)) for one in model.process.steps if report in one.on]
    question = [*model.state(), *reported(report, model.before, model.now), *guards]
    if run.must_not(model.ctx, question, f"{report} is answered") is not None:
        sentence = f"after the report '{report}' a recovery may stand still: no step answers it"
        _refute(run, sentence, "recovering", model.process.where, f"report {report}", [report])


def _lowers(run: Run, model: _Model, report: str, step: ProcessStep) -> None:
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
        run.gaps.append(f"{step.id} after {report}: a counter no longer repeats what it started from")


def _ends_well(run: Run, model: _Model, report: str, step: ProcessStep) -> None:
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


def _can_end_in_use(run: Run, model: _Model) -> None:
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
    "none falls below 0, whatever a repair reports and whoever interferes; every report is answered, and the ends are "
    "use, recompute or refuse.",
    method="one-step obligations a report and step over counters and the engine's own counts; one question a report "
    "for states without an answer",
    assumptions=("the engine counts what it judges",),
    prove=prove,
    parts=parts,
    covers="{count} steps",
)
