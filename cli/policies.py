"""Policies on a trace, side by side: time to the first token, reuse and traffic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitproof.spec.bound import BoundRulebook
    from hitproof.spec.rulebook import Rulebook

__all__ = ["chosen_policies", "evaluate_policies", "tell_policies"]

HEADINGS = (
    "policy",
    "TTFT p50",
    "p99",
    "effective",
    "recovered",
    "recomputed",
    "from host",
    "from disk",
    "down",
)


def chosen_policies(names: Sequence[str], rules: Rulebook, capacity: int | None) -> list[str]:
    """The policies that are asked for, each once, in the rulebook's order.

    Args:
        names: What was asked for; `all` is every policy.
        rules: The rulebook.
        capacity: Blocks of the device; None is unlimited.

    Raises:
        UsageError: The rulebook has no such policy, or nothing limits the device.
    """
    from hitproof.cli.books import selected
    from hitproof.spec.errors import UsageError

    chosen = selected(names, list(rules.policy.policies), "policy")
    if chosen and capacity is None:
        raise UsageError("policies are compared at a capacity", got="unlimited", expected="--capacity BLOCKS")
    return chosen


def evaluate_policies(
    trace: Path, models: Sequence[BoundRulebook], names: Sequence[str], settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """Serve the trace in simulated time under each policy on each model.

    Args:
        settings: Further arguments of `evaluate_policy`.

    Raises:
        HitproofError: A setting cannot be used, or the trace cannot be read.
    """
    from hitproof.cli.progress import progress
    from hitproof.engine.replay import evaluate_policy
    from hitproof.engine.trace import read_trace

    reports = []
    for bound in models:
        for name in names:
            with progress(f"serving on {bound.profile.name} under {name}"):
                reports.append(evaluate_policy(read_trace(trace), bound, name, **settings).as_dict())
    return reports


def tell_policies(reports: Sequence[dict[str, Any]]) -> None:
    """A table a model, a row a policy; what was turned away is told where anything was."""
    from hitproof.cli.output import show, table

    for model in dict.fromkeys(report["settings"]["model"] for report in reports):
        rows = [report for report in reports if report["settings"]["model"] == model]
        lanes = rows[0]["settings"]["lanes"]
        how = f"{model} in simulated time, {lanes} lane{'s' if lanes != 1 else ''}"
        show(table(how, HEADINGS, [_row(report) for report in rows]))
        for report in rows:
            if report["refused"]:
                show(f"{report['settings']['policy']} turned {report['refused']} requests away")


def _row(report: dict[str, Any]) -> tuple[str, ...]:
    settings, ttft, rates, moved = report["settings"], report["ttft_us"], report["rates"], report["bytes"]
    return (
        settings["policy"],
        *(f"{ttft[name] / 1e6:.3f} s" for name in ("p50", "p99")),
        *(f"{100 * rates[name]:.2f} %" for name in ("effective", "recovered", "recomputed")),
        *(f"{moved[name] / 1e9:,.1f} GB" for name in ("host", "disk", "down")),
    )
