"""Many replays of one trace side by side, as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from hitproof.engine.replay.report import ReplayReport
from hitproof.engine.replay.run import replay
from hitproof.engine.trace import TraceRequest
from hitproof.spec.bound import BoundRulebook

__all__ = ["Tiers", "markdown_table", "replay_table"]

Tiers = tuple[int | None, int | None, int | None]
"""Blocks of device, host and disk; None is unlimited."""

_HEADINGS = (
    "model", "device", "host", "disk", "retention",
    "logical", "effective", "recovered", "recomputed", "repairs, s", "prefill, s",
)  # fmt: skip
_RATES = ("logical_hit_rate", "effective_reuse_rate", "recovered_rate", "recomputed_rate")


def replay_table(
    requests: Sequence[TraceRequest],
    models: Iterable[BoundRulebook],
    tiers: Iterable[Tiers],
    retentions: Sequence[str] | None = None,
    **settings: Any,
) -> Iterator[ReplayReport]:
    """Replays a trace once for each combination, in the order model, tiers, retention.

    Args:
        requests: The trace; it is read many times.
        models: The rulebook, bound to each model.
        tiers: Capacities to compare.
        retentions: Ids of the retention rules to compare; all that the rulebook has without.
        settings: Further arguments of `replay`.

    Raises:
        UsageError: A setting cannot be used.
    """
    chosen = list(models)
    names = retentions if retentions is not None else list(chosen[0].rulebook.policy.retention) if chosen else []
    for bound, (device, host, disk), mode in product(chosen, tiers, names):
        yield replay(
            requests,
            bound,
            capacity=device,
            host_blocks=host,
            disk_blocks=disk,
            retention=mode,
            **settings,
        )


def markdown_table(reports: Iterable[ReplayReport], *, unit: str = "blocks") -> str:
    """The rates in per cent of all that was touched, and the priced seconds of repairs and of prefill.

    Args:
        reports: One row each.
        unit: Which rates to show, `blocks` or `tokens`.
    """
    rows: list[tuple[str, ...]] = [_HEADINGS, ("---",) * 5 + ("---:",) * 6]
    rows += [_row(report.as_dict(), unit) for report in reports]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(report: dict[str, Any], unit: str) -> tuple[str, ...]:
    settings, costs = report["settings"], report["recovery_cost_us"]
    tiers = (_count(settings[name]) for name in ("capacity", "host_blocks", "disk_blocks"))
    return (
        settings["model"],
        *tiers,
        settings["retention"].replace("_", " "),
        *(f"{100 * report[rate][unit]:.2f}" for rate in _RATES),
        f"{(costs['in_place'] + costs['intra_layer']) / 1e6:,.1f}",
        f"{report['prefill_us'] / 1e6:,.0f}",
    )


def _count(blocks: int | None) -> str:
    return "unlimited" if blocks is None else f"{blocks:,}" if blocks else "-"
