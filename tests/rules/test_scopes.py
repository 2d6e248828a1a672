"""Each kind of expression may read its own names and no others."""

from __future__ import annotations

import pytest

from hitproof.rules.resolve_object import resolve_objects
from hitproof.rules.scopes import Scopes
from hitproof.rules.source import RuleSource
from hitproof.rules.vocabulary import merge_vocabulary
from hitproof.spec.condition import Scope, parse_condition


@pytest.fixture(scope="module")
def scopes(source: RuleSource) -> Scopes:
    """Scopes with every object of the embedded rulebook registered."""
    parts = list(source.parts())
    vocabulary = merge_vocabulary(parts)
    found = Scopes(vocabulary)
    # Without repairs the options cannot be read, and objects are registered before them.
    with pytest.raises(ValueError, match="no declared repair"):
        resolve_objects(parts, vocabulary, found, {}, lenient=False)
    return found


def names(scope: Scope) -> set[str]:
    """The beginnings of the names that may be read."""
    return {path.partition(".")[0] for path in (*scope.facts, *scope.macros)}


class TestScopes:
    """What may be read where."""

    def test_geometry_reads_the_length_and_constants(self, scopes: Scopes) -> None:
        """What a query needs depends on nothing that is stored."""
        assert {"group", "length"} == names(scopes.geometry("full_kv"))

    def test_a_rule_reads_its_segment_its_peers_and_the_request(self, scopes: Scopes) -> None:
        """And the geometry, and the share of its piece."""
        everywhere = {"self", "request", "runtime", "kernel", "group", "length", "share"}
        assert everywhere | {"inputs", "manifest"} == names(scopes.rule("full_kv", {}))
        assert everywhere == names(scopes.rule("window_boundary", {}))

    def test_of_a_role_with_several_objects_only_what_all_have_may_be_read(self, scopes: Scopes) -> None:
        """Entries have a seed, full keys and values have none."""
        facts = scopes.rule("routing_index", {}).facts
        assert "kv.recorded" in facts
        assert "kv.seed" not in facts

    def test_every_peer_says_whether_it_is_ready(self, scopes: Scopes) -> None:
        """As a condition of its own."""
        scope = scopes.rule("routing_index", {})
        assert parse_condition("kv.ready and inputs.ready and manifest.ready", scope)

    def test_an_event_reads_the_segment_its_arguments_and_a_donor(self, scopes: Scopes) -> None:
        """No peer and no length: an event is of one segment alone."""
        assert {"self", "event", "donor", "request", "runtime", "kernel", "group"} == names(scopes.event("full_kv"))

    def test_the_price_of_prefill_reads_no_segment(self, scopes: Scopes) -> None:
        """Nor a profile's constant."""
        assert {"request", "runtime", "length"} == names(scopes.decision())

    @pytest.mark.parametrize(
        ("over", "expected"),
        [
            ("pair", {"self", "other", "same_object", "request", "runtime", "kernel", "group"}),
            ("used", {"self", "request", "runtime", "kernel", "group"}),
            ("lease", {"self", "lease", "request", "runtime", "kernel", "group"}),
            ("runtime", {"request", "runtime", "length"}),
        ],
    )
    def test_an_invariant_reads_what_it_is_over(self, scopes: Scopes, over: str, expected: set[str]) -> None:
        """A pair has another segment, a lease what was confirmed."""
        assert expected == names(scopes.invariant(over, "full_kv"))

    def test_a_flag_reads_the_request_or_each_segment(self, scopes: Scopes) -> None:
        """As it says itself."""
        assert names(scopes.decision()) == names(scopes.flag("request", "*"))
        assert names(scopes.rule("full_kv", {})) == names(scopes.flag("segment", "full_kv"))

    def test_constants_are_those_of_the_group(self, scopes: Scopes) -> None:
        """`applies` is decided on them alone."""
        constants = scopes.rule("full_kv", {}).constants
        assert "group.has_bytes" in constants
        assert {"group"} == {path.partition(".")[0] for path in constants}

    def test_home_means_the_object_s_form(self, scopes: Scopes) -> None:
        """Where no object is meant, it has no meaning."""
        assert {"home": "full"} == scopes.rule("full_kv", {}).aliases
        assert {"home": "windowed"} == scopes.event("uncompressed_tail").aliases
        assert {} == scopes.decision().aliases
