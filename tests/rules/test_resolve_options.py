"""Recovery options are read, or refused where they ask what no check, repair or peer can give."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.errors import ConditionError, DuplicateError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Option, Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

EVERY = "every_object.yaml"
FULL = "objects/full_kv.yaml"
INDEX = "objects/routing_index.yaml"


def option(rulebook: Rulebook, name: str) -> Option:
    """An option by `object/option`."""
    return next(one for one in rulebook.objects[name.partition("/")[0]].options if one.rule == name)


class TestOptions:
    """What an option becomes."""

    def test_check_sets_are_put_in_place_of_their_names(self, rulebook: Rulebook) -> None:
        """As far as the object has the checks, each once, in order."""
        mends = option(rulebook, "routing_index/rebuild_keys").mends
        assert ("well_formed", "resident") == mends[:2]
        assert {"covers_entries", "same_kv", "rows_mapped"} < set(mends)
        assert len(set(mends)) == len(mends)
        assert "whole_block" not in mends

    def test_an_inherited_option_mends_what_the_object_has(self, rulebook: Rulebook) -> None:
        """Checks that `inherits:` leaves out take no part."""
        assert "fingerprint_matches" in option(rulebook, "full_kv/verify").mends
        assert () == option(rulebook, "demoted_prefix/verify").mends

    def test_full_recomputation_mends_everything(self, rulebook: Rulebook) -> None:
        """Implicit checks too."""
        for rules in rulebook.objects.values():
            last = option(rulebook, f"{rules.name}/recompute")
            assert {*(check.id for check in rules.checks), "well_formed", "resumable"} == set(last.mends)

    def test_an_inherited_option_without_its_peer_can_be_taken_by_no_group(self, rulebook: Rulebook) -> None:
        """The boundary record has no manifest, so it is never promoted."""
        found = option(rulebook, "window_boundary/promote_from_host")
        assert (("?",), None, None) == (found.consumes, found.when, found.cost)

    def test_leniently_an_option_may_stand_twice(self, source: RuleSource) -> None:
        """The verifier is shown both, and says which of them is never decisive."""
        changed, _ = source.edited(("objects", "full_kv", "recovery", "fill_young_end", "id"), "verify")
        options = resolve(changed, lenient=True).objects["full_kv"].options
        assert 2 == sum(one.id == "verify" for one in options)


@slips(
    Slip(
        "option twice",
        FULL,
        "id: fill_young_end",
        "id: ¶verify",
        DuplicateError,
        rule="full_kv/verify",
        got="verify",
        message="option full_kv/verify stands twice",
    ),
    Slip(
        "unknown level",
        FULL,
        "id: fill_young_end\n        level: in_place",
        "id: fill_young_end\n        level: ¶inplace",
        SchemaError,
        got="inplace",
        expected="in_place",
    ),
    Slip(
        "unknown repair",
        FULL,
        "repair: tail_fill",
        "repair: ¶tailfill",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="tailfill",
        hint="tail_fill",
        message="no declared repair",
    ),
    Slip(
        "unknown check in mends",
        FULL,
        "mends: [sealed, covers_prefix]",
        "mends: [¶cover_prefix, bytes_whole]",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="cover_prefix",
        hint="covers_prefix",
    ),
    Slip(
        "check of another object in mends",
        FULL,
        "mends: [sealed, covers_prefix]",
        "mends: [sealed, covers_prefix, ¶covers_window]",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="covers_window",
    ),
    Slip(
        "unknown check in inherited mends",
        EVERY,
        "mends: [sealed, encoding_matches, scale_matches]",
        "mends: [sealed, encoding_matches, ¶scales_match]",
        ReferenceNameError,
        rule="full_kv/requantize",
        got="scales_match",
        hint="scale_matches",
    ),
    Slip(
        "identity in mends",
        FULL,
        "mends: [sealed, covers_prefix]",
        "mends: ¶[covers_prefix, same_salt]",
        SchemaError,
        rule="full_kv/fill_young_end",
        got="same_salt",
        expected="other layers",
        message="no repair mends identity",
    ),
    Slip(
        "all but spelled wrong",
        EVERY,
        "mends: all",
        "mends: ¶every",
        SchemaError,
        got="every",
        expected="valid array",
    ),
    Slip(
        "consumes an unknown thing",
        FULL,
        "consumes: [self, inputs]",
        "consumes: [self, ¶input]",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="input",
        hint="inputs",
    ),
    Slip(
        "consumes another object's peer",
        FULL,
        "consumes: [self, inputs]",
        "consumes: [self, ¶boundary]",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="boundary",
    ),
    Slip(
        "inherited option consumes an unknown thing",
        EVERY,
        "id: verify\n      level: in_place\n      repair: checksum\n      applies: group.has_bytes\n"
        "      mends: [fingerprint_matches]\n      consumes: [self]",
        "id: verify\n      level: in_place\n      repair: checksum\n      applies: group.has_bytes\n"
        "      mends: [fingerprint_matches]\n      consumes: [¶shelf]",
        ReferenceNameError,
        rule="full_kv/verify",
        got="shelf",
        hint="self",
    ),
    Slip(
        "consumes less than the repair",
        FULL,
        "consumes: [self, inputs]",
        "consumes: ¶[inputs]",
        SchemaError,
        rule="full_kv/fill_young_end",
        got="['inputs']",
        expected="[self, layer_inputs]",
    ),
    Slip(
        "consumes more than the repair",
        FULL,
        "consumes: [self, inputs]",
        "consumes: ¶[self, inputs, manifest]",
        SchemaError,
        rule="full_kv/fill_young_end",
        got="['self', 'inputs', 'manifest']",
        expected="[self, layer_inputs]",
    ),
    Slip(
        "consumes other than the repair",
        INDEX,
        "consumes: [inputs, kv]",
        "consumes: ¶[self, kv]",
        SchemaError,
        rule="routing_index/rebuild_keys",
        got="['self', 'kv']",
        expected="[layer_inputs, kv]",
    ),
    Slip(
        "repair that makes another object",
        FULL,
        "repair: tail_fill\n        mends: [sealed, covers_prefix]\n        consumes: [self, inputs]",
        "repair: ¶recompress\n        mends: [sealed, covers_prefix]\n        consumes: [inputs]",
        SchemaError,
        rule="full_kv/fill_young_end",
        got="recompress",
        expected="compressed_global",
        message="does not produce full_kv",
    ),
    Slip(
        "cost in bytes",
        INDEX,
        "cost: self.bytes * runtime.device_us_per_byte + runtime.launch_us",
        "cost: ¶self.bytes",
        UnitError,
        rule="routing_index/remap",
        got="bytes",
        expected="us",
    ),
    Slip(
        "cost with two units",
        INDEX,
        "cost: self.bytes * runtime.device_us_per_byte + runtime.launch_us",
        "cost: ¶self.bytes * runtime.device_us_per_byte + self.bytes",
        UnitError,
        rule="routing_index/remap",
        got="us and bytes",
    ),
    Slip(
        "cost that is no number",
        INDEX,
        "cost: self.bytes * runtime.device_us_per_byte + runtime.launch_us",
        "cost: ¶self.sealed",
        ConditionError,
        rule="routing_index/remap",
        got="bool",
        expected="us",
    ),
    Slip(
        "applies reads the request",
        EVERY,
        "id: recompute\n      level: full_recompute\n",
        "id: recompute\n      applies: ¶request.captured\n      level: full_recompute\n",
        ConditionError,
        rule="full_kv/recompute",
        got="request.captured",
    ),
    Slip(
        "condition reads an unknown fact",
        INDEX,
        "when: self.form == home and self.kv_content == kv.recorded",
        "when: self.form == home and self.kv_content == ¶kv.recorder",
        ConditionError,
        rule="routing_index/remap",
        got="kv.recorder",
        hint="kv.recorded",
    ),
)
def test_a_slip_in_an_option_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the option, what stood there and what would have been right."""
    assert_told(tmp_path, slip)


def test_an_option_needs_a_cost(source: RuleSource) -> None:
    """Options are chosen by cost; the place is that of the option."""
    path = ("objects", "full_kv", "recovery", "fill_young_end")
    changed, _ = source.edited((*path, "cost"), None)
    _, where = source.edited((*path, "id"), "x")
    with pytest.raises(SchemaError, match="needs a cost") as caught:
        resolve(changed)
    assert ("full_kv/fill_young_end", "cost") == (caught.value.rule, caught.value.expected)
    assert (where.file, where.line) == (caught.value.where.file, caught.value.where.line)


def test_no_check_set_hides_identity(source: RuleSource) -> None:
    """A set of checks is looked into."""
    changed, _ = source.edited(("every_object", "check_sets", "whole_block"), ["well_formed", "same_media"])
    with pytest.raises(SchemaError, match="no repair mends identity") as caught:
        resolve(changed)
    assert "same_media" == caught.value.got


@pytest.mark.parametrize("given", ["tokens", "media"])
def test_what_a_request_brings_must_be_a_fact_of_it(source: RuleSource, given: str) -> None:
    """An option that reads tokens or media asks whether they are at hand."""
    changed, _ = source.edited(("request", f"has_{given}"), None)
    with pytest.raises(SchemaError, match=f"the request's {given} are at hand") as caught:
        resolve(changed)
    assert f"a request fact `has_{given}`" == caught.value.expected
    assert caught.value.where.file.endswith("every_object.yaml")


def test_a_step_of_an_option_that_nobody_names_is_no_error(source: RuleSource) -> None:
    """An unused check set is told as unused, not refused."""
    changed, _ = source.edited(("every_object", "check_sets", "spare"), ["resident"])
    assert resolve(changed).objects.keys() == resolve(source).objects.keys()
