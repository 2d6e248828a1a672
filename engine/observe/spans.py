"""Decisions and recoveries as OpenTelemetry spans; the library is loaded when an observer is made."""

from __future__ import annotations

from importlib.util import find_spec
from time import time_ns
from typing import TYPE_CHECKING, Any

from hitproof.engine.observe.observer import Silent
from hitproof.spec.decision import Decision
from hitproof.spec.errors import UsageError

if TYPE_CHECKING:
    from hitproof.engine.recovery.result import Recovered

__all__ = ["SpanObserver"]

MAX_RULES = 32
_SECOND = 1_000_000_000


class SpanObserver(Silent):
    """Makes one span a decision, and one a recovery with a child for each of its steps.

    Spans carry verdicts, lengths, counts and rule ids, never values of facts. A span is made when it is over, with the
    times that it had, as a child of the span that is current in the thread.

    Args:
        tracer: An OpenTelemetry tracer; that of the global provider where none is given.

    Raises:
        UsageError: No tracer is given, and OpenTelemetry is not installed.
    """

    def __init__(self, tracer: Any = None) -> None:
        if tracer is None:
            if find_spec("opentelemetry") is None:
                raise UsageError(
                    "spans need OpenTelemetry, which is not installed",
                    expected="the packages opentelemetry-api and opentelemetry-sdk",
                    hint="pip install 'hitproof[observe]'",
                )
            from opentelemetry import trace

            tracer = trace.get_tracer("hitproof")
        self._tracer = tracer

    def decided(self, decision: Decision, seconds: float) -> None:
        """One span, `hitproof.decide`."""
        now = time_ns()
        span = self._tracer.start_span("hitproof.decide", start_time=now - int(seconds * _SECOND))
        span.set_attributes(
            {
                "hitproof.verdict": decision.verdict,
                "hitproof.logical_tokens": decision.logical,
                "hitproof.usable_tokens": decision.usable,
                "hitproof.failed": list(decision.failed[:MAX_RULES]),
                "hitproof.admission": [reason.rule for reason in decision.admission[:MAX_RULES]],
                "hitproof.plan": [f"{step.group}/{step.option}" for step in decision.plan[:MAX_RULES]],
            }
        )
        span.end(now)

    def recovered(self, recovered: Recovered, seconds: float) -> None:
        """One span, `hitproof.recover`, and one `hitproof.step` for each step within it."""
        from opentelemetry import trace

        now = time_ns()
        span = self._tracer.start_span("hitproof.recover", start_time=now - int(seconds * _SECOND))
        span.set_attributes({"hitproof.verdict": recovered.verdict, "hitproof.usable_tokens": recovered.usable})
        if recovered.halted is not None:
            span.set_attribute("hitproof.halted", recovered.halted)
        context = trace.set_span_in_context(span)
        # Steps follow one another without a gap and the last one ends with the recovery.
        at = now - int(sum(step.seconds for step in recovered.steps) * _SECOND)
        for step in recovered.steps:
            child = self._tracer.start_span("hitproof.step", context=context, start_time=at)
            child.set_attributes({"hitproof.step": step.step, "hitproof.report": step.report})
            if step.repair is not None:
                child.set_attributes({"hitproof.repair": step.repair.repair, "hitproof.level": step.repair.level})
            at += int(step.seconds * _SECOND)
            child.end(at)
        span.end(now)
