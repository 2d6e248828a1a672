"""Whether two recovery processes take steps alike after every report, from every state that can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3

from hitproof.spec.bound import BoundRulebook
from hitproof.spec.process import ENDS, REPORTS, ProcessStep
from hitproof.verification.axioms.recovery import follows, reported
from hitproof.verification.digest import digest_of
from hitproof.verification.process import ProcessModel
from hitproof.verification.solve import Asker

__all__ = ["processes_are_equal"]


def processes_are_equal(asker: Asker, one: BoundRulebook, other: BoundRulebook) -> bool:
    """Whether steps of one name are taken by both, with equal consequences and equal counters after them.

    States are those of claim `terminates`: counters within their domains, and equal to the counts that they repeat.
    False too where the solver gives up.
    """
    mine, theirs = one.rulebook.recovering, other.rulebook.recovering
    if digest_of(mine) == digest_of(theirs):
        return True
    if mine is None or theirs is None or digest_of(mine.counters) != digest_of(theirs.counters):
        return False
    model = ProcessModel(one, mine)
    pair = model, ProcessModel(other, theirs, beside=model)
    return all(
        asker.ask(model.ctx, question).status == "unsat" for report in REPORTS for question in _differ(pair, report)
    )


def _differ(pair: tuple[ProcessModel, ProcessModel], report: str) -> Iterator[list[Any]]:
    """States in which the two answer a report otherwise."""
    model, twin = pair
    mine, theirs = ([step for step in one.process.steps if report in step.on] for one in pair)
    told = [*model.state(), *reported(report, model.before, model.now)]
    for asked, answering, silent in ((model, mine, (twin, theirs)), (twin, theirs, (model, mine))):
        nobody = [z3.Not(silent[0].guard(step)) for step in silent[1]]
        yield [*told, z3.Or([z3.BoolVal(False, ctx=model.ctx), *map(asked.guard, answering)]), *nobody]
    for step in mine:
        for other in theirs:
            both = [*model.taken(report, step), *twin.taken(report, other)]
            if _told(step) != _told(other):
                yield both
            elif step.then not in ENDS:
                here, there = model.changed(step), twin.changed(other)
                same = [
                    z3.And(one.value == there[name].value, one.known == there[name].known) for name, one in here.items()
                ]
                yield [*both, *follows(step.then, step.bars, model.now, model.after), z3.Not(z3.And(same))]


def _told(step: ProcessStep) -> tuple[str, str, bool, bool]:
    return step.id, step.then, step.bars, step.quarantines
