"""Thresholds are read as they are declared, or refused with their place."""

from __future__ import annotations

from pathlib import Path

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError
from hitproof.spec.metrics import COUNTERS, label_values
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.thresholds import Series, Span
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "observe.yaml"


class TestThresholds:
    """What the section becomes."""

    def test_a_threshold_is_what_was_declared(self, rulebook: Rulebook) -> None:
        """One value or a list of them, a window, and the reason."""
        rule = rulebook.thresholds["refused_events"]
        assert Series("transitions", {"result": ("refused", "impossible")}) == rule.of
        assert Series("transitions", {}) == rule.over
        assert (0.2, Span("seconds", 300), 50, "warning") == (rule.above, rule.span, rule.at_least, rule.severity)
        assert rule.because and rule.source and rule.where.line
        assert Span("decisions", 1000) == rulebook.thresholds["failed_recoveries"].span
        assert 1 == rulebook.thresholds["recovery_without_end"].at_least

    def test_every_threshold_reads_what_can_be_counted(self, rulebook: Rulebook) -> None:
        """Metrics, labels and values are among those that the counters have."""
        values = label_values(rulebook)
        assert rulebook.thresholds
        for rule in rulebook.thresholds.values():
            for series in (rule.of, rule.over):
                assert set(series.where) <= set(COUNTERS[series.metric].labels)
                assert all(set(some) <= set(values[series.metric][label]) for label, some in series.where.items())

    def test_a_rulebook_may_have_none(self, source: RuleSource) -> None:
        """Then nothing is watched."""
        files = {name: tree for name, tree in source.files.items() if not name.endswith(FILE)}
        assert {} == resolve(RuleSource(source.name, files, source.repairs)).thresholds

    def test_labels_are_names_that_rules_declare(self, rulebook: Rulebook) -> None:
        """Each counter has values for its labels, and each value is a plain name."""
        values = label_values(rulebook)
        assert set(COUNTERS) == set(values)
        for name, labels in values.items():
            assert set(COUNTERS[name].labels) == set(labels)
            assert all(value.replace("_", "").isalnum() for some in labels.values() for value in some)


@slips(
    Slip(
        "threshold twice",
        FILE,
        "- id: refused_events",
        "- id: ¶damaged_blocks",
        DuplicateError,
        rule="damaged_blocks",
        got="damaged_blocks",
        expected="once",
    ),
    Slip(
        "metric that does not exist",
        FILE,
        "of: {metric: transitions, where",
        "of: {metric: ¶transition, where",
        ReferenceNameError,
        rule="thresholds/refused_events",
        got="transition",
        hint="transitions",
    ),
    Slip(
        "label that does not exist",
        FILE,
        "where: {report: moved}",
        "where: {reports: ¶moved}",
        ReferenceNameError,
        rule="thresholds/moved_under_the_lease",
        got="reports",
        hint="report",
    ),
    Slip(
        "value that does not exist",
        FILE,
        "where: {result: [refused, impossible]}",
        "where: {result: [refused, ¶impassible]}",
        ReferenceNameError,
        rule="thresholds/refused_events",
        got="impassible",
        hint="impossible",
    ),
    Slip(
        "check that no object has",
        FILE,
        "rule: [bytes_whole, fingerprint_matches",
        "rule: [bytes_whole, ¶fingerprint_match",
        ReferenceNameError,
        rule="thresholds/damaged_blocks",
        got="fingerprint_match",
        hint="fingerprint_matches",
    ),
    Slip(
        "parts that overlap",
        FILE,
        "of: {metric: tokens, where: {part: recomputed}}",
        "of: {metric: tokens, where: {part: ¶[recomputed, logical]}}",
        SchemaError,
        rule="thresholds/hits_in_vain",
        got="recomputed, logical",
        expected="one part",
    ),
    Slip(
        "all parts of what overlaps",
        FILE,
        "of: {metric: drift, where: {layer: hardware_alignment}}",
        "¶of: {metric: drift}",
        SchemaError,
        rule="thresholds/misaligned_rows",
        got="all of them",
        expected="one layer",
    ),
    Slip(
        "two windows",
        FILE,
        "for: {decisions: 1000}",
        "for: ¶{decisions: 1000, seconds: 60}",
        SchemaError,
        rule="thresholds/failed_recoveries",
        got="decisions, seconds",
        expected="one of",
    ),
    Slip(
        "no window",
        FILE,
        "for: {decisions: 1000}",
        "for: ¶{}",
        SchemaError,
        rule="thresholds/failed_recoveries",
        got="neither",
    ),
    Slip("window of nothing", FILE, "for: {decisions: 1000}", "for: {decisions: ¶0}", SchemaError, got="0"),
    Slip("rate below nought", FILE, "above: 0.1", "above: ¶-0.1", SchemaError, got="-0.1"),
    Slip(
        "severity that does not exist",
        FILE,
        "severity: critical\n    because: blocks",
        "severity: ¶grave\n    because: blocks",
        SchemaError,
        got="grave",
    ),
)
def test_a_slip_is_told_with_its_place(tmp_path: Path, slip: Slip) -> None:
    """Each mistake has its class, its place and what would have been right."""
    assert_told(tmp_path, slip)
