"""Logical and effective hits in SGLang's own metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitproof.integrations.gate import BlockGate, Gated
from hitproof.spec.metrics import PARTS

__all__ = ["METRIC", "Tally"]

METRIC = "sglang:hitproof_tokens"
"""Name of the counter; it is exported as `sglang:hitproof_tokens_total`."""


class Tally:
    """Counts what served requests were worth.

    Args:
        gate: Keeps the counters.
        labels: Labels of SGLang's other metrics of this cache; None where it exports none.
    """

    def __init__(self, gate: BlockGate, labels: Mapping[str, Any] | None) -> None:
        self._gate = gate
        self._labels = labels
        self._exported = None if labels is None else _counter(tuple(labels))
        self._refused = 0

    def count(self, first: Gated | None, usable: int, length: int) -> None:
        """Count a request once. Changes the counters.

        Args:
            first: The gate's first answer about it; None where nothing was claimed.
            usable: Tokens that it reuses.
            length: Its tokens.
        """
        counters = self._gate.counters
        before = {part: getattr(counters, part) for part in PARTS}
        if first is None:
            counters.serve("miss", 0, 0, length)
        else:
            self._gate.count(first, usable, length)
            self._refused += usable < first.logical
        if self._exported is not None and self._labels is not None:
            for part in PARTS:
                grown = getattr(counters, part) - before[part]
                if grown:
                    self._exported.labels(**self._labels, part=part).inc(grown)

    def state(self) -> dict[str, Any]:
        """All counters and rates, for SGLang's `/server_info`."""
        counters = self._gate.counters
        parts = {part: getattr(counters, part) for part in PARTS}
        return {**parts, **counters.rates(), "requests": dict(counters.requests), "cut": self._refused}


def _counter(labels: tuple[str, ...]) -> Any:
    # Loaded here: SGLang sets the folder of its multi-process registry before.
    from prometheus_client import Counter

    return Counter(
        METRIC,
        "Tokens of served requests: touched, of these logical, of these effective, recovered and recomputed",
        (*labels, "part"),
    )
