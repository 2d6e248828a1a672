"""Claim `check_to_use`: what it rests on, what it does without, and how it goes on without its template."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.scenario import EngineReplayer
from hitproof.rules.bind import bind_rulebook
from hitproof.rules.edit import TreePath
from hitproof.rules.profiles import load_profile
from hitproof.rules.resolve import resolve
from hitproof.rules.source import RuleSource
from hitproof.spec.scenario import Event, Fault, LeaseEvent
from hitproof.spec.yaml_tree import plain
from hitproof.verification import spacer
from hitproof.verification.claims import check_to_use
from hitproof.verification.cut import Cutter
from hitproof.verification.run import Run
from hitproof.verification.solve import Asker

PROFILE = "gemma-3-27b"
Edits = tuple[tuple[TreePath, object], ...]

TOO_WEAK: Edits = (
    (("transitions", "share", "when"), "donor.form == home and donor.sealed and donor.tier == device"),
    (("transitions", "evict", "pins"), "any"),
    (("transitions", "evict", "when"), "self.pins == 0 or (self.form == home and self.tier == host)"),
)
"""An eviction whoever holds the segment, where it is at home and in the host's memory: nothing is ever there. The
template knows nothing of tiers."""


def proved_part(source: RuleSource, edits: Edits, part: str = "window held") -> Run:
    """One part of the claim on an edited rulebook."""
    for path, value in edits:
        source, _ = source.edited(path, value)
    cutter = Cutter(bind_rulebook(resolve(source, lenient=True), load_profile(PROFILE)))
    (found,) = (one for one in check_to_use.CLAIM.parts_of(cutter.bound) if one.label == part)
    found = replace(found, free=frozenset())
    run = Run(cutter.cut(found), Asker(20_000), EngineReplayer(), found)
    check_to_use.CLAIM.prove(run)
    return run


def is_proved(run: Run) -> bool:
    """No gap, no counterexample, and a witness."""
    return run.witness is not None and not run.gaps and run.counterexample is None


def pin_after_note(source: RuleSource) -> list[object]:
    """The steps of `take`, the other way round."""
    (section,) = (plain(tree)["leasing"] for tree in source.files.values() if "leasing" in plain(tree))
    return list(reversed(section["take"]))


class TestWhatIsNotNeeded:
    """Guards without which the claim is proved all the same, as docs/claims.md says."""

    @pytest.mark.parametrize("event", ["demote_end", "promote_failed", "discard", "roll_window"])
    def test_pins_of_events_that_no_holder_meets(self, event: str, source: RuleSource) -> None:
        """They leave from forms in which nobody reads, or change only what no check lets through."""
        assert is_proved(proved_part(source, ((("transitions", event, "pins"), "any"),)))

    @pytest.mark.parametrize("event", ["allocate", "demote_end", "discard", "share"])
    def test_epochs_of_events_that_another_one_has_told(self, event: str, source: RuleSource) -> None:
        """The epoch has grown already when the segment left the form in which it was noted."""
        assert is_proved(proved_part(source, ((("transitions", event, "keeps_prefix"), True),)))

    def test_pin_and_note_may_change_places(self, source: RuleSource) -> None:
        """What happens between the two is told by the comparison, or kept off by the pin."""
        assert is_proved(proved_part(source, ((("leasing", "take"), pin_after_note(source)),)))


class TestStories:
    """Counterexamples are the shortest there are, and the engine has replayed them."""

    def test_nothing_pinned(self, source: RuleSource) -> None:
        """Take, check, confirm, use, and one event: nothing shorter ends with a read of something else."""
        found = proved_part(source, ((("leasing", "take", "pin"), None),)).counterexample
        assert found is not None and found.replayed and found.scenario is not None
        calls = [event.does for event in found.scenario.events if isinstance(event, LeaseEvent)]
        fired = [event for event in found.scenario.events if isinstance(event, Event) and event.segment == "s"]
        assert (["take", "check", "confirm", "use"], 1) == (calls, len(fired))
        assert "leasing.yaml" in found.place

    def test_a_freed_block_is_seen_with_its_next_owner(self, source: RuleSource) -> None:
        """The block that the device reads is given to another segment meanwhile."""
        found = proved_part(source, ((("transitions", "evict", "pins"), "any"),)).counterexample
        assert found is not None and found.replayed and found.scenario is not None
        last = found.scenario.events[-1]
        assert isinstance(last, Event) and ("t", "allocate") == (last.segment, last.trigger)
        noted = next(one.facts["address"] for one in found.scenario.segments if one.id == "s")
        assert noted == last.arguments["address"]
        assert "transitions.yaml" in found.place

    def test_a_changed_entry_is_a_fault(self, source: RuleSource) -> None:
        """Where the mapping is not compared, a page table entry that leads elsewhere is not told."""
        found = proved_part(source, ((("leasing", "confirm", "same_mapping"), None),)).counterexample
        assert found is not None and found.replayed and found.scenario is not None
        (fault,) = (event for event in found.scenario.events if isinstance(event, Fault))
        assert ["mapped_generation"] == list(fault.leaves)

    def test_an_invariant_of_ones_own_is_read(self, source: RuleSource) -> None:
        """An invariant over leases that no lease keeps is refuted by its name."""
        edit = (("invariants", "use_what_was_checked", "require"), "implies(lease.confirmed, lease.epoch < self.epoch)")
        found = proved_part(source, (edit,)).counterexample
        assert found is not None and found.replayed
        assert "use_what_was_checked" in found.sentence

    def test_a_source_is_held_too(self, source: RuleSource) -> None:
        """What lies in the host's memory and is copied from there may not be given up meanwhile."""
        found = proved_part(source, ((("transitions", "spill", "pins"), "any"),)).counterexample
        assert found is not None and found.replayed


class TestBeyondTheTemplate:
    """Spacer finds what the template does not know; nothing is believed of it."""

    def test_what_it_finds_is_checked_and_carries(self, source: RuleSource) -> None:
        """With the invariant of the form machine every step is asked anew, and the claim is proved."""
        assert is_proved(proved_part(source, TOO_WEAK, "full held"))

    @pytest.mark.parametrize("answer", ["sat\ntrue", "sat\nfalse", "sat\n(and", "unknown", "unsat", ""])
    def test_a_wrong_answer_proves_nothing(
        self, answer: str, source: RuleSource, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither a candidate that does not hold, nor none, nor nonsense."""
        monkeypatch.setattr(spacer, "_asked", lambda *_: answer)
        monkeypatch.setattr(check_to_use, "DEEPEST", 2)
        monkeypatch.setattr(check_to_use, "SHORT", 2)
        run = proved_part(source, TOO_WEAK, "full held")
        assert (None, None) == (run.witness, run.counterexample)
        assert "evict from full breaks" in run.gaps[0]

    def test_a_child_that_dies_answers_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A crash of the solver is no answer."""
        monkeypatch.setattr(spacer, "_CHILD", "import os; os.abort()")
        assert "" == spacer._asked("(check-sat)")


class TestHonesty:
    """What the claim cannot say is a gap."""

    def test_an_event_without_an_axiom(self, source: RuleSource) -> None:
        """Nobody says what it does to a reader."""
        run = proved_part(source, ((("transitions", "spill", "id"), "teleport"),))
        assert any("'teleport'" in gap for gap in run.gaps)

    def test_no_leases(self, source: RuleSource) -> None:
        """A rulebook without the section holds nothing."""
        run = proved_part(source, ((("leasing",), None),))
        assert ["the rulebook does not say how leases are taken"] == run.gaps

    @pytest.mark.parametrize(
        "check",
        [("resident", "not self.form == pending and self.tier == device"), ("sealed", "self.sealed or self.pins == 0")],
        ids=["any form", "still open"],
    )
    def test_what_passes_must_be_at_home_and_sealed(self, check: tuple[str, str], source: RuleSource) -> None:
        """Otherwise nothing that a lease holds would be what is read."""
        name, condition = check
        run: Any = proved_part(source, ((("every_object", "checks", name, "require"), condition),), "full checks")
        assert run.counterexample is not None and run.counterexample.replayed

    def test_what_a_repair_reads_must_be_at_rest(self, source: RuleSource) -> None:
        """A copy that may start from bytes under way is refuted, with the option's place."""
        when = "self.form in (demoted, moving) and self.tier == host and known(self.recorded)"
        edit = (("every_object", "recovery", "promote_from_host", "when"), when)
        found = proved_part(source, (edit,), "full checks").counterexample
        assert found is not None and found.replayed
        assert "full/promote_from_host" in found.sentence
