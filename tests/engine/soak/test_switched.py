"""Every protection is needed: without it, and without it alone, a soak reads wrong bytes."""

from __future__ import annotations

import pytest

from hitproof.engine.soak.books import PROTECTIONS, without
from hitproof.engine.soak.switched import CASES, switch_off
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.errors import UsageError


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_without_a_protection_wrong_bytes_are_used(protection: str) -> None:
    """The same faults do no harm with the shipped rulebook, and harm with the edited one."""
    (row,) = switch_off([protection], seed=1, turns=2400)
    assert row.with_it == 0
    assert row.leases_with > 0
    assert row.without_it > 0
    assert row.example


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_nothing_else_is_switched_off(protection: str) -> None:
    """Checks of other layers, and the other sections, are as they are shipped."""
    shipped, edited = load_rulebook("mixed_attention"), without(protection)
    changed = {
        check.layer
        for name, rules in shipped.objects.items()
        for check, other in zip(rules.checks, edited.objects[name].checks, strict=True)
        if check.require != other.require
    }
    assert changed <= {protection}
    assert (shipped.leasing == edited.leasing) == (protection != "lease")
    promised = {name for name, repair in shipped.repairs.items() if repair != edited.repairs[name]}
    assert bool(promised) == (protection == "postcondition")


def test_every_protection_has_a_case() -> None:
    """What can be switched off can be shown."""
    assert set(CASES) == set(PROTECTIONS)


def test_an_unknown_protection_is_refused() -> None:
    """A name that is none is an error of usage."""
    with pytest.raises(UsageError):
        without("luck")
