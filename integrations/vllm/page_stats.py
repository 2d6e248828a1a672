"""What loads of pages claimed and what they brought, by the channel that vLLM has for connectors' metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import Counter
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats

__all__ = ["PageMetrics", "PageStats"]


class PageStats(KVConnectorStats):
    """Counts of some steps: `logical` and `effective` tokens of loads, and `refused_pages`."""

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> PageStats:
        """Counts as vLLM carries them."""
        return cls(data=dict(counts))

    def reset(self) -> None:
        """Forget all counts."""
        self.data.clear()

    def aggregate(self, other: KVConnectorStats) -> PageStats:
        """Both counts together; changes this one."""
        for name, count in other.data.items():
            self.data[name] = self.data.get(name, 0) + count
        return self

    def reduce(self) -> dict[str, int | float]:
        """The counts, for the log."""
        return {f"hitproof {name}": count for name, count in self.data.items()}

    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not any(self.data.values())


class PageMetrics(KVConnectorPromMetrics):
    """The same counts as series of Prometheus: `vllm:hitproof_page_tokens` by part, `vllm:hitproof_refused_pages`."""

    def __init__(
        self, vllm_config: Any, metric_types: Any, labelnames: list[str], per_engine_labelvalues: dict[int, list[Any]]
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        counter: type[Counter] = self._counter_cls
        self._tokens = counter(
            name="vllm:hitproof_page_tokens",
            documentation="Tokens of loads: logical, what the folder claimed, and effective, what was opened",
            labelnames=[*labelnames, "part"],
        )
        self._refused = counter(
            name="vllm:hitproof_refused_pages", documentation="Pages that the rules refused", labelnames=labelnames
        )

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Add what one step counted."""
        labels = self.per_engine_labelvalues[engine_idx]
        for part in ("logical", "effective"):
            self._tokens.labels(*labels, part).inc(transfer_stats_data.get(part, 0))
        self._refused.labels(*labels).inc(transfer_stats_data.get("refused_pages", 0))
