"""How full a manager's pools and tiers are, as Prometheus gauges; the client is loaded when they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hitproof.engine.cache.manager import CacheManager

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["ManagerCollector"]


class ManagerCollector:
    """Reads a manager at each scrape; register it with a `CollectorRegistry`.

    Args:
        manager: What is exported: free blocks of each pool, segments by group, form and tier, bytes of host memory.
    """

    def __init__(self, manager: CacheManager) -> None:
        self._manager = manager

    def collect(self) -> Iterator[Metric]:
        """Every gauge with all its series."""
        from prometheus_client.core import GaugeMetricFamily

        blocks = GaugeMetricFamily("hitproof_blocks", "Blocks of a pool, whole and free", labels=("group", "part"))
        for group in self._manager.memory.groups():
            columns = self._manager.columns(group)
            blocks.add_metric([group, "whole"], columns.blocks)
            blocks.add_metric([group, "free"], columns.free)
        yield blocks
        segments = GaugeMetricFamily(
            "hitproof_segments", "Segments that hold something", labels=("group", "form", "tier")
        )
        counted: Counter[tuple[str, str, str]] = Counter()
        for bound in self._manager.engine.bound.groups:
            for slot in self._manager.slots(bound.id):
                counted[bound.id, slot.facts.form, slot.facts.tier] += 1
        for labels, count in sorted(counted.items()):
            segments.add_metric(list(labels), count)
        yield segments
        host = GaugeMetricFamily("hitproof_host_bytes", "Bytes of host memory for demoted segments", labels=("part",))
        host.add_metric(["whole"], self._manager.tiers.host_capacity)
        host.add_metric(["used"], self._manager.tiers.host_used)
        yield host
