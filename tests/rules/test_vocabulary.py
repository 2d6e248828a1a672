"""Every declaration of a fact, an enum or a set of facts is read, or refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.source import RuleSource
from hitproof.rules.vocabulary import merge_vocabulary
from hitproof.spec.errors import DuplicateError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.facts import TOKENS
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "vocabulary.yaml"


class TestShipped:
    """What the embedded rulebook declares."""

    def test_facts_have_their_types_and_domains(self, source: RuleSource) -> None:
        """A bare unit gives the default domain, a stated one its own."""
        facts = merge_vocabulary(source.parts()).facts
        assert (TOKENS, 0, 2**40) == (
            facts["segment"]["start"].type,
            facts["segment"]["start"].lo,
            facts["segment"]["start"].hi,
        )
        assert (1, 2**30) == (facts["request"]["length"].lo, facts["request"]["length"].hi)

    def test_the_environment_is_what_no_segment_and_no_profile_gives(self, source: RuleSource) -> None:
        """Request, run time and kernel alone; an identity without a healthy value is called by its name."""
        environment = merge_vocabulary(source.parts()).environment
        assert {"request", "runtime", "kernel"} == {name.partition(".")[0] for name in environment}
        assert "layout" == environment["kernel.layout"]
        assert environment["request.length"] is None
        assert 10.0 == environment["runtime.launch_us"]

    def test_a_segment_fact_without_a_healthy_value_is_no_part_of_the_environment(self, source: RuleSource) -> None:
        """It belongs to the segment, whether or not scenarios may leave it out."""
        changed, _ = source.edited(("segment", "bytes"), "bytes")
        vocabulary = merge_vocabulary(changed.parts())
        assert "segment.bytes" not in vocabulary.environment
        assert "bytes" not in vocabulary.healthy

    def test_defaults_are_those_of_group_facts(self, source: RuleSource) -> None:
        """A profile need not repeat them."""
        defaults = merge_vocabulary(source.parts()).defaults
        assert (512, True, 1) == (defaults["alignment"], defaults["has_bytes"], defaults["ranks"])
        assert "window" not in defaults


@slips(
    Slip(
        "enum twice",
        "decision.yaml",
        "prefill:",
        "enums:\n  tier: ¶[device]\nprefill:",
        DuplicateError,
        rule="tier",
        got="tier",
        expected="vocabulary.yaml:5:9",
        message="enum tier stands twice",
    ),
    Slip(
        "enum member twice",
        FILE,
        "exactness: [exact, approximate]",
        "exactness: ¶[exact, exact]",
        SchemaError,
        rule="exactness",
        got="['exact', 'exact']",
        message="members of an enum differ",
    ),
    Slip(
        "fact twice in two files",
        "decision.yaml",
        "prefill:",
        "request:\n  length: ¶tokens\nprefill:",
        DuplicateError,
        rule="length",
        got="length",
        expected="vocabulary.yaml",
        message="request fact length stands twice",
    ),
    Slip(
        "fact set twice",
        "decision.yaml",
        "prefill:",
        "fact_sets:\n  span: ¶[start]\nprefill:",
        DuplicateError,
        rule="span",
        got="span",
        message="fact set span stands twice",
    ),
    Slip(
        "unknown type",
        FILE,
        "  pins: {type: count,",
        "  pins: ¶{type: conut,",
        ReferenceNameError,
        rule="segment.pins",
        got="conut",
        hint="count",
    ),
    Slip(
        "unknown unit",
        FILE,
        "_per_token: {type: us/(tokens*layers)",
        "_per_token: ¶{type: us/(tokens*leyers)",
        UnitError,
        rule="runtime.layer_us_per_token",
        got="us/(tokens*leyers)",
    ),
    Slip(
        "empty domain",
        FILE,
        "{type: tokens, domain: [1, 1073741824]",
        "¶{type: tokens, domain: [2, 1]",
        SchemaError,
        rule="request.length",
        got="[2, 1]",
        expected="[lowest, highest]",
        message="is empty",
    ),
    Slip(
        "domain of an identity",
        FILE,
        "request:\n  length",
        "request:\n  who: ¶{type: identity, domain: [0, 1]}\n  length",
        SchemaError,
        rule="request.who",
        got="[0, 1]",
        message="has no meaning",
    ),
    Slip(
        "healthy value outside the domain",
        FILE,
        "domain: [1, 1048576], healthy: 1,",
        "domain: [1, 1048576], healthy: ¶0,",
        SchemaError,
        rule="request.granularity",
        got="0",
        expected="tokens",
        message="healthy value does not fit",
    ),
    Slip(
        "default of a segment fact",
        FILE,
        "  bytes: {type: bytes, healthy",
        "  bytes: {type: bytes, default: ¶1, healthy",
        SchemaError,
        rule="segment.bytes",
        got="1",
        expected="`healthy`",
        message="only a group fact has a default",
    ),
    Slip(
        "default of the wrong type",
        FILE,
        "ranks: {type: count, default: 1",
        "ranks: {type: count, default: ¶true",
        SchemaError,
        rule="group.ranks",
        got="True",
        expected="count",
        message="default does not fit",
    ),
    Slip(
        "default that is no whole number",
        FILE,
        "ranks: {type: count, default: 1",
        "ranks: {type: count, default: ¶1.5",
        SchemaError,
        rule="group.ranks",
        got="1.5",
        expected="count",
        message="default does not fit",
    ),
    Slip(
        "healthy value of a group fact",
        FILE,
        "  window: tokens",
        "  window: {type: tokens, healthy: ¶128}",
        SchemaError,
        rule="group.window",
        got="128",
        expected="`default`",
        message="its profile gives it",
    ),
    Slip(
        "unknown door fact",
        FILE,
        "door: [length,",
        "door: [¶lenght,",
        ReferenceNameError,
        got="lenght",
        hint="length",
        message="no fact of the request",
    ),
    Slip(
        "unknown fact owned by the engine",
        FILE,
        "engine_owned: [form, tier,",
        "engine_owned: [form, ¶teir,",
        ReferenceNameError,
        got="teir",
        hint="tier",
        message="no fact of the segment",
    ),
    Slip(
        "unknown fact in a set",
        FILE,
        "content: [recorded, measured,",
        "content: [recorded, ¶mesured,",
        ReferenceNameError,
        rule="content",
        got="mesured",
        hint="measured",
        message="no fact of any object",
    ),
    Slip(
        "unknown key of a fact",
        FILE,
        "  bytes: {type: bytes, healthy",
        "  bytes: {type: bytes, ¶helthy",
        SchemaError,
        got="helthy",
        hint="healthy",
        message="unknown key `segment.bytes.helthy`",
    ),
)
def test_a_slip_in_the_vocabulary_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, what stood there and what would have been right."""
    assert_told(tmp_path, slip)


@pytest.mark.parametrize("enum", ["form", "tier"])
def test_the_enums_that_the_engine_knows_are_needed(source: RuleSource, enum: str) -> None:
    """Without forms or tiers there is no machine."""
    changed, _ = source.edited(("enums", enum), None)
    with pytest.raises(SchemaError, match=f"declares no enum `{enum}`") as caught:
        merge_vocabulary(changed.parts())
    assert enum == caught.value.expected
    assert caught.value.where.file.endswith("rulebook.yaml")
