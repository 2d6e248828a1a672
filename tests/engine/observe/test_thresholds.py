"""Thresholds: windows equal a plain recount of all that happened, and changes are told once."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hitproof.engine.observe import Counters, Standing, Thresholds, observe
from hitproof.engine.observe.sliding import SLOTS, Sliding
from hitproof.engine.observe.thresholds import PAUSE
from hitproof.engine.recovery import Recovered
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.decision import Decision
from hitproof.spec.thresholds import Series, Span, Threshold
from tests.engine.state_cases import bound_to

BAD = Decision("recompute", 8, 0, failed=("entries/generation_current",), digest="d")
GOOD = Decision("reuse", 8, 8, digest="d")
Event = tuple[float, int, int]


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def recount(events: list[Event], width: float, slots: int) -> tuple[int, int]:
    """What lies in the slot of the last event and in those before it that the window has, added up one by one."""
    first = events[-1][0] // width - slots + 1
    inside = [event for event in events if event[0] // width >= first]
    return sum(one for _, one, _ in inside), sum(one for *_, one in inside)


@given(st.integers(1, 500), st.lists(st.tuples(st.integers(0, 90), st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_a_window_of_decisions_is_a_recount(size: int, steps: list[tuple[int, int, int]]) -> None:
    """Whatever comes, the window holds what a recount finds, and no more slots than it may."""
    window, at, events, totals = Sliding.over_decisions(size), 0, [], [0, 0]
    width = -(-size // SLOTS)
    for gap, of, over in steps:
        at += gap
        totals = [totals[0] + of, totals[1] + over]
        events.append((float(at), of, over))
        assert recount(events, width, -(-size // width)) == window.note(at, (totals[0], totals[1]))
        assert len(window._begun) <= SLOTS


@given(st.integers(1, 900), st.lists(st.tuples(st.floats(0, 400), st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_a_window_of_seconds_is_a_recount(size: int, steps: list[tuple[float, int, int]]) -> None:
    """The same over time."""
    window, at, events, totals = Sliding.over_seconds(size), 0.0, [], [0, 0]
    for gap, of, over in steps:
        at += gap
        totals = [totals[0] + of, totals[1] + over]
        events.append((at, of, over))
        assert recount(events, size / SLOTS, SLOTS) == window.note(at, (totals[0], totals[1]))


def test_a_small_window_of_decisions_is_exact() -> None:
    """Up to 64 decisions, a window of n holds the last n and no other."""
    window = Sliding.over_decisions(10)
    found = [window.note(k, (k + 1, 2 * (k + 1))) for k in range(40)]
    assert [(min(k + 1, 10), 2 * min(k + 1, 10)) for k in range(40)] == found


def with_threshold(span: Span, above: float, at_least: int = 1) -> BoundRulebook:
    """A rulebook with one threshold: failed checks of one kind, over explained decisions."""
    bound = bound_to("pooled")
    shipped = bound.rulebook.thresholds["damaged_blocks"]
    of = Series("failed_checks", {"rule": ("generation_current",)})
    made: Threshold = replace(shipped, id="one", of=of, above=above, span=span, at_least=at_least)
    return replace(bound, rulebook=replace(bound.rulebook, thresholds={"one": made}))


def test_a_threshold_over_decisions_is_exceeded_and_let_go() -> None:
    """The rate of the last ten decisions decides; above is more than, and each change is told once."""
    told: list[Standing] = []
    counters = Counters(with_threshold(Span("decisions", 10), above=0.2))
    thresholds = Thresholds(counters, told.append)
    stood = []
    for decision in [GOOD] * 8 + [BAD] * 3 + [GOOD] * 12:
        counters.decided(decision, 0.0)
        thresholds.decided(decision, 0.0)
        stood.append(bool(thresholds.exceeded()))
    # Three of the last ten, from the third bad decision on until the first of them is ten decisions old.
    assert [10 <= place < 18 for place in range(23)] == stood
    assert [(True, 3, 10), (False, 2, 10)] == [(one.exceeded, one.of, one.over) for one in told]


def test_a_threshold_over_seconds_lets_go_by_time_alone() -> None:
    """When nothing happens any more, the window empties, and the next look says so."""
    told: list[Standing] = []
    clock = Clock()
    counters = Counters(with_threshold(Span("seconds", 64), above=0.5))
    thresholds = Thresholds(counters, told.append, clock)
    counters.decided(BAD, 0.0)
    thresholds.decided(BAD, 0.0)
    assert ("one",) == thresholds.exceeded()
    clock.now += 63
    assert ("one",) == thresholds.exceeded()
    clock.now += 1
    assert () == thresholds.exceeded()
    assert [True, False] == [one.exceeded for one in told]


def test_too_few_decisions_are_no_rate() -> None:
    """Below `at_least` nothing is exceeded, however bad it looks."""
    counters = Counters(with_threshold(Span("decisions", 100), above=0.5, at_least=3))
    thresholds = Thresholds(counters)
    stood = []
    for _ in range(4):
        counters.decided(BAD, 0.0)
        stood.append(thresholds.exceeded())
    assert [(), (), ("one",), ("one",)] == stood


def test_what_was_counted_before_does_not_count() -> None:
    """A watch that begins late knows nothing of what happened before."""
    counters = Counters(with_threshold(Span("decisions", 100), above=0.5))
    for _ in range(50):
        counters.decided(BAD, 0.0)
    thresholds = Thresholds(counters)
    counters.decided(GOOD, 0.0)
    assert [(0, 1)] == [(one.of, one.over) for one in thresholds.check()]


def test_decisions_without_an_explanation_are_in_neither_count() -> None:
    """They tell no failed checks, so they must not thin the rate either."""
    counters = Counters(with_threshold(Span("decisions", 100), above=0.5))
    thresholds = Thresholds(counters)
    for decision in [BAD, *[Decision("recompute", 8, 0)] * 20]:
        counters.decided(decision, 0.0)
    assert ("one",) == thresholds.exceeded()


def test_events_look_at_rates_by_themselves() -> None:
    """Nobody has to ask: over decisions with each of them, over seconds within a twentieth of a second."""
    for span in (Span("decisions", 10), Span("seconds", 10)):
        told: list[Standing] = []
        clock = Clock()
        counters = Counters(with_threshold(span, above=0.5))
        thresholds = Thresholds(counters, told.append, clock)
        thresholds.changed("entries", "demote_begin", "fired")
        counters.decided(BAD, 0.0)
        thresholds.decided(BAD, 0.0)
        assert len(told) == (span.kind == "decisions")
        clock.now += 2 * PAUSE
        thresholds.changed("entries", "demote_begin", "fired")
        assert [True] == [one.exceeded for one in told]


def test_a_sum_of_everything_has_what_no_rule_declares() -> None:
    """An event that the rulebook does not know is part of all events, so it thins no rate away."""
    counters = Counters(bound_to("pooled"))
    counters.changed("entries", "demote_begin", "fired")
    counters.changed("entries", "who_knows", "impossible")
    found = [counters.value("transitions", where) for where in ({}, {"result": ["fired"]}, {"result": ["impossible"]})]
    assert [2, 1, 1] == found


def test_shipped_thresholds_see_what_they_are_for() -> None:
    """Healthy traffic exceeds nothing; each kind of trouble exceeds its own threshold."""
    clock = Clock()
    quiet = observe(bound_to("pooled"), clock=clock)
    for _ in range(300):
        quiet.observer.decided(GOOD, 0.0)
        quiet.observer.changed("entries", "demote_begin", "fired")
    assert () == quiet.thresholds.exceeded()
    random, loud = Random(1), observe(bound_to("pooled"), clock=clock)
    for _ in range(300):
        loud.observer.decided(BAD if random.random() < 0.1 else GOOD, 0.0)
        loud.observer.changed("entries", "demote_begin", random.choice(["fired", "refused"]))
    loud.observer.recovered(Recovered("refuse", 0, BAD, halted="step x"), 0.0)
    assert ("damaged_blocks", "recovery_without_end", "refused_events") == loud.thresholds.exceeded()
    assert {} == loud.observer.failures == quiet.observer.failures
