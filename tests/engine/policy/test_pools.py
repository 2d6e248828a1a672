"""Promises, takes and what is given back never exceed a pool."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.policy import Ledger
from hitproof.rules.resolve import load_rulebook
from hitproof.spec.errors import InternalError

POOLS = load_rulebook("mixed_attention").policy.pools
AMOUNTS = st.integers(min_value=0, max_value=40)


def runtime(blocks: int = 100, staging: int = 60) -> SimpleNamespace:
    """Run-time facts of an idle process."""
    return SimpleNamespace(
        capacity_blocks=blocks,
        used_blocks=0,
        reserved_blocks=0,
        staging_bytes=staging,
        staging_used_bytes=0,
        staging_reserved_bytes=0,
    )


def test_the_real_deadlock_does_not_happen() -> None:
    """The figures of vllm-project/vllm#45388: the second load is not promised what the first will need."""
    facts = runtime(2048)
    ledger = Ledger(POOLS, facts)
    assert ledger.reserve("A", {"device_blocks": 1600, "staging": 0})
    assert ledger.take("A", "device_blocks", 512)
    assert (512, 1088) == (facts.used_blocks, facts.reserved_blocks)
    assert not ledger.reserve("B", {"device_blocks": 1200, "staging": 0})
    assert ledger.take("A", "device_blocks", 1088)
    ledger.release("A")
    assert (0, 0) == (facts.used_blocks, facts.reserved_blocks)
    assert ledger.reserve("B", {"device_blocks": 1200, "staging": 0})


def test_a_pool_that_is_not_named_is_not_promised() -> None:
    """An unknown demand is no demand of nothing."""
    facts = runtime()
    assert not Ledger(POOLS, facts).reserve("A", {"device_blocks": 1})
    assert 0 == facts.reserved_blocks


@pytest.mark.parametrize("count", ["capacity_blocks", "used_blocks", "reserved_blocks"])
def test_an_unknown_count_promises_nothing(count: str) -> None:
    """Where nobody knows what is there, taken or promised, there is no room, and it stays unknown."""
    facts = runtime()
    setattr(facts, count, None)
    ledger = Ledger(POOLS, facts)
    assert not ledger.reserve("A", {"device_blocks": 1, "staging": 0})
    assert ledger.reserve("B", {"device_blocks": 0, "staging": 1})
    ledger.release("B")
    assert None is getattr(facts, count)


def test_nobody_takes_more_than_was_promised() -> None:
    """The refused take changes nothing."""
    facts = runtime()
    ledger = Ledger(POOLS, facts)
    assert ledger.reserve("A", {"device_blocks": 5, "staging": 0})
    assert not ledger.take("A", "device_blocks", 6)
    assert (0, 5) == (facts.used_blocks, facts.reserved_blocks)


def test_misuse_is_an_error() -> None:
    """A second promise, and giving back what was not taken."""
    ledger = Ledger(POOLS, runtime())
    with pytest.raises(InternalError):
        ledger.release("A")
    assert ledger.reserve("A", {"device_blocks": 5, "staging": 0})
    with pytest.raises(InternalError):
        ledger.reserve("A", {"device_blocks": 5, "staging": 0})
    with pytest.raises(InternalError):
        ledger.give_back("A", "device_blocks", 1)


@given(st.lists(st.tuples(st.sampled_from("raket"), st.integers(0, 5), st.sampled_from(sorted(POOLS)), AMOUNTS)))
def test_used_and_promised_never_exceed_the_capacity(story: list[tuple[str, int, str, int]]) -> None:
    """Any story of promises, takes, returns and ends; and once all have ended, nothing is used or promised."""
    facts = runtime()
    ledger = Ledger(POOLS, facts)
    held: dict[int, dict[str, list[int]]] = {}
    for what, who, pool, amount in story:
        if what in "re" and who not in held:
            if ledger.reserve(who, dict.fromkeys(POOLS, amount)):
                held[who] = {name: [amount, 0] for name in POOLS}
        elif what in "ta" and who in held:
            promised, taken = held[who][pool]
            assert (amount <= promised) == ledger.take(who, pool, amount)
            if amount <= promised:
                held[who][pool] = [promised - amount, taken + amount]
        elif who in held:
            promised, taken = held[who][pool]
            if amount <= taken:
                ledger.give_back(who, pool, amount)
                held[who][pool] = [promised, taken - amount]
            else:
                ledger.release(who)
                del held[who]
        for name, rule in POOLS.items():
            used, reserved, capacity = (
                getattr(facts, path.removeprefix("runtime.")) for path in (rule.used, rule.reserved, rule.capacity)
            )
            assert reserved == sum(one[name][0] for one in held.values())
            assert used == sum(one[name][1] for one in held.values())
            assert 0 <= used + reserved <= capacity
    for who in list(held):
        ledger.release(who)
    assert 0 == facts.used_blocks == facts.reserved_blocks == facts.staging_used_bytes == facts.staging_reserved_bytes
