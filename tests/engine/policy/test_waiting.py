"""Little recovery goes first, and who has waited long enough is passed by nobody."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.policy import Waiter, WaitingOrder
from hitproof.rules.resolve import load_rulebook

RULE = load_rulebook("mixed_attention").policy.waiting
LIMIT = 5_000_000.0


def waiter(name: int, *, arrival: float = 0.0, recovery: float | None = 0.0, waited: float | None = 0.0) -> Waiter[int]:
    """A waiting request."""
    facts = {
        "plan.recovery_us": recovery,
        "plan.wait_us": 0.0,
        "plan.prefill_us": 0.0,
        "request.waited_us": waited,
        "runtime.ageing_us": LIMIT,
    }
    return Waiter(name, arrival, facts)


def names(found: list[Waiter[int]]) -> list[int]:
    """Who, in order."""
    return [one.holder for one in found]


def test_little_recovery_goes_first() -> None:
    """At equal recovery the earlier arrival; an unknown price comes last."""
    waiting = [
        waiter(1, recovery=900.0, arrival=0),
        waiter(2, recovery=20.0, arrival=3),
        waiter(3, recovery=20.0, arrival=1),
        waiter(4, recovery=None, arrival=0),
    ]
    assert [3, 2, 1, 4] == names(WaitingOrder(RULE).sorted(waiting))


def test_who_waited_long_enough_goes_before_all() -> None:
    """By arrival among themselves, whatever they cost."""
    waiting = [
        waiter(1, recovery=1.0, arrival=9.0),
        waiter(2, recovery=1e9, arrival=2.0, waited=LIMIT),
        waiter(3, recovery=1e8, arrival=1.0, waited=2 * LIMIT),
    ]
    assert [3, 2, 1] == names(WaitingOrder(RULE).sorted(waiting))


def test_room_is_kept_for_the_aged() -> None:
    """Behind an aged request that finds no room nobody is asked; behind a young one others are."""
    order = WaitingOrder(RULE)
    young = [waiter(1, recovery=1.0), waiter(2, recovery=2.0)]
    assert [2] == names(order.may_go(young, lambda one: one.holder == 2))
    aged = [waiter(1, recovery=1.0, waited=LIMIT), waiter(2, recovery=2.0)]
    assert [] == names(order.may_go(aged, lambda one: one.holder == 2))


def test_without_a_rule_they_go_by_arrival() -> None:
    """Nobody is aged then."""
    order = WaitingOrder(None)
    waiting = [waiter(1, arrival=5.0), waiter(2, arrival=1.0, recovery=1e9, waited=9 * LIMIT)]
    assert [2, 1] == names(order.sorted(waiting))
    assert not order.aged(waiting[1])


@given(st.integers(0, 10**6))
def test_waiting_is_bounded(seed: int) -> None:
    """One place a tick and a flood of cheap requests: the dear one goes as soon as it is aged, and no later."""
    random = Random(seed)
    order = WaitingOrder(RULE)
    tick = LIMIT / 10
    queue: list[tuple[int, float, float]] = [(0, 0.0, 1e9)]
    served: list[int] = []
    for step in range(1, 13):
        now = step * tick
        for _ in range(random.randint(1, 3)):
            queue.append((len(queue) + 1000 * step, now, random.uniform(0, 1e6)))
        chosen = order.sorted(
            waiter(name, arrival=came, recovery=cost, waited=now - came) for name, came, cost in queue
        )[0].holder
        served.append(chosen)
        queue = [one for one in queue if one[0] != chosen]
    assert 0 in served[:10]
