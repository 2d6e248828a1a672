"""Counters count what happened, once; the exposition says the same as an independent tally of the diary."""

from __future__ import annotations

from collections import Counter
from threading import Thread

import pytest

from hitproof.engine.observe import Counters, Observers, Served, register
from hitproof.engine.observe.counters import OTHER
from hitproof.engine.recovery import Recovered
from hitproof.spec.decision import Decision, Reason
from hitproof.spec.errors import InternalError
from hitproof.spec.metrics import COUNTERS, HISTOGRAMS, VERDICTS, label_values
from tests.engine.observe.observed_life import Diary, Writer, live
from tests.engine.state_cases import engine_of

LEVELS = ("in_place", "intra_layer", "full_recompute")
Sample = tuple[str, frozenset[tuple[str, str]]]


def tally(name: str, diary: Diary) -> Counter[Sample]:
    """What the exposition must say, from the diary alone and without any code of the counters."""
    bound = engine_of(name).bound
    told: Counter[Sample] = Counter()

    def add(metric: str, amount: int = 1, **labels: str) -> None:
        told[(f"hitproof_{metric}_total", frozenset(labels.items()))] += amount

    for one in diary.served:
        logical = one.decision.logical
        add("requests", verdict=one.verdict)
        add("tokens", one.tokens, part="touched")
        add("tokens", logical, part="logical")
        add("tokens", one.usable if one.verdict == "reuse" else 0, part="effective")
        add("tokens", one.usable if one.verdict in ("repair", "rebuild") else 0, part="recovered")
        add("tokens", logical - one.usable, part="recomputed")
    for decision in diary.decisions:
        add("decisions", verdict=decision.verdict)
        if not decision.digest:
            continue
        add("explained_decisions")
        layers = set()
        for rule in decision.failed:
            group, _, check = rule.partition("/")
            if group == "door":
                layer, kind = "door", "request"
            else:
                layer = next(one.layer for one in bound.group(group).checks if one.id == check)
                kind = bound.group(group).object
            layers.add(layer)
            add("failed_checks", layer=layer, rule=check, object=kind)
        for layer in layers:
            add("drift", layer=layer)
    for step in diary.steps:
        add("recovery_steps", step=step.step, report=step.report)
    for end in diary.ends:
        ran = [step.repair.level for step in end.steps if step.repair]
        if not end.steps or (end.verdict == "reuse" and not ran):
            continue
        level = next((one for one in reversed(LEVELS) if one in ran), "none")
        result = {"recompute": "recomputed", "refuse": "refused"}.get(end.verdict, "used")
        add("recoveries", level=level, result=result)
    for _, transition, result in diary.events:
        add("transitions", transition=transition, result=result)
    return told


@pytest.mark.parametrize("name", ["pooled", "windowed", "two-ranks", "gemma-3-27b"])
def test_the_exposition_is_the_tally(name: str) -> None:
    """Every sample of the text format is what the diary says, and every sample that it says is there."""
    prometheus = pytest.importorskip("prometheus_client", reason="the extra `observe` is not installed")
    parser = pytest.importorskip("prometheus_client.parser")
    writer, counters = Writer(), Counters(engine_of(name).bound)
    observers = Observers(counters, writer)
    live(name, observers, seed=5, count=30)
    assert {} == observers.failures
    registry = prometheus.CollectorRegistry()
    register(counters, registry=registry)
    text = prometheus.generate_latest(registry).decode()
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
    expected = tally(name, writer.diary)
    assert len({metric for metric, _ in expected}) > 7
    counted = {key: value for key, value in found.items() if key[0].endswith("_total")}
    assert {key: value for key, value in expected.items() if value} == {k: v for k, v in counted.items() if v}
    assert set(expected) <= set(counted)
    usable = [one.usable for one in writer.diary.served]
    assert (len(usable), sum(usable)) == tuple(
        found[(f"hitproof_usable_tokens_{part}", frozenset())] for part in ("count", "sum")
    )
    for bound in (0, 128, 512):
        labels = frozenset({("le", str(float(bound)))})
        assert sum(one <= bound for one in usable) == found[("hitproof_usable_tokens_bucket", labels)]
    costs = [
        one.decision.cost_us
        for one in writer.diary.served
        if one.verdict in ("repair", "rebuild") and one.decision.cost_us < float("inf")
    ]
    assert costs
    assert len(costs) == found[("hitproof_recovery_cost_us_count", frozenset())]
    assert pytest.approx(sum(costs)) == found[("hitproof_recovery_cost_us_sum", frozenset())]
    counters.check_integrity()


def test_a_recovery_counts_its_request_once() -> None:
    """However often it decides anew, a request's tokens are counted once, as what really came of it."""
    writer, counters = Writer(), Counters(engine_of("pooled").bound)
    live("pooled", Observers(counters, writer), seed=11, count=40)
    assert len(writer.diary.decisions) > len(writer.diary.served) == 80
    assert 80 == counters.value("requests", {})
    touched = sum(one.tokens for one in writer.diary.served)
    assert touched == counters.value("tokens", {"part": ["touched"]})


@pytest.mark.parametrize("name", ["pooled", "deepseek-v4-flash"])
def test_series_are_bounded_by_the_rulebook(name: str) -> None:
    """No name from outside makes a series of its own, and labels are names that rules declare."""
    bound = engine_of(name).bound
    counters = Counters(bound)
    before = {metric: set(counters.series(metric)) for metric in COUNTERS}
    secret = "customer-4711"
    for i in range(50):
        reason = Reason(f"admission/{secret}{i}", "admission", "x", {}, "", "")
        counters.decided(Decision("refuse", 0, 0, failed=(f"{secret}{i}/x",), admission=(reason,), digest="d"), 0.0)
        counters.changed(f"{secret}{i}", f"{secret}{i}", "fired")
    after = {metric: set(counters.series(metric)) for metric in COUNTERS}
    for metric in COUNTERS:
        new = after[metric] - before[metric]
        assert new <= {(OTHER,) * len(COUNTERS[metric].labels)}
        known = label_values(bound.rulebook)[metric]
        for labels in before[metric]:
            assert all(
                value in (*known[label], OTHER) for label, value in zip(COUNTERS[metric].labels, labels, strict=True)
            )
    assert secret not in repr(after)
    assert sum(map(len, after.values())) < 1000


def test_a_halted_recovery_is_told_apart() -> None:
    """A recovery that broke its promise counts as halted, whatever verdict it was given."""
    counters = Counters(engine_of("pooled").bound)
    counters.recovered(Recovered("recompute", 0, Decision("recompute", 5, 0), halted="start"), 0.0)
    counters.recovered(Recovered("miss", 0, Decision("miss", 0, 0)), 0.0)
    assert {("none", "halted"): 1} == {k: v for k, v in counters.series("recoveries").items() if v}


def test_an_unknown_price_does_not_poison_the_sum() -> None:
    """A plan of an unknown price is served, and the histogram of prices leaves it out."""
    counters = Counters(engine_of("pooled").bound)
    for cost in (float("inf"), 7.0, 10.0, 11.0):
        counters.served(Served(Decision("repair", 9, 9, cost_us=cost), "repair", 9, 10))
    spread = counters.spread("recovery_cost_us")
    assert (28.0, [2, 1, 0, 0, 0, 0, 0, 0]) == (spread.total, spread.counts)
    assert 4 == sum(counters.spread("usable_tokens").counts)


def test_threads_lose_no_count() -> None:
    """Four threads that count at once count everything."""
    counters = Counters(engine_of("pooled").bound)
    decision = Decision("reuse", 3, 2, digest="d", failed=("entries/resident",))

    def work() -> None:
        for _ in range(500):
            counters.decided(decision, 0.0)
            counters.served(Served(decision, "reuse", 2, 5))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (2000, 2000, 10_000) == tuple(
        counters.value(metric, where)
        for metric, where in (("decisions", {}), ("drift", {}), ("tokens", {"part": ["touched"]}))
    )
    counters.check_integrity()


def test_drift_beyond_the_failed_checks_is_loud() -> None:
    """Counters that do not add up are an error of our own."""
    counters = Counters(engine_of("pooled").bound)
    counters._add("drift", ("identity",))
    with pytest.raises(InternalError, match="drift of identity"):
        counters.check_integrity()


def test_every_verdict_and_metric_has_its_name() -> None:
    """The closed lists of labels are those of the decision, and no name stands for two metrics."""
    from typing import get_args

    from hitproof.spec.decision import Verdict

    assert set(get_args(Verdict)) == set(VERDICTS)
    assert not set(COUNTERS) & set(HISTOGRAMS)
