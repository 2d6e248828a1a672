"""The process of a recovery is read as it is declared, or refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.condition import text
from hitproof.spec.errors import ConditionError, DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.process import ENDS, REPORTS, WAYS
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "recovering.yaml"


class TestProcess:
    """What the section becomes."""

    def test_counters_stand_in_the_order_in_which_they_weigh(self, rulebook: Rulebook) -> None:
        """Attempts weigh most, failing checks least; the latter two repeat what is measured."""
        process = rulebook.recovering
        assert process is not None
        assert [("attempts", None), ("levels", "levels"), ("failing", "failing")] == [
            (one.id, one.measure) for one in process.counters
        ]
        assert (0, 3) == (process.counters[0].fact.lo, process.counters[0].fact.hi)

    def test_every_report_is_answered_and_every_end_reached(self, rulebook: Rulebook) -> None:
        """No report is without a step, and each way on is taken by some step."""
        process = rulebook.recovering
        assert process is not None
        assert set(REPORTS) == {report for step in process.steps for report in step.on}
        assert set(WAYS) == {step.then for step in process.steps}
        assert set(ENDS) < set(WAYS)

    def test_steps_stand_in_file_order_with_their_reasons(self, rulebook: Rulebook) -> None:
        """The first that fits is taken; each says why, and where it comes from."""
        process = rulebook.recovering
        assert process is not None
        assert ("mended", "refused") == (process.steps[0].id, process.steps[-1].id)
        assert all(step.because and step.source and step.where.line for step in process.steps)
        assert "event.failing < failing" == text(process.steps[0].when) if process.steps[0].when else False

    def test_a_rulebook_may_have_none(self, source: RuleSource) -> None:
        """Then it decides, and no plan is carried out by it."""
        files = {name: tree for name, tree in source.files.items() if not name.endswith(FILE)}
        assert resolve(RuleSource(source.name, files, source.repairs)).recovering is None

    def test_guards_may_read_the_request_and_the_run_time(self, source: RuleSource) -> None:
        """A step may depend on a latency budget, or on whether something is known."""
        changed, _ = source.edited(
            ("recovering", "steps", "interfered", "when"),
            "attempts > 0 and not known(request.graph_epoch) and runtime.launch_us < 20",
        )
        process = resolve(changed).recovering
        assert process is not None and process.steps[4].when is not None
        assert "not known(request.graph_epoch)" in text(process.steps[4].when)


@slips(
    Slip(
        "counter twice",
        FILE,
        "- id: levels",
        "- id: ¶attempts",
        DuplicateError,
        rule="recovering/attempts",
        message="counter attempts stands twice",
    ),
    Slip(
        "step twice",
        FILE,
        "- id: interfered",
        "- id: ¶mended",
        DuplicateError,
        rule="recovering/mended",
        message="step mended stands twice",
    ),
    Slip(
        "counter below nought",
        FILE,
        "domain: [0, 3]",
        "domain: ¶[-1, 3]",
        SchemaError,
        rule="recovering/attempts",
        got="[-1, 3]",
        expected="[0, highest]",
        message="stays at 0 or more",
    ),
    Slip(
        "start of another type",
        FILE,
        "start: event.levels",
        "start: ¶event.recomputable",
        ConditionError,
        rule="recovering/levels",
        got="bool",
        expected="count",
    ),
    Slip(
        "guard that reads a segment",
        FILE,
        "when: event.failing < failing",
        "when: event.failing < ¶self.end",
        ConditionError,
        rule="recovering/mended",
        got="self.end",
    ),
    Slip(
        "counter that does not exist",
        FILE,
        "when: failing == 0",
        "when: ¶failings == 0",
        ConditionError,
        rule="recovering/confirmed",
        got="failings",
        hint="failing",
    ),
    Slip(
        "setting what is no counter",
        FILE,
        "takes: [levels, failing]\n      sets: {attempts: attempts - 1}",
        "takes: [levels, failing]\n      sets: {attempt: ¶attempts - 1}",
        ReferenceNameError,
        rule="recovering/interfered",
        got="attempt",
        hint="attempts",
    ),
    Slip(
        "measuring what nobody measures",
        FILE,
        "takes: [failing]",
        "takes: [¶attempts]",
        ReferenceNameError,
        rule="recovering/mended",
        got="attempts",
        hint="failing",
    ),
    Slip(
        "measured and set",
        FILE,
        "takes: [levels, failing]\n      sets: {attempts: attempts - 1}",
        "takes: [levels, failing]\n      sets: {levels: ¶levels - 1}",
        DuplicateError,
        rule="recovering/interfered",
        got="levels",
        message="both measured and set",
    ),
    Slip(
        "use of what is not ready",
        FILE,
        "on: [ready]",
        "on: [ready, ¶moved]",
        SchemaError,
        rule="recovering/confirmed",
        got="moved",
        expected="ready",
    ),
    Slip(
        "going on without a repair",
        FILE,
        "on: [done]\n",
        "on: [done, ¶failed]\n",
        SchemaError,
        rule="recovering/mended",
        got="failed",
        expected="done",
    ),
    Slip(
        "barring without a repair",
        FILE,
        "on: [source_lost]",
        "on: [source_lost, ¶nothing]",
        SchemaError,
        rule="recovering/source_lost",
        got="nothing",
        expected="source_lost",
    ),
    Slip(
        "barring and trying again",
        FILE,
        "bars: true\n      then: decide",
        "bars: true\n      then: ¶retry",
        SchemaError,
        rule="recovering/source_lost",
        got="retry",
        expected="decide",
    ),
    Slip(
        "report that does not exist",
        FILE,
        "on: [moved]",
        "on: [¶stirred]",
        SchemaError,
        got="stirred",
    ),
    Slip(
        "step without a report",
        FILE,
        "on: [moved]",
        "on: ¶[]",
        SchemaError,
        got="a list",
    ),
)
def test_a_slip_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each slip has its class, place, rule, and what was got and expected."""
    assert_told(tmp_path, slip)


def test_the_section_stands_once(source: RuleSource) -> None:
    """Two files cannot both say how a plan is carried out."""
    name, tree = next((name, tree) for name, tree in source.files.items() if name.endswith(FILE))
    twice = RuleSource(source.name, {**source.files, f"{name}.again": tree}, source.repairs)
    with pytest.raises(DuplicateError, match="section recovering stands twice"):
        resolve(twice)
