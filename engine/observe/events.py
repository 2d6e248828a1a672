"""Structured log events with rule ids, through `logging` of the standard library: redacted, capped, rate-limited."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from hitproof.engine.observe.observer import Served, Silent
from hitproof.engine.observe.redact import Redactor, plan_data
from hitproof.engine.observe.thresholds import Standing
from hitproof.spec.bound import BoundRulebook
from hitproof.spec.decision import Decision

if TYPE_CHECKING:
    from hitproof.engine.recovery.result import Recovered, StepTaken

__all__ = ["EventLog", "JsonLines", "Limiter"]

LOGGER = "hitproof.events"
# Who has set up no logging must not find events on standard error.
logging.getLogger(LOGGER).addHandler(logging.NullHandler())
MAX_REASONS = 8
MAX_LINE = 8192
SEVERITY = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.CRITICAL}


class Limiter:
    """Lets so many events of each kind through a second, and counts the others.

    Args:
        per_second: Events of one kind a second, in the long run.
        burst: How many may come at once.
        clock: Seconds from some fixed moment on.
    """

    def __init__(self, per_second: float = 10.0, burst: int = 20, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, burst, clock
        self._lock = Lock()
        self._left: dict[str, tuple[float, float]] = {}
        self._held: dict[str, int] = {}

    def admit(self, kind: str) -> int | None:
        """How many events of the kind were held back before this one; None where this one is held back too."""
        with self._lock:
            now = self._clock()
            left, since = self._left.get(kind, (float(self._burst), now))
            left = min(float(self._burst), left + (now - since) * self._rate)
            if left < 1:
                self._left[kind] = (left, now)
                self._held[kind] = self._held.get(kind, 0) + 1
                return None
            self._left[kind] = (left - 1, now)
            return self._held.pop(kind, 0)


class EventLog(Silent):
    """Logs what an operator must hear of: refusals, repairs, recoveries that failed, quarantines and thresholds.

    Args:
        bound: Names which events of the form machine quarantine a segment.
        redactor: How values are written down.
        limiter: How many events go through.
        logger: Where they go; `hitproof.events` where none is given.
    """

    def __init__(
        self,
        bound: BoundRulebook,
        redactor: Redactor,
        limiter: Limiter | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        self._redactor = redactor
        self._limiter = limiter or Limiter()
        self._logger = logger or logging.getLogger(LOGGER)
        self._quarantines = {
            (group.id, event.id)
            for group in bound.groups
            for event in group.transitions
            if event.target == "quarantined"
        }

    def decided(self, decision: Decision, seconds: float) -> None:
        """Log a refusal, and entries that are to be quarantined."""
        if decision.verdict in ("refuse", "defer"):
            self._log("refusal", logging.WARNING, lambda: {"verdict": decision.verdict, **self._why(decision)})
        groups = [group for group, what in decision.dispositions.items() if what == "quarantine"]
        if groups:
            self._log("quarantine", logging.WARNING, lambda: {"groups": groups, **self._why(decision)})

    def served(self, served: Served) -> None:
        """Log that a request reuses what was repaired, and by which options."""
        if served.verdict in ("repair", "rebuild"):
            self._log("repair", logging.INFO, lambda: self._repaired(served))

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """Log a recovery that did not end in reuse, and copies that are not to be given out again."""
        if recovered.halted is not None or (recovered.steps and recovered.verdict in ("recompute", "refuse")):
            self._log("recovery_failed", logging.WARNING, lambda: self._failed(recovered, seconds))
        if recovered.quarantined:
            copies = recovered.quarantined[:MAX_REASONS]
            self._log("quarantine", logging.WARNING, lambda: {"copies": [plan_data(step) for step in copies]})

    def changed(self, group: str, transition: str, result: str) -> None:
        """Log an event that was refused or impossible, and one that quarantines a segment."""
        told = {"group": group, "transition": transition, "result": result}
        if result != "fired":
            self._log("event_refused", logging.WARNING, lambda: told)
        elif (group, transition) in self._quarantines:
            self._log("quarantine", logging.WARNING, lambda: told)

    def threshold(self, standing: Standing) -> None:
        """Log that a threshold has come to be exceeded, or is so no longer."""
        rule = standing.threshold
        level = SEVERITY[rule.severity] if standing.exceeded else logging.INFO
        told = {"rule": f"thresholds/{rule.id}", "exceeded": standing.exceeded, "severity": rule.severity}
        counted = {"of": standing.of, "over": standing.over, "above": rule.above, "because": rule.because}
        self._log("threshold", level, lambda: {**told, **counted})

    def _why(self, decision: Decision) -> dict[str, Any]:
        reasons = (*decision.admission, *decision.reasons)[:MAX_REASONS]
        return {
            "logical": decision.logical,
            "usable": decision.usable,
            "rules": [reason.rule for reason in reasons] or list(decision.failed[:MAX_REASONS]),
            "reasons": [self._redactor.reason(reason) for reason in reasons],
            "digest": decision.digest,
        }

    @staticmethod
    def _repaired(served: Served) -> dict[str, Any]:
        decision = served.decision
        return {
            "verdict": served.verdict,
            "logical": decision.logical,
            "usable": served.usable,
            "rules": [f"{step.group}/{step.option}" for step in decision.plan[:MAX_REASONS]],
            "cost_us": decision.cost_us if decision.cost_us < float("inf") else None,
        }

    @staticmethod
    def _failed(recovered: Recovered, seconds: float) -> dict[str, Any]:
        return {
            "verdict": recovered.verdict,
            "halted": recovered.halted,
            "steps": [_step(step) for step in recovered.steps[-MAX_REASONS:]],
            "seconds": round(seconds, 6),
        }

    def _log(self, kind: str, level: int, tell: Callable[[], Mapping[str, Any]]) -> None:
        if not self._logger.isEnabledFor(level):
            return
        held = self._limiter.admit(kind)
        if held is not None:
            event = {"event": kind, "held_back": held, **tell()}
            self._logger.log(level, "%s: %s", kind, event, extra={"hitproof": event})


class JsonLines(logging.Formatter):
    """Formats log records as one line of JSON each; what is too long loses its details and says so."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        head = {"time": round(record.created, 6), "level": record.levelname, "logger": record.name}
        event = getattr(record, "hitproof", None)
        if event is None:
            event = {"message": record.getMessage()[: MAX_LINE // 2]}
        line = json.dumps({**head, **event}, default=str)
        if len(line) <= MAX_LINE:
            return line
        short = {key: value for key, value in event.items() if isinstance(value, bool | int | float | None)}
        return json.dumps({**head, "event": str(event.get("event", ""))[:64], **short, "cut": True})


def _step(step: StepTaken) -> dict[str, Any]:
    ran = step.repair
    return {
        "rule": f"recovering/{step.step}",
        "report": step.report,
        "option": None if ran is None else f"{ran.group}/{ran.option}",
        "level": None if ran is None else ran.level,
    }
