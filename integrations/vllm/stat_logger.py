"""Entry point `vllm.stat_logger_plugins`: logical and effective rates in vLLM's own log and Prometheus metrics."""

from __future__ import annotations

import logging
from typing import Any

from prometheus_client import Counter
from vllm.v1.metrics.cache_hit_source import CacheHitSource
from vllm.v1.metrics.loggers import StatLoggerBase

from hitproof.integrations.vllm.settings import verify_mode

__all__ = ["HitproofStatLogger", "PARTS"]

PARTS = ("touched", "logical", "effective", "recomputed")
"""As `hitproof.spec.metrics` names them; nothing is repaired in vLLM, so recomputed is the logical rest."""

_log = logging.getLogger("vllm.hitproof")
_COUNTERS: list[Counter] = []


class HitproofStatLogger(StatLoggerBase):
    """Counts tokens of served requests by part. Without the flag it does nothing.

    Args:
        vllm_config: vLLM's configuration.
        engine_index: The engine whose numbers it is given.
    """

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        self._engine = str(engine_index)
        self._totals = dict.fromkeys(PARTS, 0)
        self._on = verify_mode() is not None
        self._counter: Counter | None = None

    def record(
        self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
    ) -> None:
        """Add what one step served."""
        if not self._on or scheduler_stats is None:
            return
        # Not before: vLLM's own loggers take everything of this prefix out of the registry when they are made.
        self._counter = self._counter or _counter()
        stats = scheduler_stats.prefix_cache_stats
        # Hits are counted after the gate, and what the index claimed travels beside them.
        logical = max(stats.hits_by_source.get(CacheHitSource.DEVICE, 0), stats.hits)
        parts = (stats.queries, logical, stats.hits, logical - stats.hits)
        for part, tokens in zip(PARTS, parts, strict=True):
            self._totals[part] += tokens
            self._counter.labels(part=part, engine=self._engine).inc(tokens)

    def log(self) -> None:
        """One line with both rates, in vLLM's own interval."""
        touched = self._totals["touched"]
        if touched:
            _log.info(
                "hitproof engine %s: logical hit rate %.1f%%, effective %.1f%%",
                self._engine,
                100 * self._totals["logical"] / touched,
                100 * self._totals["effective"] / touched,
            )

    def log_engine_initialized(self) -> None:
        """Nothing is told at the start."""


def _counter() -> Counter:
    """The registered counter of this process; Prometheus refuses a second of the same name."""
    try:
        made = Counter(
            "vllm:hitproof_tokens",
            "Tokens of served requests: touched, of these logical, of these effective and recomputed",
            ("part", "engine"),
        )
    except ValueError:
        return _COUNTERS[-1]
    _COUNTERS.append(made)
    return made
