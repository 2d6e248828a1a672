"""Plain counters as Prometheus metrics; the client library is loaded when a registry is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hitproof.engine.observe.counters import Counters
from hitproof.spec.errors import UsageError
from hitproof.spec.metrics import COUNTERS, HISTOGRAMS

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from hitproof.engine.observe.thresholds import Thresholds

__all__ = ["PrometheusCollector", "register"]

PREFIX = "hitproof_"


class PrometheusCollector:
    """Reads the counters at each scrape; keeps no count of its own, so nothing is counted twice.

    Args:
        counters: What is exported.
        thresholds: How they stand is exported too, where there are any.
    """

    def __init__(self, counters: Counters, thresholds: Thresholds | None = None) -> None:
        self._counters, self._thresholds = counters, thresholds

    def collect(self) -> Iterator[Metric]:
        """Every metric with all its series."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for name, declared in COUNTERS.items():
            family = CounterMetricFamily(PREFIX + name, declared.help, labels=declared.labels)
            for labels, count in self._counters.series(name).items():
                family.add_metric(labels, count)
            yield family
        for name, spread in HISTOGRAMS.items():
            counted = self._counters.spread(name)
            buckets, below = [], 0
            for bound, count in zip([*map(float, counted.bounds), float("inf")], counted.counts, strict=True):
                below += count
                buckets.append(("+Inf" if bound == float("inf") else repr(bound), float(below)))
            histogram = HistogramMetricFamily(PREFIX + name, spread.help)
            histogram.add_metric([], buckets, counted.total)
            yield histogram
        book = self._counters.bound
        info = GaugeMetricFamily(
            PREFIX + "rulebook_info", "The rulebook that decides, always 1", labels=("rulebook", "digest", "profile")
        )
        info.add_metric([book.rulebook.name, book.rulebook.digest, book.profile.profile], 1)
        yield info
        if self._thresholds is not None:
            gauge = GaugeMetricFamily(
                PREFIX + "threshold_exceeded", "1 where a threshold is exceeded", labels=("threshold", "severity")
            )
            for one in self._thresholds.check():
                gauge.add_metric([one.threshold.id, one.threshold.severity], int(one.exceeded))
            yield gauge


def register(
    counters: Counters, thresholds: Thresholds | None = None, registry: CollectorRegistry | None = None
) -> PrometheusCollector:
    """Export counters through a registry of `prometheus_client`; the library's own where none is given.

    A registry takes one collector; a second model in the process needs a registry of its own.

    Raises:
        UsageError: The library is not installed.
    """
    if find_spec("prometheus_client") is None:
        raise UsageError(
            "metrics need prometheus-client, which is not installed",
            expected="the package prometheus-client",
            hint="pip install 'hitproof[observe]'",
        )
    from prometheus_client import REGISTRY

    collector = PrometheusCollector(counters, thresholds)
    (REGISTRY if registry is None else registry).register(collector)
    return collector
