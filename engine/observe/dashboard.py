"""A Grafana dashboard, made from the metrics and the thresholds of a rulebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hitproof.engine.observe.alerts import selector
from hitproof.spec.metrics import COUNTERS, HISTOGRAMS, PARTS
from hitproof.spec.rulebook import Rulebook
from hitproof.spec.thresholds import Threshold

__all__ = ["dashboard_json"]

WIDTH, HEIGHT, ACROSS = 12, 8, 2
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
RATE = "[$__rate_interval]"

Query = tuple[str, str]
"""PromQL, and the legend of what it gives."""


def dashboard_json(rulebook: Rulebook) -> str:
    """The dashboard as Grafana imports it: shares of tokens, every metric, every threshold."""
    panels = [_panel(place, *panel) for place, panel in enumerate(_panels(rulebook))]
    document = {
        "title": f"hitproof: {rulebook.name}",
        "uid": f"hitproof-{rulebook.name}"[:40],
        "tags": ["hitproof"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
        },
        "panels": panels,
    }
    return json.dumps(document, indent=2) + "\n"


def _panels(rulebook: Rulebook) -> Iterator[tuple[str, str, str, list[Query]]]:
    """Title, description, unit and queries of each panel."""
    touched = f'sum(rate(hitproof_tokens_total{{part="touched"}}{RATE}))'
    shares = [(f'sum(rate(hitproof_tokens_total{{part="{part}"}}{RATE})) / {touched}', part) for part in PARTS[1:]]
    yield "Logical hits and effective reuse", COUNTERS["tokens"].help, "percentunit", shares
    for name, metric in COUNTERS.items():
        labels = ", ".join(metric.labels)
        legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels)
        by = f" by ({labels})" if labels else ""
        yield name, metric.help, "ops", [(f"sum{by} (rate(hitproof_{name}_total{RATE}))", legend or name)]
    for name, spread in HISTOGRAMS.items():
        buckets = f"sum by (le) (rate(hitproof_{name}_bucket{RATE}))"
        queries = [(f"histogram_quantile({q}, {buckets})", f"{round(100 * q)} %") for q in (0.5, 0.9, 0.99)]
        yield name, spread.help, "short", queries
    for threshold in rulebook.thresholds.values():
        yield f"threshold {threshold.id}", threshold.because, "percentunit", [*_rates(threshold)]
    exceeded = "max by (threshold) (hitproof_threshold_exceeded)"
    yield "Thresholds that are exceeded", "As the engine itself sees them", "short", [(exceeded, "{{threshold}}")]


def _rates(threshold: Threshold) -> Iterator[Query]:
    # Windows of decisions have no like in PromQL; five minutes show the course all the same.
    seconds = threshold.span.size if threshold.span.kind == "seconds" else 300
    of, over = (f"sum(increase({selector(one)}[{seconds}s]))" for one in (threshold.of, threshold.over))
    yield f"{of} / {over}", "rate"
    yield f"vector({threshold.above:g})", "too much"


def _panel(place: int, title: str, description: str, unit: str, queries: list[Query]) -> dict[str, Any]:
    row, column = divmod(place, ACROSS)
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for i, (query, legend) in enumerate(queries)
        ],
    }
