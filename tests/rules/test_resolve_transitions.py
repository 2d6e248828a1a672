"""Events of the form machine are read for each object, or refused with their place."""

from __future__ import annotations

from pathlib import Path

from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.condition import text
from hitproof.spec.errors import ConditionError, DuplicateError, ReferenceNameError, SchemaError, UnitError
from hitproof.spec.rulebook import Rulebook, Transition
from tests.rules.broken_book import Slip, assert_told, slips

FILE = "transitions.yaml"


def event(rulebook: Rulebook, name: str, trigger: str) -> Transition | None:
    """The first transition of an object by its id."""
    return next((one for one in rulebook.objects[name].transitions if one.id == trigger), None)


class TestTransitions:
    """What a transition becomes."""

    def test_home_is_each_object_s_own_form(self, rulebook: Rulebook) -> None:
        """One event leads every object to where it is used."""
        ends = {name: found.target for name in rulebook.objects if (found := event(rulebook, name, "commit"))}
        assert {name: rulebook.objects[name].home for name in rulebook.objects} == ends

    def test_an_event_may_concern_some_objects_alone(self, rulebook: Rulebook) -> None:
        """A recurrent state cannot be rolled back."""
        assert event(rulebook, "full_kv", "rollback") is not None
        assert event(rulebook, "recurrent_state", "rollback") is None

    def test_an_event_takes_and_sets_what_the_object_has(self, rulebook: Rulebook) -> None:
        """A window's position is no concern of the full cache."""
        tail, full = (event(rulebook, name, "commit") for name in ("uncompressed_tail", "full_kv"))
        assert tail is not None and full is not None
        assert "position" in tail.sets and "position" not in full.sets
        assert "window_size" in tail.takes and "window_size" not in full.takes

    def test_events_stand_in_file_order(self, rulebook: Rulebook, source: RuleSource) -> None:
        """The first that fits is taken."""
        declared = [one.id for _, part in source.parts() for one in part.transitions]
        found = [one.id for one in rulebook.objects["full_kv"].transitions]
        assert [name for name in declared if name in found] == found

    def test_a_guard_may_ask_anything(self, source: RuleSource) -> None:
        """Guards may ask whether a fact is known, in any position."""
        changed, _ = source.edited(("transitions", "spill", "when"), "not known(self.measured)")
        found = event(resolve(changed), "full_kv", "spill")
        assert found is not None and found.when is not None
        assert "not known(self.measured)" == text(found.when)


@slips(
    Slip(
        "transition twice",
        FILE,
        "- id: unseal",
        "- id: ¶abort",
        DuplicateError,
        rule="abort",
        message="transition abort stands twice",
    ),
    Slip(
        "unknown source form",
        FILE,
        "from: [discarded]\n    to: pending",
        "from: [¶discharged]\n    to: pending",
        ReferenceNameError,
        rule="full_kv/allocate",
        got="discharged",
        hint="discarded",
    ),
    Slip(
        "unknown destination",
        FILE,
        "from: [discarded]\n    to: pending",
        "from: [discarded]\n    to: ¶pendant",
        ReferenceNameError,
        rule="full_kv/allocate",
        got="pendant",
        hint="pending",
    ),
    Slip(
        "unknown object",
        FILE,
        "objects: [full_kv]",
        "objects: [¶ful_kv]",
        ReferenceNameError,
        rule="rollback",
        got="ful_kv",
        hint="full_kv",
        message="no object",
    ),
    Slip(
        "unknown fact to take",
        FILE,
        "takes: [bound_for]",
        "takes: ¶[bound_to]",
        ReferenceNameError,
        rule="full_kv/demote_begin",
        got="bound_to",
        hint="bound_for",
    ),
    Slip(
        "unknown fact to forget",
        FILE,
        "forgets: [end, marks, recorded, measured, bytes]",
        "forgets: ¶[end, marks, recorded, measured, byte]",
        ReferenceNameError,
        rule="full_kv/allocate",
        got="byte",
        hint="bytes",
    ),
    Slip(
        "unknown fact to set",
        FILE,
        "sets: {origin_address: self.address}",
        "sets: ¶{original_address: self.address}",
        ReferenceNameError,
        rule="full_kv/demote_begin",
        got="original_address",
        hint="origin_address",
    ),
    Slip(
        "value of another type",
        FILE,
        "sets: {origin_address: self.address}",
        "sets: {origin_address: ¶self.end}",
        UnitError,
        rule="full_kv/demote_begin",
        got="tokens",
        expected="bytes",
    ),
    Slip(
        "guard reads an unknown argument",
        FILE,
        "when: event.bound_for in (host, disk)",
        "when: ¶event.bound_to in (host, disk)",
        ConditionError,
        rule="full_kv/demote_begin",
        got="event.bound_to",
        hint="event.bound_for",
    ),
    Slip(
        "guard names an unknown tier",
        FILE,
        "when: event.bound_for in (host, disk)",
        "when: event.bound_for in (host, ¶disc)",
        ConditionError,
        rule="full_kv/demote_begin",
        got="disc",
    ),
    Slip(
        "guard reads a peer",
        FILE,
        "when: event.bound_for in (host, disk)",
        "when: ¶manifest.end == self.end",
        ConditionError,
        rule="full_kv/demote_begin",
        got="manifest.end",
    ),
    Slip(
        "unknown kind of pins",
        FILE,
        "- id: unseal\n    from: [home]\n    to: home\n    pins: unpinned",
        "- id: unseal\n    from: [home]\n    to: home\n    pins: ¶loose",
        SchemaError,
        got="loose",
        expected="exclusive",
    ),
    Slip(
        "unknown key",
        FILE,
        "    donor: true\n",
        "    ¶donors: true\n",
        SchemaError,
        got="donors",
        hint="donor",
    ),
)
def test_a_slip_in_a_transition_is_told(slip: Slip, tmp_path: Path) -> None:
    """Each is refused with its place, the event, what stood there and what would have been right."""
    assert_told(tmp_path, slip)
