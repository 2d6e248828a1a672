"""Keys are read for each tier, or refused with their place; events file a segment only under a whole key."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitproof.rules.bind import bind_rulebook
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.condition import text
from hitproof.spec.errors import ConditionError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Rulebook, Transition
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "keys.yaml"
HEAD = "disk:\n    tokens: length + group.lookahead\n    fields:\n      weights: request.weights\n"
TAIL = "    begins: {media: media_from}\n    because: a store on disk"


def event(rulebook: Rulebook, name: str, trigger: str) -> Transition:
    """The first transition of an object by its id."""
    return next(one for one in rulebook.objects[name].transitions if one.id == trigger)


class TestKeys:
    """What a key becomes."""

    def test_every_tier_that_holds_bytes_has_one(self, rulebook: Rulebook) -> None:
        """No tier is poorer than the one above it."""
        assert ["device", "host", "disk"] == list(rulebook.keys)
        device, host, disk = (set(key.fields) for key in rulebook.keys.values())
        assert device <= host <= disk

    def test_a_group_takes_the_fields_that_it_has(self, rulebook: Rulebook) -> None:
        """The seed of a compressor is no field of a window's key."""
        bound = bind_rulebook(rulebook, load_profile("deepseek-v4-flash"))
        fields = {group.object: set(group.keys[0].fields) for group in bound.groups}
        assert fields["compressed_global"] - fields["uncompressed_tail"] == {"seed"}

    def test_a_field_may_differ_in_name_from_what_the_request_calls_it(self, rulebook: Rulebook) -> None:
        """The key compares the segment's fact with any identity of the request."""
        assert "request.compression_seed" == text(rulebook.keys["disk"].fields["seed"])

    def test_a_rulebook_may_do_without(self, source: RuleSource) -> None:
        """Then nothing is found by a key."""
        without, _ = source.edited(("keys",), {})
        assert {} == dict(resolve(without).keys)


class TestEvents:
    """What an event does to the key."""

    def test_a_commit_files_only_what_is_known_to_the_last_field(self, rulebook: Rulebook) -> None:
        """What the event states is asked of the event, the rest of the segment."""
        filed = text(event(rulebook, "full_kv", "commit").sets["published"])
        assert {"known(event.end)", "known(self.salt)", "known(self.start)"} <= set(filed.split(" and "))
        assert "seed" not in filed
        assert "known(event.seed)" in text(event(rulebook, "compressed_global", "commit").sets["published"])

    def test_what_the_event_sets_or_forgets_counts_too(self, source: RuleSource) -> None:
        """A field is known where all that it is set from is known; a field that is forgotten leaves no key."""
        changed, _ = source.edited(("transitions", "commit", "sets", "salt"), "self.adapter")
        filed = text(event(resolve(changed), "full_kv", "commit").sets["published"])
        assert filed.split(" and ").count("known(self.adapter)") == 2
        changed, _ = source.edited(("transitions", "commit", "forgets"), ["salt"])
        assert "False" == text(event(resolve(changed), "full_kv", "commit").sets["published"])

    def test_the_engine_knows_what_is_filed(self, source: RuleSource) -> None:
        """A rulebook whose events change keys declares the fact that tells, and the engine owns it."""
        owned = ["form", "tier", "bound_for", "generation", "pins", "epoch"]
        with pytest.raises(SchemaError, match="nothing tells whether a segment is found by its key"):
            resolve(source.edited(("engine_owned",), owned)[0])

    def test_a_key_is_cleared_or_left_alone(self, rulebook: Rulebook) -> None:
        """Eviction clears it, a move does not touch it."""
        assert "False" == text(event(rulebook, "full_kv", "evict").sets["published"])
        assert "published" not in event(rulebook, "full_kv", "defragment").sets


@slips(
    Slip(
        "unknown tier",
        FILE,
        "disk:\n    t",
        "disc:\n    ¶t",
        ReferenceNameError,
        rule="keys/disc",
        got="disc",
        hint="disk",
    ),
    Slip(
        "unknown field",
        FILE,
        HEAD,
        HEAD.replace("weights: ", "weigts: ¶"),
        ReferenceNameError,
        rule="keys/disk",
        got="weigts",
        hint="weights",
    ),
    Slip(
        "field that is no identity",
        FILE,
        HEAD,
        HEAD + "      end: ¶request.length\n",
        SchemaError,
        rule="keys/disk",
        got="end: tokens",
        expected="identity",
    ),
    Slip(
        "field of another type",
        FILE,
        HEAD,
        HEAD.replace("request.weights", "¶request.length"),
        ConditionError,
        rule="keys/disk",
        got="tokens",
    ),
    Slip(
        "field that reads a segment",
        FILE,
        HEAD,
        HEAD.replace("request.weights", "¶self.weights"),
        ConditionError,
        rule="keys/disk",
        got="self.weights",
    ),
    Slip(
        "tokens of another unit",
        FILE,
        HEAD,
        HEAD.replace("length + group.lookahead", "¶length + group.stride"),
        UnitError,
        rule="keys/disk",
        got="tokens and bytes",
    ),
    Slip(
        "beginning of no field",
        FILE,
        TAIL,
        TAIL.replace("media: media_from", "version: ¶media_from"),
        ReferenceNameError,
        rule="keys/disk",
        got="version",
    ),
    Slip(
        "beginning that the request does not have",
        FILE,
        TAIL,
        TAIL.replace("media: media_from", "media: ¶start"),
        ReferenceNameError,
        rule="keys/disk",
        got="start",
    ),
    Slip(
        "beginning that is no number of tokens",
        FILE,
        TAIL,
        TAIL.replace("media: media_from", "media: ¶adapter"),
        SchemaError,
        rule="keys/disk",
        got="segment.adapter: identity",
    ),
    Slip("no fields", FILE, TAIL, TAIL.replace("begins:", "¶beginings:"), SchemaError, got="beginings"),
    Slip(
        "key set by hand",
        "transitions.yaml",
        "    sets: {sealed: false}\n",
        "    sets: ¶{sealed: false, published: true}\n",
        SchemaError,
        rule="uncompressed_tail/unseal",
        got="sets: published",
        expected="key: publish",
    ),
    Slip(
        "unknown change of the key",
        "transitions.yaml",
        "    sets: {sealed: false}\n    key: clear\n",
        "    sets: {sealed: false}\n    key: ¶drop\n",
        SchemaError,
        got="drop",
    ),
)
def test_a_slip_in_a_key_is_told(slip: Slip, tmp_path: Path) -> None:
    """With file, line, column, rule and what was got."""
    assert_told(tmp_path, slip)
