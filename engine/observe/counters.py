"""Plain counters of what is observed, by the names and labels of `spec/metrics.py`; the one tally that is exported."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from threading import Lock
from typing import TYPE_CHECKING

from hitproof.engine.metrics import HitCounters
from hitproof.engine.observe.observer import Served, Silent, is_explained
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.decision import Decision
from hitproof.spec.errors import InternalError
from hitproof.spec.metrics import COUNTERS, DOOR, HISTOGRAMS, NO_LEVEL, OF_REQUEST, PARTS, label_values
from hitproof.spec.rulebook import LEVELS

if TYPE_CHECKING:
    from hitproof.engine.recovery.result import Recovered, StepTaken

__all__ = ["Counters", "OTHER", "Spread"]

OTHER = "other"
"""Stands for a name that the rulebook does not declare, so that no caller can make series without end."""

Labels = tuple[str, ...]
Selection = tuple[str, tuple[Labels, ...]]
"""A metric, and the labels of the series that are added up."""

ENDS = {"recompute": "recomputed", "refuse": "refused"}


@dataclass
class Spread:
    """A histogram: values by bucket, the last bucket without a bound."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count one value; a bound belongs to its bucket. Changes the histogram."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Counters(Silent):
    """Counts for one bound rulebook; threads may share it.

    Every series that the rulebook can have stands at 0 from the start, so that a rate sees its first failure.
    """

    def __init__(self, bound: BoundRulebook) -> None:
        rulebook = bound.rulebook
        self.bound = bound
        self._lock = Lock()
        self._hits = HitCounters()
        self._checks = {
            f"{group.id}/{check.id}": (check.layer, check.id, group.object)
            for group in bound.groups
            for check in group.checks
        }
        self._checks |= {f"{DOOR}/{name}": (DOOR, name, OF_REQUEST) for name in rulebook.door}
        self._admission = {
            f"admission/{rule.id}": (rule.id, rule.otherwise) for rule in rulebook.policy.admission.values()
        }
        values = label_values(rulebook)
        self._counts: dict[str, dict[Labels, int]] = {
            name: dict.fromkeys(product(*(values[name][label] for label in metric.labels)), 0)
            for name, metric in COUNTERS.items()
            if name not in ("tokens", "requests", "failed_checks", "admission", "recovery_steps")
        }
        steps = () if rulebook.recovering is None else rulebook.recovering.steps
        # Callers name events, so one that no rule declares is likely enough to be told by its result.
        self._counts["transitions"] |= {(OTHER, result): 0 for result in values["transitions"]["result"]}
        self._counts["failed_checks"] = dict.fromkeys(self._checks.values(), 0)
        self._counts["admission"] = dict.fromkeys(self._admission.values(), 0)
        self._counts["recovery_steps"] = {(step.id, report): 0 for step in steps for report in step.on}
        self._verdicts = [(verdict,) for verdict in values["requests"]["verdict"]]
        self._spreads = {name: Spread(one.bounds) for name, one in HISTOGRAMS.items()}

    def decided(self, decision: Decision, seconds: float) -> None:
        """Count a decision, the checks that it tells to have failed, and the admission rules in its way."""
        with self._lock:
            self._add("decisions", (decision.verdict,))
            for reason in decision.admission:
                self._add("admission", self._admission.get(reason.rule, (OTHER, OTHER)))
            if not is_explained(decision):
                return
            self._add("explained_decisions", ())
            failed = [self._checks.get(rule, (OTHER, OTHER, OTHER)) for rule in decision.failed]
            for labels in failed:
                self._add("failed_checks", labels)
            for layer in {layer for layer, *_ in failed}:
                self._add("drift", (layer,))

    def served(self, served: Served) -> None:
        """Count a request's tokens and what it reuses."""
        with self._lock:
            self._hits.serve(served.verdict, served.decision.logical, served.usable, served.tokens)
            self._spreads["usable_tokens"].add(served.usable)
            cost = served.decision.cost_us
            # A price that is not known would make the sum endless.
            if served.verdict in ("repair", "rebuild") and cost != float("inf"):
                self._spreads["recovery_cost_us"].add(cost)

    def stepped(self, step: StepTaken) -> None:
        """Count a step of a recovery."""
        with self._lock:
            self._add("recovery_steps", (step.step, step.report))

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """Count a recovery in which something ran or went wrong; a clean hit that was only confirmed is none."""
        levels = [step.repair.level for step in recovered.steps if step.repair is not None]
        began = bool(recovered.steps) or recovered.halted is not None
        if not began or (recovered.verdict == "reuse" and not levels):
            return
        level = max(levels, key=LEVELS.index, default=NO_LEVEL)
        result = "halted" if recovered.halted is not None else ENDS.get(recovered.verdict, "used")
        with self._lock:
            self._add("recoveries", (level, result))

    def changed(self, group: str, transition: str, result: str) -> None:
        """Count an event of the form machine."""
        with self._lock:
            known = (transition, result) in self._counts["transitions"]
            self._add("transitions", (transition if known else OTHER, result))

    def series(self, metric: str) -> dict[Labels, int]:
        """All counts of a metric by the values of its labels, in the order of `spec.metrics.COUNTERS`.

        Raises:
            KeyError: There is no such metric.
        """
        with self._lock:
            return self._series(metric)

    def spread(self, metric: str) -> Spread:
        """A copy of a histogram.

        Raises:
            KeyError: There is no such histogram.
        """
        with self._lock:
            one = self._spreads[metric]
            return Spread(one.bounds, list(one.counts), one.total)

    def rates(self) -> dict[str, float]:
        """Logical hits, effective reuse, recovered and recomputed, over all tokens touched."""
        with self._lock:
            return self._hits.rates()

    def value(self, metric: str, where: Mapping[str, Iterable[str]]) -> int:
        """The sum of the counts whose labels have one of the values that are named."""
        return self.sums([self.selection(metric, where)])[0]

    def selection(self, metric: str, where: Mapping[str, Iterable[str]]) -> Selection:
        """The series whose labels have one of the values that are named, for `sums` to add up again and again."""
        places = [(COUNTERS[metric].labels.index(label), frozenset(values)) for label, values in where.items()]
        found = [labels for labels in self.series(metric) if all(labels[place] in values for place, values in places)]
        other = (OTHER,) * len(COUNTERS[metric].labels)
        return metric, tuple(found if where else dict.fromkeys([*found, other]))

    def sums(self, selections: Iterable[Selection]) -> list[int]:
        """The sum of each selection, all of one moment."""
        with self._lock:
            return [self._sum(*selection) for selection in selections]

    def _sum(self, metric: str, chosen: tuple[Labels, ...]) -> int:
        counts = self._series(metric) if metric in ("tokens", "requests") else self._counts[metric]
        return sum(counts.get(labels, 0) for labels in chosen)

    def check_integrity(self) -> None:
        """Raise where counts that belong together do not add up.

        Raises:
            InternalError: They do not.
        """
        with self._lock:
            self._hits.check_integrity()
            drift, failed = self._series("drift"), self._series("failed_checks")
            for (layer,), count in drift.items():
                checks = sum(one for labels, one in failed.items() if labels[0] == layer)
                if not count <= checks:
                    raise InternalError(f"drift of {layer} counts {count} decisions, but {checks} failed checks")

    def _series(self, metric: str) -> dict[Labels, int]:
        if metric == "tokens":
            return {(part,): getattr(self._hits, part) for part in PARTS}
        if metric == "requests":
            return {labels: self._hits.requests[labels[0]] for labels in self._verdicts}
        return dict(self._counts[metric])

    def _add(self, metric: str, labels: Labels) -> None:
        counts = self._counts[metric]
        if labels not in counts:
            labels = (OTHER,) * len(labels)
        counts[labels] = counts.get(labels, 0) + 1
