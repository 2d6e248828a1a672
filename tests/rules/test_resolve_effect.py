"""Effects are read, or refused where they claim more than their repair does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.resolve import resolve
from hitproof.rules.resolve_effect import NEVER_SET
from hitproof.rules.source import RuleSource
from hitproof.spec.condition import text
from hitproof.spec.errors import ConditionError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Effect, Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

EVERY = "every_object.yaml"
FULL = "objects/full_kv.yaml"
INDEX = "objects/routing_index.yaml"
STATE = "objects/compressor_state.yaml"
FILL = ("objects", "full_kv", "recovery", "fill_young_end")
REBUILD = ("objects", "routing_index", "recovery", "rebuild_keys")


def effect(rulebook: Rulebook, name: str) -> Effect:
    """The effect of an option by `object/option`."""
    options = rulebook.objects[name.partition("/")[0]].options
    return next(one.effect for one in options if one.rule == name)


class TestEffects:
    """What an effect becomes."""

    def test_shared_effects_are_put_in_place(self, rulebook: Rulebook) -> None:
        """Beside what the option sets itself."""
        found = effect(rulebook, "routing_index/rebuild_keys")
        assert {"generation", "layout", "kv_content", "end"} <= set(found.sets)
        assert ("address",) == tuple(found.chooses)
        assert found.renews

    def test_the_option_s_own_value_goes_before_a_shared_one(self, source: RuleSource) -> None:
        """What is written last to the file's reader is what is meant."""
        changed, _ = source.edited((*REBUILD, "sets", "exactness"), "approximate")
        assert "approximate" == text(effect(resolve(changed), "routing_index/rebuild_keys").sets["exactness"])

    def test_what_the_repair_keeps_is_kept_as_far_as_the_object_has_it(self, rulebook: Rulebook) -> None:
        """Facts of other objects take no part."""
        found = effect(rulebook, "full_kv/verify")
        assert {"weights", "start", "recorded"} <= found.keeps
        assert "window_size" not in found.keeps

    def test_a_shared_effect_sets_what_the_object_has(self, source: RuleSource) -> None:
        """Where an object lacks the fact, nothing is set."""
        path = ("every_object", "effects", "fresh_block", "sets", "compressor_version")
        changed, _ = source.edited(path, "request.compressor_version")
        rulebook = resolve(changed)
        assert "compressor_version" not in effect(rulebook, "routing_index/rebuild_keys").sets
        assert "compressor_version" in effect(rulebook, "compressed_global/rebuild_entries").sets

    @pytest.mark.parametrize("fact", NEVER_SET)
    @pytest.mark.parametrize("path", [(*FILL, "sets"), ("every_object", "effects", "fresh_block", "sets")])
    def test_identity_and_the_recorded_fingerprint_are_never_set(
        self, source: RuleSource, path: tuple[str, ...], fact: str
    ) -> None:
        """By no option's own effect and by no shared one."""
        value = "needs.to" if fact == "matched" else "self.recorded" if fact == "recorded" else f"request.{fact}"
        changed, where = source.edited((*path, fact), value)
        with pytest.raises(SchemaError, match="neither identity nor a recorded fingerprint") as caught:
            resolve(changed)
        assert (fact, where.file) == (caught.value.got, caught.value.where.file)

    @pytest.mark.parametrize("fact", ["weights", "matched", "recorded"])
    def test_the_verifier_is_shown_no_such_effect_either(self, source: RuleSource, fact: str) -> None:
        """Not even leniently may identity be set."""
        changed, _ = source.edited((*FILL, "sets", fact), "self.matched" if fact == "matched" else "self.recorded")
        with pytest.raises(SchemaError, match="neither identity"):
            resolve(changed, lenient=True)


@slips(
    Slip(
        "unknown shared effect",
        "objects/compressed_global.yaml",
        "effects: [fresh_block]",
        "effects: [¶fresh_blocks]",
        ReferenceNameError,
        rule="compressed_global/rebuild_entries",
        got="fresh_blocks",
        hint="fresh_block",
    ),
    Slip(
        "unknown fact",
        FULL,
        "          end: needs.to\n",
        "          ent: ¶needs.to\n",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="ent",
        hint="end",
    ),
    Slip(
        "fact of another object",
        FULL,
        "          end: needs.to\n",
        "          end: needs.to\n          position: ¶needs.to\n",
        ReferenceNameError,
        rule="full_kv/fill_young_end",
        got="position",
    ),
    Slip(
        "unknown fact in a shared effect",
        EVERY,
        "        exactness: exact\n",
        "        exactnes: ¶exact\n",
        ReferenceNameError,
        rule="compressed_global/rebuild_entries",
        got="exactnes",
        hint="exactness",
    ),
    Slip(
        "unknown fact in an inherited option",
        EVERY,
        "sets: {measured: self.recorded}",
        "sets: {mesured: ¶self.recorded}",
        ReferenceNameError,
        rule="full_kv/verify",
        got="mesured",
        hint="measured",
    ),
    Slip(
        "value in another unit",
        FULL,
        "          end: needs.to\n",
        "          end: ¶self.bytes\n",
        UnitError,
        rule="full_kv/fill_young_end",
        got="bytes",
        expected="tokens",
    ),
    Slip(
        "member of another enum",
        EVERY,
        "        exactness: exact\n",
        "        exactness: ¶device\n",
        ConditionError,
        rule="compressed_global/rebuild_entries",
        got="device",
        expected="exact",
    ),
    Slip(
        "addition to what is no set",
        STATE,
        "resets: {marks: length}\n        cost: (needs.to - needs.first)",
        "resets: {end: ¶length}\n        cost: (needs.to - needs.first)",
        SchemaError,
        rule="compressor_state/rebuild_state",
        got="tokens",
        expected="set of tokens",
    ),
    Slip(
        "addition in another unit",
        STATE,
        "resets: {marks: length}\n        cost: (needs.to - needs.first)",
        "resets: {marks: ¶self.bytes}\n        cost: (needs.to - needs.first)",
        UnitError,
        rule="compressor_state/rebuild_state",
        got="bytes",
        expected="tokens",
    ),
    Slip(
        "choice that is no condition",
        EVERY,
        "      chooses: {address: self.address % group.alignment == 0}\n  # Checks",
        "      chooses: {address: ¶self.address % group.alignment}\n  # Checks",
        ConditionError,
        rule="compressed_global/rebuild_entries",
        got="a value of type bytes",
        expected="a condition",
    ),
)
def test_a_slip_in_an_effect_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the option, what stood there and what would have been right."""
    assert_told(tmp_path, slip)


def test_a_fact_that_the_repair_keeps_cannot_be_set(source: RuleSource) -> None:
    """What the repair does not write, no option may claim to have written."""
    changed, _ = source.edited(("objects", "routing_index", "recovery", "remap", "sets", "bytes"), "self.bytes")
    with pytest.raises(SchemaError, match="does not establish 'bytes'") as caught:
        resolve(changed)
    assert ("routing_index/remap", "bytes") == (caught.value.rule, caught.value.got)
    assert caught.value.expected == "a fact that the repair's declaration establishes or clobbers"
    assert "bytes" in effect(resolve(changed, lenient=True), "routing_index/remap").sets


def test_who_reads_bytes_in_doubt_records_no_new_fingerprint(source: RuleSource) -> None:
    """Bad bytes would be copied and then be called good; bytes that were found good may get a new one."""
    path = ("every_object", "recovery", "verify", "renews")
    changed, _ = source.edited(path, True)
    with pytest.raises(SchemaError, match="cannot record a new fingerprint") as caught:
        resolve(changed)
    assert "no `renews`, or bytes whose fingerprint held before" == caught.value.expected
    with pytest.raises(SchemaError, match="cannot record a new fingerprint"):
        resolve(changed, lenient=True)
    assert effect(resolve(source), "full_kv/fill_young_end").renews
