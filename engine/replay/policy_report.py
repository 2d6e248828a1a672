"""What an evaluation of a policy found: times to the first token, reuse and traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

__all__ = ["PolicyReport", "PolicyTally", "percentile", "policy_table"]

_HEADINGS = (
    "model", "policy", "TTFT p50", "p90", "p99", "mean",
    "effective", "recovered", "recomputed", "from host", "from disk", "down", "busy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """Figures of one policy on one trace.

    Attributes:
        requests, refused, deferrals: Requests served; turned away; how often one had to wait for room.
        ttft_us: Time from arrival to the end of prefill, in microseconds: `mean`, `p50`, `p90`, `p99`.
        rates: Fractions of all tokens touched: `logical`, `effective`, `recovered`, `recomputed`.
        bytes: Bytes brought back from `host` and `disk`, and copied `down` out of the device.
        decisions: Verdict to how many requests got it.
        executions: `synchronous` and `asynchronous` plans that had repairs.
        recovery_us, prefill_us: Priced time of all repairs and of all prefill.
        busy: Share of the lanes' time in which they were held, until the last request ended.
        settings: What it was run with.
    """

    requests: int
    refused: int
    deferrals: int
    ttft_us: Mapping[str, float]
    rates: Mapping[str, float]
    bytes: Mapping[str, int]
    decisions: Mapping[str, int]
    executions: Mapping[str, int]
    recovery_us: float
    prefill_us: float
    busy: float
    settings: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        return {
            "requests": self.requests,
            "refused": self.refused,
            "deferrals": self.deferrals,
            "ttft_us": dict(self.ttft_us),
            "rates": dict(self.rates),
            "bytes": dict(self.bytes),
            "decisions": dict(self.decisions),
            "executions": dict(self.executions),
            "recovery_us": self.recovery_us,
            "prefill_us": self.prefill_us,
            "busy": self.busy,
            "settings": dict(self.settings),
        }


@dataclass(slots=True)
class PolicyTally:
    """The running sums of an evaluation; lengths are tokens."""

    ttft_us: list[float] = field(default_factory=list)
    refused: int = 0
    deferrals: int = 0
    touched: int = 0
    logical: int = 0
    effective: int = 0
    recovered: int = 0
    host_bytes: int = 0
    disk_bytes: int = 0
    down_bytes: int = 0
    recovery_us: float = 0.0
    prefill_us: float = 0.0
    held_us: float = 0.0
    decisions: dict[str, int] = field(default_factory=dict)
    executions: dict[str, int] = field(default_factory=lambda: {"synchronous": 0, "asynchronous": 0})

    def report(self, *, lane_us: float, settings: Mapping[str, Any]) -> PolicyReport:
        """The figures so far.

        Args:
            lane_us: Time of all lanes, held or not.
            settings: What it was run with.
        """
        times = sorted(self.ttft_us)
        parts = {
            "logical": self.logical,
            "effective": self.effective,
            "recovered": self.recovered,
            "recomputed": self.logical - self.effective - self.recovered,
        }
        return PolicyReport(
            requests=len(times),
            refused=self.refused,
            deferrals=self.deferrals,
            ttft_us={
                "mean": sum(times) / len(times) if times else 0.0,
                **{f"p{share}": percentile(times, share) for share in (50, 90, 99)},
            },
            rates={name: part / self.touched if self.touched else 0.0 for name, part in parts.items()},
            bytes={"host": self.host_bytes, "disk": self.disk_bytes, "down": self.down_bytes},
            decisions=dict(sorted(self.decisions.items())),
            executions=dict(self.executions),
            recovery_us=self.recovery_us,
            prefill_us=self.prefill_us,
            busy=self.held_us / lane_us if lane_us else 0.0,
            settings=settings,
        )


def percentile(rising: list[float], share: int) -> float:
    """The least value that at least `share` per cent of a rising list do not exceed; 0 of nothing."""
    return rising[max(0, ceil(len(rising) * share / 100) - 1)] if rising else 0.0


def policy_table(reports: Iterable[PolicyReport]) -> str:
    """Markdown: seconds to the first token, per cent of all tokens touched, gigabytes, per cent of the lanes' time."""
    rows: list[tuple[str, ...]] = [_HEADINGS, ("---",) * 2 + ("---:",) * 11]
    rows += [_row(report.as_dict()) for report in reports]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(report: dict[str, Any]) -> tuple[str, ...]:
    settings, ttft, rates, moved = report["settings"], report["ttft_us"], report["rates"], report["bytes"]
    return (
        settings["model"],
        settings["policy"].replace("_", " "),
        *(f"{ttft[name] / 1e6:.3f}" for name in ("p50", "p90", "p99", "mean")),
        *(f"{100 * rates[name]:.2f}" for name in ("effective", "recovered", "recomputed")),
        *(f"{moved[name] / 1e9:,.1f}" for name in ("host", "disk", "down")),
        f"{100 * report['busy']:.0f}",
    )
