"""Leases: pins, epochs and what becomes of both, step by step as the rulebook says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from hitproof.engine.decide import Engine
from hitproof.engine.event import EventContext
from hitproof.engine.lease import Lease
from hitproof.engine.recovery import Recovery
from hitproof.engine.table import TransitionTable
from hitproof.rules.edit import TreePath
from hitproof.rules.resolve import resolve
from hitproof.rules.source import read_source
from hitproof.spec.errors import InternalError, SchemaError
from hitproof.spec.leasing import ACTIONS, COMPARED, Leasing
from tests.engine.event_cases import bound_to, types_of

PROFILE = "gemma-3-27b"


def segment(**facts: object) -> Any:
    """A full-attention segment at home on the device, but for the facts that are given."""
    usual = {
        "form": "full",
        "tier": "device",
        "bound_for": "device",
        "generation": 1,
        "mapped_generation": 1,
        "pins": 0,
        "epoch": 1,
        "start": 0,
        "end": 64,
        "address": 4096,
    }
    return types_of(PROFILE).segment_of("full", usual | facts)


def leasing(*edits: tuple[TreePath, object]) -> Leasing:
    """The leases of the shipped rulebook, with these places of the section edited."""
    source = read_source("mixed_attention")
    for path, value in edits:
        source, _ = source.edited(("leasing", *path), value)
    found = resolve(source).leasing
    assert found is not None
    return found


def take(segments: Iterable[Any]) -> Lease:
    """A lease as the shipped rulebook declares it."""
    return Lease.take(segments, Engine(bound_to(PROFILE)).leasing)


class Reading:
    """A fence of work that is under way until `complete`, or until somebody waits for it."""

    def __init__(self) -> None:
        self.complete, self.waits = False, 0

    def done(self) -> bool:
        """Whether it is complete."""
        return self.complete

    def wait(self) -> None:
        """Let it complete."""
        self.waits += 1
        self.complete = True


def event(target: Any, trigger: str, **arguments: object) -> bool:
    """Let an event happen to a segment."""
    nothing = types_of(PROFILE)
    context = EventContext(nothing.runtime(pool_epoch=1), nothing.kernel(), arguments, None, True)
    return TransitionTable(bound_to(PROFILE)).fire(target, trigger, context)


def test_pins_are_taken_and_given_back() -> None:
    """Each segment has one pin more while the lease is held, and as many as before after it."""
    one, other = segment(), segment(pins=2)
    lease = take([one, other])
    assert (1, 3) == (one.pins, other.pins)
    assert lease.held
    lease.release()
    assert (0, 2) == (one.pins, other.pins)
    assert not lease.held


def test_a_segment_named_twice_is_pinned_once() -> None:
    """A peer that two groups read is still one hold."""
    one = segment()
    with take([one, one]) as lease:
        assert 1 == one.pins
        assert (one,) == lease.segments
    assert 0 == one.pins


def test_release_is_idempotent_and_exact_among_many() -> None:
    """A second release takes no other lease's pin."""
    one = segment()
    first, second = take([one]), take([one])
    first.release()
    first.release()
    assert 1 == one.pins
    assert second.confirm()
    second.release()
    assert 0 == one.pins


def test_an_error_inside_releases() -> None:
    """Leaving the context by an error gives the pins back and lets the error through."""
    one = segment()
    with pytest.raises(ZeroDivisionError), take([one]):
        raise ZeroDivisionError
    assert 0 == one.pins


@pytest.mark.parametrize("trigger", ["evict", "demote_begin", "defragment", "quarantine", "rollback"])
def test_a_leased_segment_is_not_moved_freed_or_cut(trigger: str) -> None:
    """Events that would change bytes under the reader are refused while it holds its lease, not after."""
    one = segment()
    with take([one]) as lease:
        assert not event(one, trigger, bound_for="host", end=32, address=512)
        assert lease.confirm()
    assert event(one, trigger, bound_for="host", end=32, address=512)


def test_confirm_sees_an_epoch_and_a_form() -> None:
    """A change of either, or of the mapping, by whatever way, is seen; what changes none of them is not."""
    for fact, value in (("epoch", 2), ("form", "moving"), ("mapped_generation", 2), ("mapped_generation", None)):
        one, other = segment(), segment()
        lease = take([one, other])
        setattr(other, fact, value)
        assert not lease.confirm()
        lease.rebase()
        assert lease.confirm()
    lease = take([one])
    one.measured = "m"
    assert lease.confirm()


def test_writes_that_keep_the_prefix_keep_the_lease() -> None:
    """Rows appended at the young end leave a reader of older rows alone; a commit is seen by the form."""
    one = segment(form="pending")
    lease = take([one])
    assert event(one, "append", end=128)
    assert lease.confirm()
    assert event(one, "commit", end=128, recorded="r")
    assert not lease.confirm()
    lease.rebase()
    assert lease.confirm()


def test_a_released_lease_answers_nothing() -> None:
    """Confirming, rebasing or entering after the release is our own mistake, and loud."""
    lease = take([segment()])
    lease.release()
    for use in (lease.confirm, lease.rebase, lease.__enter__):
        with pytest.raises(InternalError, match="after its release"):
            use()
    lease.check_integrity()


def test_a_stolen_pin_is_reported_and_never_goes_below_zero() -> None:
    """Integrity fails while the lease is held; the release reports the theft and still frees the others."""
    one, other = segment(), segment()
    lease = take([one, other])
    lease.check_integrity()
    one.pins = 0
    with pytest.raises(InternalError, match="no pin"):
        lease.check_integrity()
    with pytest.raises(InternalError, match="lost the pin"):
        lease.release()
    assert (0, 0) == (one.pins, other.pins)
    lease.release()


@pytest.mark.parametrize("pins", [None, -1, True])
def test_nothing_is_pinned_where_one_cannot_be(pins: object) -> None:
    """Pins that are no count stop the lease before the first pin."""
    one, other = segment(), segment()
    other.pins = pins
    with pytest.raises(InternalError, match="not a count"):
        take([one, other])
    assert 0 == one.pins


def test_an_empty_lease_holds_nothing() -> None:
    """A decision that rests on no segment can be leased and confirmed."""
    with take([]) as lease:
        assert lease.confirm()
        lease.check_integrity()


def test_what_is_mapped_nowhere_may_stay_so() -> None:
    """A segment in slower storage has no mapping, and an unknown one that stays unknown is no change."""
    one = segment(form="demoted", tier="host", mapped_generation=None)
    with take([one]) as lease:
        assert lease.confirm()
        one.mapped_generation = 1
        assert not lease.confirm()


class TestRelease:
    """Pins go when the device has read, and not before."""

    def test_pins_stay_until_the_fence_is_done(self) -> None:
        """A release that has begun waits for the last read, without blocking, and then goes on."""
        one, fence = segment(), Reading()
        lease = take([one])
        assert not lease.begin_release(fence)
        assert (1, False, False) == (one.pins, lease.held, lease.released)
        assert not lease.begin_release()
        lease.check_integrity()
        fence.complete = True
        assert lease.begin_release()
        assert (0, True, 0) == (one.pins, lease.released, fence.waits)
        assert lease.begin_release()
        assert 0 == one.pins

    def test_a_blocking_release_waits_once(self) -> None:
        """Whether it was begun before or not."""
        for begun in (False, True):
            one, fence = segment(), Reading()
            lease = take([one])
            if begun:
                lease.begin_release(fence)
            lease.release(None if begun else fence)
            assert (0, 1) == (one.pins, fence.waits)

    def test_nothing_under_way_is_not_waited_for(self) -> None:
        """Without a fence the release is done at once."""
        one = segment()
        lease = take([one])
        assert lease.begin_release()
        assert (0, True) == (one.pins, lease.released)

    def test_another_fence_is_refused(self) -> None:
        """What was issued after the release had begun is covered by no lease."""
        lease = take([segment()])
        lease.begin_release(Reading())
        with pytest.raises(InternalError, match="another fence"):
            lease.release(Reading())

    def test_a_lease_under_release_answers_nothing(self) -> None:
        """Its pins may go at any moment."""
        lease = take([segment()])
        lease.begin_release(Reading())
        for use in (lease.confirm, lease.rebase, lease.__enter__):
            with pytest.raises(InternalError, match="after its release"):
                use()


class TestStepsAreTheRulebooks:
    """What a rulebook leaves out is not done, and what it moves is done there."""

    def test_the_shipped_rulebook_does_all_there_is_in_its_order(self) -> None:
        """No action is left out, and pins go last."""
        found = leasing()
        assert ACTIONS == {
            phase: tuple(step.does for step in getattr(found, phase)) for phase in ("take", "confirm", "release")
        }

    def test_without_pin_nothing_is_pinned(self) -> None:
        """Others may free what is in use, and the release takes nobody else's pin."""
        one = segment(pins=1)
        lease = Lease.take([one], leasing((("take", "pin"), None)))
        assert 1 == one.pins
        lease.check_integrity()
        assert lease.confirm()
        lease.release()
        assert 1 == one.pins

    @pytest.mark.parametrize(
        ("left_out", "value"),
        [("same_epochs", 2), ("same_forms", "moving"), ("same_mapping", 2)],
    )
    def test_what_is_not_compared_is_not_seen(self, left_out: str, value: object) -> None:
        """One comparison left out hides that fact and no other."""
        found = leasing((("confirm", left_out), None))
        seen = {COMPARED[step.does] for step in found.confirm}
        (hidden,) = set(COMPARED.values()) - seen
        one = segment()
        lease = Lease.take([one], found)
        setattr(one, hidden, value)
        assert lease.confirm()
        for fact in seen:
            other = segment()
            with Lease.take([other], found) as second:
                setattr(other, fact, {"epoch": 5, "form": "pending", "mapped_generation": 5}[fact])
                assert not second.confirm()

    def test_without_note_nothing_can_be_compared(self) -> None:
        """Such a rulebook is refused; one that compares nothing either confirms whatever happens."""
        with pytest.raises(SchemaError, match="nothing is noted"):
            leasing((("take", "note"), None))
        one = segment()
        lease = Lease.take([one], leasing((("confirm",), []), (("take", "note"), None)))
        one.epoch, one.form, one.mapped_generation = 9, "discarded", None
        assert lease.confirm()

    def test_without_fence_nobody_waits(self) -> None:
        """Pins go while the device still reads."""
        one, fence = segment(), Reading()
        lease = Lease.take([one], leasing((("release", "fence"), None)))
        assert lease.begin_release(fence)
        assert (0, False, 0) == (one.pins, fence.complete, fence.waits)

    def test_unpin_before_the_fence_is_done_before_it(self) -> None:
        """The order is the rulebook's: pins are gone, and the release still waits."""
        found = leasing()
        fence, unpin = ({"id": s.id, "does": s.does, "because": s.because, "source": s.source} for s in found.release)
        one, reading = segment(), Reading()
        lease = Lease.take([one], leasing((("release",), [unpin, fence])))
        assert not lease.begin_release(reading)
        assert (0, False) == (one.pins, lease.released)
        reading.complete = True
        assert lease.begin_release()
        assert 0 == one.pins

    def test_without_unpin_pins_stay(self) -> None:
        """Nothing of what was held can ever be freed."""
        one = segment()
        lease = Lease.take([one], leasing((("release", "unpin"), None)))
        lease.release()
        assert (1, True) == (one.pins, lease.released)
        lease.check_integrity()

    def test_a_rulebook_without_the_section_has_no_leases(self) -> None:
        """It decides; whoever needs a lease is told what is missing."""
        bound = bound_to(PROFILE)
        bare = Engine(replace(bound, rulebook=replace(bound.rulebook, leasing=None)))
        for use in (lambda: bare.leasing, lambda: Recovery(bare)):
            with pytest.raises(SchemaError, match="is held") as caught:
                use()
            assert "leasing" == caught.value.expected
