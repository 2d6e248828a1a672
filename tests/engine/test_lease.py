"""Leases: pins, epochs and what becomes of both."""

from __future__ import annotations

from typing import Any

import pytest

from hitproof.engine.event import EventContext
from hitproof.engine.lease import Lease
from hitproof.engine.table import TransitionTable
from hitproof.spec.errors import InternalError
from tests.engine.event_cases import bound_to, types_of

PROFILE = "gemma-3-27b"


def segment(**facts: object) -> Any:
    """A full-attention segment at home on the device, but for the facts that are given."""
    usual = {
        "form": "full",
        "tier": "device",
        "bound_for": "device",
        "generation": 1,
        "pins": 0,
        "epoch": 1,
        "start": 0,
        "end": 64,
        "address": 4096,
    }
    return types_of(PROFILE).segment_of("full", usual | facts)


def event(target: Any, trigger: str, **arguments: object) -> bool:
    """Let an event happen to a segment."""
    nothing = types_of(PROFILE)
    context = EventContext(nothing.runtime(pool_epoch=1), nothing.kernel(), arguments, None, True)
    return TransitionTable(bound_to(PROFILE)).fire(target, trigger, context)


def test_pins_are_taken_and_given_back() -> None:
    """Each segment has one pin more while the lease is held, and as many as before after it."""
    one, other = segment(), segment(pins=2)
    lease = Lease.take([one, other])
    assert (1, 3) == (one.pins, other.pins)
    assert lease.held
    lease.release()
    assert (0, 2) == (one.pins, other.pins)
    assert not lease.held


def test_a_segment_named_twice_is_pinned_once() -> None:
    """A peer that two groups read is still one hold."""
    one = segment()
    with Lease.take([one, one]) as lease:
        assert 1 == one.pins
        assert (one,) == lease.segments
    assert 0 == one.pins


def test_release_is_idempotent_and_exact_among_many() -> None:
    """A second release takes no other lease's pin."""
    one = segment()
    first, second = Lease.take([one]), Lease.take([one])
    first.release()
    first.release()
    assert 1 == one.pins
    assert second.confirm()
    second.release()
    assert 0 == one.pins


def test_an_error_inside_releases() -> None:
    """Leaving the context by an error gives the pins back and lets the error through."""
    one = segment()
    with pytest.raises(ZeroDivisionError), Lease.take([one]):
        raise ZeroDivisionError
    assert 0 == one.pins


@pytest.mark.parametrize("trigger", ["evict", "demote_begin", "defragment", "quarantine", "rollback"])
def test_a_leased_segment_is_not_moved_freed_or_cut(trigger: str) -> None:
    """Events that would change bytes under the reader are refused while it holds its lease, not after."""
    one = segment()
    with Lease.take([one]) as lease:
        assert not event(one, trigger, bound_for="host", end=32, address=512)
        assert lease.confirm()
    assert event(one, trigger, bound_for="host", end=32, address=512)


def test_confirm_sees_an_epoch_and_a_form() -> None:
    """A change of either, by whatever way, is seen; what changes neither is not."""
    for fact, value in (("epoch", 2), ("form", "moving")):
        one, other = segment(), segment()
        lease = Lease.take([one, other])
        setattr(other, fact, value)
        assert not lease.confirm()
        lease.rebase()
        assert lease.confirm()
    lease = Lease.take([one])
    one.measured = "m"
    assert lease.confirm()


def test_writes_that_keep_the_prefix_keep_the_lease() -> None:
    """Rows appended at the young end leave a reader of older rows alone; a commit is seen by the form."""
    one = segment(form="pending")
    lease = Lease.take([one])
    assert event(one, "append", end=128)
    assert lease.confirm()
    assert event(one, "commit", end=128, recorded="r")
    assert not lease.confirm()
    lease.rebase()
    assert lease.confirm()


def test_a_released_lease_answers_nothing() -> None:
    """Confirming, rebasing or entering after the release is our own mistake, and loud."""
    lease = Lease.take([segment()])
    lease.release()
    for use in (lease.confirm, lease.rebase, lease.__enter__):
        with pytest.raises(InternalError, match="after its release"):
            use()
    lease.check_integrity()


def test_a_stolen_pin_is_reported_and_never_goes_below_zero() -> None:
    """Integrity fails while the lease is held; the release reports the theft and still frees the others."""
    one, other = segment(), segment()
    lease = Lease.take([one, other])
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
        Lease.take([one, other])
    assert 0 == one.pins


def test_an_empty_lease_holds_nothing() -> None:
    """A decision that rests on no segment can be leased and confirmed."""
    with Lease.take([]) as lease:
        assert lease.confirm()
        lease.check_integrity()
