"""Alerts, dashboard and spans name only what exists, and say what the rules say."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hitproof.engine.observe import (
    Counters,
    Observers,
    PrometheusCollector,
    SpanObserver,
    Thresholds,
    alerts_yaml,
    dashboard_json,
    register,
)
from hitproof.engine.observe.alerts import alert_name, expression
from hitproof.rules import load_rulebook
from hitproof.spec.errors import UsageError
from hitproof.spec.metrics import COUNTERS, HISTOGRAMS, label_values
from hitproof.spec.thresholds import Series, Span
from tests.architecture.source_tree import ROOT
from tests.docs.pages import blocks
from tests.engine.observe.observed_life import Writer, live
from tests.engine.state_cases import bound_to, build_of

FOLDER = ROOT / "docs" / "operations"
RULES = load_rulebook("mixed_attention")
GAUGES = {"hitproof_threshold_exceeded": {"threshold": tuple(RULES.thresholds), "severity": ("info",)}}
DASHBOARD = json.loads(dashboard_json(RULES))
EXPRESSIONS = [expression(one) for one in RULES.thresholds.values()]
EXPRESSIONS += [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.mark.parametrize(("file", "made"), [("alerts.yaml", alerts_yaml), ("dashboard.json", dashboard_json)])
def test_the_committed_file_is_what_the_rules_give(file: str, made: Any) -> None:
    """`make schema` writes both."""
    assert made(RULES) == (FOLDER / file).read_text("utf-8"), "run `make schema`"


def known() -> dict[str, dict[str, tuple[str, ...]]]:
    """Every exported name with its labels and their values, apart from the exporter."""
    values = label_values(RULES)
    found = {f"hitproof_{name}_total": values[name] for name in COUNTERS} | GAUGES
    return found | {f"hitproof_{name}_bucket": {"le": ()} for name in HISTOGRAMS}


@pytest.mark.parametrize("text", sorted(set(EXPRESSIONS)))
def test_expressions_name_what_exists(text: str) -> None:
    """Every metric, label and value of a query is exported; brackets close."""
    names = known()
    metrics = re.findall(r"(hitproof_\w+)(?:\{([^}]*)\})?", text)
    assert metrics or re.fullmatch(r"vector\([\d.]+\)", text)
    for name, matchers in metrics:
        assert name in names
        for label, how, value in re.findall(r'(\w+)(=~?)"([^"]*)"', matchers):
            assert {*(value.split("|") if how == "=~" else [value])} <= set(names[name][label])
    for labels in re.findall(r"by \(([^)]*)\)", text):
        (name,) = {name for name, _ in metrics}
        assert set(labels.split(", ")) <= set(names[name])
    for left, right in ("()", "[]", "{}"):
        assert text.count(left) == text.count(right)


def test_every_metric_is_on_the_dashboard() -> None:
    """None is exported that nobody can see, and panels do not overlap."""
    seen = set(re.findall(r"hitproof_\w+", " ".join(EXPRESSIONS)))
    assert set(known()) == seen
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(places) == len(set(places))
    assert len(places) == len({panel["id"] for panel in DASHBOARD["panels"]})


def test_the_exporter_exports_the_known_names() -> None:
    """What a scrape gives is what the alerts and the dashboard are checked against."""
    prometheus = pytest.importorskip("prometheus_client", reason="the extra `observe` is not installed")
    registry = prometheus.CollectorRegistry()
    counters = Counters(bound_to("pooled"))
    register(counters, Thresholds(counters), registry)
    text = prometheus.generate_latest(registry).decode()
    names = set(re.findall(r"^(hitproof_\w+?)(?:\{| )", text, re.MULTILINE))
    ignored = {f"hitproof_{name}_{part}" for name in HISTOGRAMS for part in ("count", "sum")}
    assert set(known()) == names - ignored - {"hitproof_rulebook_info"}
    told = set(re.findall(r'hitproof_threshold_exceeded\{.*threshold="(\w+)"', text))
    assert set(RULES.thresholds) == told


def test_alerts_are_the_thresholds() -> None:
    """One alert a threshold, in order, with its severity, sentence and source."""
    (group,) = yaml.safe_load(alerts_yaml(RULES))["groups"]
    for rule, made in zip(RULES.thresholds.values(), group["rules"], strict=True):
        assert alert_name(rule) == made["alert"]
        assert expression(rule) == made["expr"]
        assert {"severity": rule.severity, "threshold": rule.id} == made["labels"]
        assert (rule.because, rule.source) == (made["annotations"]["summary"], made["annotations"]["source"])
        assert made["annotations"]["runbook"].endswith(f"#{rule.id}")


def test_an_expression_is_read_off_its_threshold() -> None:
    """Seconds are divided by Prometheus; decisions are asked of the engine; values are quoted."""
    rule = RULES.thresholds["refused_events"]
    assert (
        'sum(increase(hitproof_transitions_total{result=~"refused|impossible"}[300s])) '
        "/ sum(increase(hitproof_transitions_total[300s])) > 0.2 "
        "and sum(increase(hitproof_transitions_total[300s])) >= 50"
    ) == expression(rule)
    assert " and " not in expression(replace(rule, at_least=1))
    counted = replace(rule, span=Span("decisions", 10))
    assert 'max(hitproof_threshold_exceeded{threshold="refused_events"}) > 0' == expression(counted)
    odd = replace(rule, of=Series("transitions", {"transition": ('a"b', "c.d")}))
    assert 'transition=~"a\\"b|c\\\\.d"' in expression(odd)


def test_the_page_tells_every_metric_and_alert() -> None:
    """The operations page has a row for each metric and a heading for each threshold."""
    text = (FOLDER / "README.md").read_text("utf-8")
    for name in (*(f"hitproof_{one}_total" for one in COUNTERS), *(f"hitproof_{one}" for one in HISTOGRAMS), *GAUGES):
        assert f"`{name}`" in text
    assert list(RULES.thresholds) == re.findall(r"^### (\w+)$", text, re.MULTILINE)


def test_the_page_turns_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the operations page runs, and what it sets up counts a decision."""
    prometheus = pytest.importorskip("prometheus_client", reason="the extra `observe` is not installed")
    pytest.importorskip("opentelemetry", reason="the extra `observe` is not installed")
    monkeypatch.setattr(prometheus, "REGISTRY", prometheus.CollectorRegistry())
    logger = logging.getLogger("hitproof.events")
    before, level = list(logger.handlers), logger.level
    (program,) = blocks(FOLDER / "README.md", "py")
    space: dict[str, Any] = {}
    try:
        exec(compile(program, "README.md", "exec"), space)
        space["decider"].decide(build_of("gemma-3-27b", 130, 64).state())
    finally:
        logger.handlers[:] = before
        logger.setLevel(level)
    assert 1 == space["seen"].counters.value("requests", {})
    assert {} == space["seen"].observer.failures
    assert "hitproof_requests_total" in prometheus.generate_latest(prometheus.REGISTRY).decode()


def test_spans_have_the_times_and_rules_of_what_happened() -> None:
    """One span a decision and a recovery, its steps inside it one after another, and no values of facts."""
    pytest.importorskip("opentelemetry.sdk", reason="the extra `observe` is not installed")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider, writer = InMemorySpanExporter(), TracerProvider(), Writer()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observers = Observers(writer, SpanObserver(provider.get_tracer("test")))
    live("pooled", observers, seed=9, count=15)
    assert {} == observers.failures
    spans = exporter.get_finished_spans()
    named = {
        name: [span for span in spans if span.name == f"hitproof.{name}"] for name in ("decide", "recover", "step")
    }
    assert [one.verdict for one in writer.diary.decisions] == [
        span.attributes["hitproof.verdict"] for span in named["decide"]
    ]
    assert [one.verdict for one in writer.diary.ends] == [
        span.attributes["hitproof.verdict"] for span in named["recover"]
    ]
    assert [one.step for one in writer.diary.steps] == [span.attributes["hitproof.step"] for span in named["step"]]
    whole = {span.context.span_id: span for span in named["recover"]}
    for span in named["step"]:
        parent = whole[span.parent.span_id]
        assert parent.start_time <= span.start_time <= span.end_time <= parent.end_time


@pytest.mark.parametrize("missing", ["prometheus_client", "opentelemetry"])
def test_a_missing_library_is_named(missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the extra nothing else is lost, and the error says what to install."""
    for room in ("prometheus", "spans"):
        monkeypatch.setattr(f"hitproof.engine.observe.{room}.find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        register(Counters(bound_to("pooled"))) if missing == "prometheus_client" else SpanObserver()
    assert "hitproof[observe]" in str(caught.value.hint)
    assert PrometheusCollector(Counters(bound_to("pooled"))) is not None
