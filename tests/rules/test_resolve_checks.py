"""Checks and boundaries are read, or refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.condition import text
from hitproof.spec.errors import ConditionError, DuplicateError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

EVERY = "every_object.yaml"
FULL = "objects/full_kv.yaml"
MANIFEST = "objects/demoted_prefix.yaml"
STATE = "objects/recurrent_state.yaml"
PATH = ("objects", "recurrent_state", "resumable")


class TestChecks:
    """Which checks an object has."""

    def test_inherited_checks_come_first(self, rulebook: Rulebook) -> None:
        """In the order of the file, then the object's own."""
        ids = [check.id for check in rulebook.objects["full_kv"].checks]
        assert ("same_weights", "at_stored_boundary") == (ids[0], ids[-1])
        assert ids.index("stride_aligned") < ids.index("bytes_whole")

    def test_inherits_picks_among_them(self, rulebook: Rulebook) -> None:
        """A manifest has no bytes to be checked."""
        ids = {check.id for check in rulebook.objects["demoted_prefix"].checks}
        assert "same_salt" in ids
        assert not {"fingerprint_matches", "base_aligned", "layout_matches"} & ids

    def test_a_check_knows_where_its_condition_begins(self, rulebook: Rulebook) -> None:
        """The place is that of the condition's first character."""
        check = next(check for check in rulebook.objects["full_kv"].checks if check.id == "covers_prefix")
        line = Path(check.where.file).read_text("utf-8").splitlines()[check.where.line - 1]
        assert line[check.where.column - 1 :].startswith("self.start <= needs.first")
        assert "full_kv/covers_prefix" == check.rule


class TestResumable:
    """Where an object can resume."""

    def test_multiples_become_a_condition_on_the_length(self, source: RuleSource) -> None:
        """The divisor may be a constant of the profile."""
        changed, _ = source.edited(PATH, {"every": "group.ratio"})
        found = resolve(changed).objects["recurrent_state"].resumable
        assert found.condition is not None
        assert ("every", "length % group.ratio == 0") == (found.kind, text(found.condition))

    def test_stored_boundaries_become_membership(self, rulebook: Rulebook) -> None:
        """The length must be one of them."""
        found = rulebook.objects["recurrent_state"].resumable
        assert found.condition is not None
        assert ("stored", "length in self.marks") == (found.kind, text(found.condition))

    def test_any_length_needs_no_condition(self, rulebook: Rulebook) -> None:
        """Nothing is left to check."""
        assert rulebook.objects["full_kv"].resumable.condition is None

    @pytest.mark.parametrize(
        "stored", ["self.marks or self.sealed", "self.marks) or (self.sealed", "(1, 2)", "self.end"]
    )
    def test_stored_is_a_fact_and_no_condition(self, source: RuleSource, stored: str) -> None:
        """Nothing can be smuggled behind the membership."""
        changed, where = source.edited(PATH, {"stored": stored})
        with pytest.raises((ConditionError, SchemaError)) as caught:
            resolve(changed)
        assert ("recurrent_state", where.line) == (caught.value.rule, caught.value.where.line)


@slips(
    Slip(
        "check of every object twice",
        EVERY,
        "id: same_weights",
        "id: same_weights\n      layer: identity\n      require: self.weights == request.weights\n"
        "      because: b\n      source: s\n    - id: ¶same_weights",
        DuplicateError,
        rule="full_kv/same_weights",
        got="same_weights",
        message="stands twice",
    ),
    Slip(
        "own check with an inherited id",
        FULL,
        "id: covers_prefix",
        "id: ¶same_salt",
        DuplicateError,
        rule="full_kv/same_salt",
        got="same_salt",
    ),
    Slip(
        "check with the id of an implicit one",
        FULL,
        "id: covers_prefix",
        "id: ¶well_formed",
        DuplicateError,
        rule="full_kv/well_formed",
        got="well_formed",
    ),
    Slip(
        "inherits an unknown check",
        MANIFEST,
        "inherits: [same_weights,",
        "inherits: [¶same_weight,",
        ReferenceNameError,
        rule="demoted_prefix",
        got="same_weight",
        hint="same_weights",
    ),
    Slip(
        "check set with an unknown check",
        EVERY,
        "whole_block: [well_formed, resident,",
        "whole_block: [well_formed, ¶resisdent,",
        ReferenceNameError,
        rule="whole_block",
        got="resisdent",
        hint="resident",
    ),
    Slip(
        "check set twice",
        EVERY,
        "  check_sets:\n",
        "  check_sets:\n    whole: [resident]\n    ¶whole: [resident]\n",
        DuplicateError,
        got="whole",
        message="this key stands twice",
    ),
    Slip(
        "unknown layer",
        FULL,
        "id: covers_prefix\n        layer: group_intersection",
        "id: covers_prefix\n        layer: ¶group",
        SchemaError,
        got="group",
        expected="group_intersection",
    ),
    Slip(
        "unknown fact in a check",
        FULL,
        "require: self.start <= needs.first",
        "require: ¶self.strat <= needs.first",
        ConditionError,
        rule="full_kv/covers_prefix",
        got="self.strat",
        hint="self.start",
    ),
    Slip(
        "unknown need in a check",
        FULL,
        "require: self.start <= needs.first",
        "require: self.start <= ¶needs.begin",
        ConditionError,
        rule="full_kv/covers_prefix",
        got="needs.begin",
    ),
    Slip(
        "a peer that the object has not",
        FULL,
        "require: self.start <= needs.first",
        "require: self.start <= ¶kv.start",
        ConditionError,
        rule="full_kv/covers_prefix",
        got="kv.start",
    ),
    Slip(
        "two units in a check",
        FULL,
        "require: self.start <= needs.first",
        "require: ¶self.bytes <= needs.first",
        UnitError,
        rule="full_kv/covers_prefix",
        got="bytes and tokens",
    ),
    Slip(
        "known under a negation",
        FULL,
        "require: self.start <= needs.first",
        "require: not ¶known(self.start) or self.start <= needs.first",
        ConditionError,
        rule="full_kv/covers_prefix",
        got="known(self.start)",
        expected="positive position",
    ),
    Slip(
        "known as a premise",
        FULL,
        "require: self.start <= needs.first",
        "require: implies(¶known(self.start), self.start <= needs.first) and self.start <= needs.first",
        ConditionError,
        rule="full_kv/covers_prefix",
        got="known(self.start)",
        expected="positive position",
    ),
    Slip(
        "applies reads a segment",
        FULL,
        "applies: group.stored_boundaries",
        "applies: ¶self.sealed",
        ConditionError,
        rule="full_kv/at_stored_boundary",
        got="self.sealed",
        expected="group.window",
    ),
    Slip(
        "no reason",
        FULL,
        "because: every later query attends to every position before it",
        "because: ¶''",
        SchemaError,
        got='""',
        expected="at least 1",
    ),
    Slip(
        "both kinds of boundaries",
        STATE,
        "resumable: {stored: self.marks}",
        'resumable: ¶{stored: self.marks, every: "64"}',
        SchemaError,
        rule="recurrent_state",
        expected="one of them",
    ),
    Slip(
        "no kind of boundaries",
        STATE,
        "resumable: {stored: self.marks}",
        "resumable: ¶{}",
        SchemaError,
        rule="recurrent_state",
        expected="one of them",
    ),
    Slip(
        "boundaries every so many bytes",
        STATE,
        "resumable: {stored: self.marks}",
        "resumable: {every: ¶group.row_bytes}",
        UnitError,
        rule="recurrent_state",
        got="bytes",
        expected="tokens",
    ),
    Slip(
        "boundaries in a number",
        STATE,
        "resumable: {stored: self.marks}",
        "resumable: {stored: ¶self.end}",
        SchemaError,
        rule="recurrent_state",
        got="self.end",
        expected="set of tokens",
    ),
)
def test_a_slip_in_a_check_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the check, what stood there and what would have been right."""
    assert_told(tmp_path, slip)
