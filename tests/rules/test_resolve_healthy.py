"""Healthy values are read, or refused where they do not fit their fact."""

from __future__ import annotations

from pathlib import Path

from hitproof.spec.condition import Node, text
from hitproof.spec.errors import ConditionError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Rulebook
from tests.rules.broken_book import Slip, assert_told, slips

FULL = "objects/full_kv.yaml"
TAIL = "objects/uncompressed_tail.yaml"
ENTRIES = "objects/compressed_global.yaml"
BYTES = "healthy: {bytes: (self.end - self.start) // group.row_tokens * group.row_bytes}"


def shown(value: Node | tuple[Node, ...] | str) -> object:
    """A healthy value as text."""
    return value if isinstance(value, str) else [*map(text, value)] if isinstance(value, tuple) else text(value)


def test_every_fact_has_a_healthy_value(rulebook: Rulebook) -> None:
    """Scenarios need name only what is broken."""
    for name, rules in rulebook.objects.items():
        assert set(rules.facts) == set(rules.healthy), name


def test_an_object_s_own_value_goes_before_that_of_every_segment(rulebook: Rulebook) -> None:
    """Bytes are counted from the span where an object says so."""
    full, record = rulebook.objects["full_kv"].healthy, rulebook.objects["window_boundary"].healthy
    assert "0" == shown(record["bytes"])
    assert "self.end - self.start" in str(shown(full["bytes"]))


def test_identities_are_words_and_sets_are_lists(rulebook: Rulebook) -> None:
    """A name without a dot stands for itself; a set lists its members."""
    healthy = rulebook.objects["full_kv"].healthy
    assert ("content", ["self.end"]) == (shown(healthy["recorded"]), shown(healthy["marks"]))
    assert "self.recorded" == shown(healthy["measured"])


@slips(
    Slip(
        "value of an unknown fact",
        FULL,
        BYTES,
        BYTES.replace("{bytes: ", "{bites: ¶"),
        ReferenceNameError,
        rule="full_kv",
        got="bites",
        hint="bytes",
    ),
    Slip(
        "value in another unit",
        FULL,
        BYTES,
        "healthy: {bytes: ¶self.end - self.start}",
        UnitError,
        rule="full_kv.bytes",
        got="tokens",
        expected="bytes",
    ),
    Slip(
        "value that reads an unknown fact",
        TAIL,
        "healthy: group.window}",
        "healthy: ¶group.widow}",
        ConditionError,
        rule="uncompressed_tail.window_size",
        got="group.widow",
        hint="group.window",
    ),
    Slip(
        "value that is no member",
        "vocabulary.yaml",
        "{type: exactness, healthy: exact}",
        "{type: exactness, healthy: ¶exakt}",
        ConditionError,
        rule="full_kv.exactness",
        got="exakt",
    ),
    Slip(
        "list for what is no set",
        FULL,
        BYTES,
        "healthy: {bytes: ¶[self.end]}",
        SchemaError,
        rule="full_kv.bytes",
        got="['self.end']",
        expected="bytes",
    ),
    Slip(
        "set of what is no number",
        "vocabulary.yaml",
        "healthy: [self.end]",
        "healthy: ¶[self.tier]",
        ConditionError,
        rule="full_kv.marks",
        got="tier",
        expected="tokens",
    ),
)
def test_a_slip_in_a_healthy_value_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the fact, what stood there and what would have been right."""
    assert_told(tmp_path, slip)
