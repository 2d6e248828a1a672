"""Alerts for Prometheus, made from the thresholds of a rulebook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from hitproof.spec.rulebook import Rulebook
from hitproof.spec.thresholds import Series, Threshold

__all__ = ["alert_name", "alerts_yaml", "expression", "selector"]

HEAD = """\
# Made from the rulebook's thresholds: hitproof alerts {name}
# The test suite compares this file with the rules.
"""
RUNBOOK = "docs/operations/README.md"


def alerts_yaml(rulebook: Rulebook) -> str:
    """A file of alerting rules: one for each threshold, in file order."""
    rules = [_rule(one) for one in rulebook.thresholds.values()]
    document = {"groups": [{"name": f"hitproof-{rulebook.name}", "rules": rules}]}
    body = yaml.safe_dump(document, sort_keys=False, width=1000, allow_unicode=True)
    return HEAD.format(name=rulebook.name) + str(body)


def alert_name(threshold: Threshold) -> str:
    """The alert's name: the threshold's, in the style of Prometheus."""
    return "Hitproof" + "".join(word.capitalize() for word in threshold.id.split("_"))


def expression(threshold: Threshold) -> str:
    """The alert's condition.

    Over seconds, Prometheus divides the counters itself, of all instances together. A window of decisions is something
    that only the engine knows, so its own answer is asked for.
    """
    if threshold.span.kind == "decisions":
        return f'max(hitproof_threshold_exceeded{{threshold="{threshold.id}"}}) > 0'
    of, over = (_increase(one, threshold.span.size) for one in (threshold.of, threshold.over))
    rate = f"{of} / {over} > {threshold.above:g}"
    # Nothing over nothing is no number, and no alert; an `increase` of 1 is extrapolated and may read as less.
    return rate if threshold.at_least == 1 else f"{rate} and {over} >= {threshold.at_least}"


def selector(series: Series) -> str:
    """The counts of a series as PromQL selects them."""
    matchers = ", ".join(_matcher(label, values) for label, values in series.where.items())
    return f"hitproof_{series.metric}_total" + (f"{{{matchers}}}" if matchers else "")


def _increase(series: Series, seconds: int) -> str:
    return f"sum(increase({selector(series)}[{seconds}s]))"


def _matcher(label: str, values: tuple[str, ...]) -> str:
    if len(values) == 1:
        return f'{label}="{_quoted(values[0])}"'
    return f'{label}=~"{_quoted("|".join(map(re.escape, values)))}"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _rule(threshold: Threshold) -> Mapping[str, Any]:
    return {
        "alert": alert_name(threshold),
        "expr": expression(threshold),
        "labels": {"severity": threshold.severity, "threshold": threshold.id},
        "annotations": {
            "summary": threshold.because,
            "source": threshold.source,
            "runbook": f"{RUNBOOK}#{threshold.id}",
        },
    }
