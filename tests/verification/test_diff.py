"""`compare`: what one rulebook accepts and the other refuses, whatever the text says."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource, read_source
from hitproof.verification.diff import DiffReport, compare
from hitproof.verification.diff.report import Relation, joint_relation, relation_of

Edit = tuple[tuple[str, ...], Any]

SOURCE = read_source("mixed_attention")
SALT = ("every_object", "checks", "same_salt", "require")
ADAPTER = ("every_object", "checks", "same_adapter", "require")
TWICE = "self.adapter == request.adapter and self.salt == request.salt"
ONCE = "self.adapter == request.adapter"


def edited(*edits: Edit) -> RuleSource:
    """The shipped rulebook with some places changed."""
    source = SOURCE
    for path, value in edits:
        source, _ = source.edited(path, value)
    return source


def told(old: RuleSource, new: RuleSource, model: str = "gemma-3-4b") -> DiffReport:
    """The comparison for one model, witnesses replayed."""
    return compare(resolve(old), resolve(new), [load_profile(model)], replayer=EngineReplayer())


def test_a_rewrite_that_only_reorders_is_equal() -> None:
    """Conjuncts, checks and equivalent arithmetic in another order: nothing differs."""
    window = ("objects", "uncompressed_tail", "checks", "covers_window", "require")
    new = edited(
        (window, "needs.to <= self.end and needs.first >= self.start"),
        (("every_object", "checks", "resident", "require"), "not (self.tier != device or not self.form == home)"),
        (SALT, "request.salt == self.salt"),
    )
    report = told(SOURCE, new)
    assert (report.relation, report.differences, report.prices) == ("equal", [], [])


def test_two_changes_that_are_harmless_alone_are_found_to_loosen_together() -> None:
    """Two checks ask for the salt; either may stop asking, and when both do a foreign tenant's prefix is accepted."""
    old = edited((ADAPTER, TWICE))
    for harmless in (((ADAPTER, ONCE),), ((ADAPTER, TWICE), (SALT, "known(self.salt)"))):
        assert told(old, edited(*harmless)).relation == "equal"
    report = told(old, edited((ADAPTER, ONCE), (SALT, "known(self.salt)")))
    assert report.relation == "looser"
    hit = next(one for one in report.differences if one.what == "hit")
    assert [witness.direction for witness in hit.witnesses] == ["newly_accepted"]
    assert hit.witnesses[0].replayed


def test_a_stricter_check_is_told_as_such_with_a_hit_that_is_lost() -> None:
    """Nothing is newly accepted; the witness is accepted by the older rules and refused by the newer."""
    report = told(SOURCE, edited((SALT, "self.salt == request.salt and self.sealed")))
    # Sealed is asked of everything with bytes already; records have no such fact that they must know.
    assert report.relation == "stricter"
    hit = next(one for one in report.differences if one.what == "hit")
    assert [witness.direction for witness in hit.witnesses] == ["newly_refused"]
    assert hit.witnesses[0].replayed


def test_a_check_that_moves_its_bound_both_ways_is_incomparable() -> None:
    """Some hits are gained and others lost, each with a witness of its own."""
    report = told(
        SOURCE,
        edited((SALT, "known(self.salt)"), (ADAPTER, "self.adapter == request.adapter and self.exactness == exact")),
    )
    assert report.relation == "incomparable"
    hit = next(one for one in report.differences if one.what == "hit")
    assert {witness.direction for witness in hit.witnesses} == {"newly_accepted", "newly_refused"}
    assert all(witness.replayed for witness in hit.witnesses)


@pytest.mark.parametrize(
    ("path", "value", "what", "relation"),
    [
        (("every_object", "recovery", "bounce"), None, "option", "stricter"),
        (("every_object", "recovery", "bounce", "when"), "self.form == home and self.sealed", "option", "stricter"),
        (("every_object", "recovery", "verify", "mends"), ["fingerprint_matches", "sealed"], "option", "looser"),
        (("transitions", "evict", "pins"), "any", "transition", "looser"),
        (("transitions", "spill"), None, "transition", "stricter"),
        (("transitions", "evict", "keeps_prefix"), True, "transition", "incomparable"),
        (("leasing", "take", "pin"), None, "section", "undecided"),
        (("recovering", "steps", "transfer_failed"), None, "section", "undecided"),
    ],
)
def test_options_events_and_sections_are_compared_rule_by_rule(
    path: tuple[str, ...], value: Any, what: str, relation: Relation
) -> None:
    """Removed or narrowed is stricter, wider is looser, another effect is incomparable, the rest is undecided."""
    report = told(SOURCE, edited((path, value)))
    found = [one for one in report.differences if one.what == what]
    assert found, report.differences
    assert {one.relation for one in found} == {relation}


def test_prices_accept_nothing() -> None:
    """Another price is told apart, and the rulebooks are equal in what they accept."""
    report = told(SOURCE, edited((("every_object", "recovery", "bounce", "cost"), "1.0")))
    assert report.relation == "equal"
    assert any(name.startswith("costs of") for name in report.prices)


def test_relations_add_up() -> None:
    """The relation of a whole, from its parts."""
    assert relation_of("unsat", "unsat") == "equal"
    assert relation_of("sat", "unsat") == "looser"
    assert relation_of("unsat", "sat") == "stricter"
    assert relation_of("sat", "sat") == "incomparable"
    assert relation_of("unknown", "sat") == "undecided"
    assert joint_relation([]) == "equal"
    assert joint_relation(["equal", "stricter"]) == "stricter"
    assert joint_relation(["stricter", "looser"]) == "incomparable"
    assert joint_relation(["stricter", "undecided"]) == "undecided"
    assert joint_relation(["looser", "undecided"]) == "incomparable"
