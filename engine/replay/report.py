"""What a replay found: rates, verdicts and prices, all over everything that was touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.replay.directory import Found
from hitproof.engine.state import Resolved
from hitproof.spec.decision import Decision
from hitproof.spec.rulebook import LEVELS

__all__ = ["ReplayReport", "Tally"]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Figures of one replay.

    Attributes:
        requests: Requests replayed.
        block_touches, token_touches: Blocks and tokens of all prompts: what the rates divide by.
        rates: Name to blocks and tokens, as fractions of 1. `logical_hit_rate` is what a hash-only cache claims:
            the longest known prefix in any tier. `effective_reuse_rate` was reusable as it lay,
            `recovered_rate` after repairs, `recomputed_rate` is the rest of the logical hits; these three sum to
            the first.
        decisions: Verdict to how many requests got it.
        recovery_cost_us: Recovery level to the price of its repairs, in microseconds; at `full_recompute` that
            of computing again what had matched, which is part of the prefill.
        prefill_us: Price of computing all that was not reused, in microseconds.
        injected: How many version changes of the serving process were injected; none is measured.
        injected_by_fact: The changed fact to how often.
        seconds: Wall time of the replay.
        settings: What it was run with.
    """

    requests: int
    block_touches: int
    token_touches: int
    rates: Mapping[str, Mapping[str, float]]
    decisions: Mapping[str, int]
    recovery_cost_us: Mapping[str, float]
    prefill_us: float
    injected: int
    injected_by_fact: Mapping[str, int]
    seconds: float
    settings: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data, ready for JSON."""
        return {
            "requests": self.requests,
            "block_touches": self.block_touches,
            "token_touches": self.token_touches,
            **{name: dict(rate) for name, rate in self.rates.items()},
            "decisions": dict(self.decisions),
            "recovery_cost_us": dict(self.recovery_cost_us),
            "prefill_us": self.prefill_us,
            "injected": self.injected,
            "injected_by_fact": dict(self.injected_by_fact),
            "seconds": self.seconds,
            "settings": dict(self.settings),
        }


@dataclass(slots=True)
class Tally:
    """The running sums of a replay; pairs are blocks and tokens."""

    engine: Engine
    unit: int = 0
    requests: int = 0
    touched: list[int] = field(default_factory=lambda: [0, 0])
    logical: list[int] = field(default_factory=lambda: [0, 0])
    effective: list[int] = field(default_factory=lambda: [0, 0])
    recovered: list[int] = field(default_factory=lambda: [0, 0])
    decisions: dict[str, int] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0.0))
    prefill_us: float = 0.0

    def count(self, blocks: int, tokens: int, found: Found, state: Resolved, decision: Decision) -> None:
        """Adds one decided request; changes the sums."""
        self.requests += 1
        verdict, usable = decision.verdict, decision.usable
        self.decisions[verdict] = self.decisions.get(verdict, 0) + 1
        _add(self.touched, blocks, tokens)
        _add(self.logical, found.blocks, found.matched)
        if usable:
            _add(self.effective if verdict == "reuse" else self.recovered, usable // self.unit, usable)
        rest = self.engine.prefill(state, usable)
        self.prefill_us += rest
        if found.matched > usable:
            self.costs[LEVELS[-1]] += rest - self.engine.prefill(state, found.matched)
        if decision.plan:
            self._count_plan(decision)

    def report(self, *, injected: Mapping[str, int], seconds: float, settings: Mapping[str, Any]) -> ReplayReport:
        """The figures so far."""
        recomputed = [
            known - whole - mended
            for known, whole, mended in zip(self.logical, self.effective, self.recovered, strict=True)
        ]
        return ReplayReport(
            requests=self.requests,
            block_touches=self.touched[0],
            token_touches=self.touched[1],
            rates={
                "logical_hit_rate": self._rate(self.logical),
                "effective_reuse_rate": self._rate(self.effective),
                "recovered_rate": self._rate(self.recovered),
                "recomputed_rate": self._rate(recomputed),
            },
            decisions=dict(sorted(self.decisions.items())),
            recovery_cost_us=dict(self.costs),
            prefill_us=self.prefill_us,
            injected=sum(injected.values()),
            injected_by_fact=dict(sorted(injected.items())),
            seconds=seconds,
            settings=settings,
        )

    def _count_plan(self, decision: Decision) -> None:
        joint: dict[str, tuple[str, float]] = {}
        for step in decision.plan:
            price = 0.0 if step.cost_us is None else step.cost_us
            if step.joint is None:
                self.costs[step.level] += price
            elif step.joint not in joint or price > joint[step.joint][1]:
                joint[step.joint] = (step.level, price)
        for level, price in joint.values():
            self.costs[level] += price

    def _rate(self, pair: list[int]) -> dict[str, float]:
        return {
            unit: part / whole if whole else 0.0
            for unit, part, whole in zip(("blocks", "tokens"), pair, self.touched, strict=True)
        }


def _add(pair: list[int], blocks: int, tokens: int) -> None:
    pair[0] += blocks
    pair[1] += tokens
