"""What a replay found: rates, verdicts and prices, all over everything that was touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hitproof.engine.decide import Engine
from hitproof.engine.replay.directory import Found
from hitproof.engine.replay.series import HitLengths, TimeBins, Timeline
from hitproof.engine.state import Resolved
from hitproof.engine.trace import TraceRequest
from hitproof.spec.decision import Decision
from hitproof.spec.rulebook import LEVELS

__all__ = ["RecoveryCost", "ReplayReport", "Tally"]

_RATES = ("logical_hit_rate", "effective_reuse_rate", "recovered_rate", "recomputed_rate")


@dataclass(frozen=True, slots=True)
class RecoveryCost:
    """One recovery option's share of the price of all repairs.

    Attributes:
        level: Recovery level.
        group: The group whose option it is; empty for a joint repair.
        option: The option's id, or the joint repair's name.
        repairs: How often it ran.
        cost_us: Its price, in microseconds.
    """

    level: str
    group: str
    option: str
    repairs: int
    cost_us: float


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
        recovery: What the plans ran, and what it cost; dearest first. A joint repair is paid once a plan and stands
            for all groups that share it.
        hit_lengths: Requests by the length that they matched and the length that they could reuse, in bins that
            double.
        timeline: The sums by arrival time.
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
    recovery: tuple[RecoveryCost, ...]
    hit_lengths: Mapping[str, list[int]]
    timeline: Timeline
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
            "recovery": [asdict(one) for one in self.recovery],
            "hit_lengths": {name: list(counts) for name, counts in self.hit_lengths.items()},
            "timeline": self.timeline.as_dict(),
            "prefill_us": self.prefill_us,
            "injected": self.injected,
            "injected_by_fact": dict(self.injected_by_fact),
            "seconds": self.seconds,
            "settings": dict(self.settings),
        }


@dataclass(slots=True)
class Tally:
    """The running sums of a replay."""

    engine: Engine
    unit: int = 0
    bins: TimeBins = field(default_factory=TimeBins)
    lengths: HitLengths = field(default_factory=HitLengths)
    decisions: dict[str, int] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0.0))
    options: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    prefill_us: float = 0.0

    def count(self, one: TraceRequest, found: Found, state: Resolved, decision: Decision) -> None:
        """Adds one decided request; changes the sums."""
        verdict, usable = decision.verdict, decision.usable
        self.decisions[verdict] = self.decisions.get(verdict, 0) + 1
        self.lengths.count(found.matched, usable)
        sums = self.bins.at(one.timestamp_ms)
        sums[0] += 1
        sums[1] += len(one.hash_ids)
        sums[2] += found.blocks
        sums[5] += one.input_tokens
        sums[6] += found.matched
        if usable:
            part = 3 if verdict == "reuse" else 4
            sums[part] += usable // self.unit
            sums[part + 4] += usable
        # A prompt without a whole token has no length to price, and nothing to compute.
        rest = self.engine.prefill(state, usable) if one.input_tokens else 0.0
        self.prefill_us += rest
        if found.matched > usable:
            self.costs[LEVELS[-1]] += rest - self.engine.prefill(state, found.matched)
        if decision.plan:
            self._count_plan(decision)

    def report(self, *, injected: Mapping[str, int], seconds: float, settings: Mapping[str, Any]) -> ReplayReport:
        """The figures so far."""
        requests, *sums = self.bins.totals()
        blocks, tokens = _rates(sums[:4]), _rates(sums[4:])
        return ReplayReport(
            requests=requests,
            block_touches=sums[0],
            token_touches=sums[4],
            rates={name: {"blocks": blocks[name], "tokens": tokens[name]} for name in _RATES},
            decisions=dict(sorted(self.decisions.items())),
            recovery_cost_us=dict(self.costs),
            recovery=tuple(
                RecoveryCost(*place, repairs=int(repairs), cost_us=price)
                for place, (repairs, price) in sorted(self.options.items(), key=lambda one: (-one[1][1], one[0]))
            ),
            hit_lengths=self.lengths.as_dict(),
            timeline=self.bins.timeline(),
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
                self._pay(step.level, step.group, step.option, price)
            elif step.joint not in joint or price > joint[step.joint][1]:
                joint[step.joint] = (step.level, price)
        for name, (level, price) in joint.items():
            self._pay(level, "", name, price)

    def _pay(self, level: str, group: str, option: str, price: float) -> None:
        self.costs[level] += price
        place = level, group, option
        paid = self.options.get(place)
        if paid is None:
            paid = self.options[place] = [0, 0.0]
        paid[0] += 1
        paid[1] += price


def _rates(sums: list[int]) -> dict[str, float]:
    """The shares of the first sum that the others are, and of what is left of the second."""
    touched, logical, effective, recovered = sums
    parts = (logical, effective, recovered, logical - effective - recovered)
    return {name: part / touched if touched else 0.0 for name, part in zip(_RATES, parts, strict=True)}
