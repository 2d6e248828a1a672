"""Observability: counters, thresholds, log events, a ring of decisions, and exports (article 7); all of it optional."""

from hitproof.engine.observe.alerts import alerts_yaml
from hitproof.engine.observe.counters import Counters
from hitproof.engine.observe.dashboard import dashboard_json
from hitproof.engine.observe.events import EventLog, JsonLines, Limiter
from hitproof.engine.observe.observation import Observation, observe
from hitproof.engine.observe.observed import ObservedEngine, ObservedMachine, ObservedTable
from hitproof.engine.observe.observer import NOBODY, Observer, Observers, Served, Silent
from hitproof.engine.observe.prometheus import PrometheusCollector, register
from hitproof.engine.observe.redact import Redactor
from hitproof.engine.observe.ring import Ring
from hitproof.engine.observe.ring_file import KeptDecision, read_ring
from hitproof.engine.observe.spans import SpanObserver
from hitproof.engine.observe.thresholds import Standing, Thresholds

__all__ = [
    "Counters",
    "EventLog",
    "JsonLines",
    "KeptDecision",
    "Limiter",
    "NOBODY",
    "Observation",
    "ObservedEngine",
    "ObservedMachine",
    "ObservedTable",
    "Observer",
    "Observers",
    "PrometheusCollector",
    "Redactor",
    "Ring",
    "Served",
    "Silent",
    "SpanObserver",
    "Standing",
    "Thresholds",
    "alerts_yaml",
    "dashboard_json",
    "observe",
    "read_ring",
    "register",
]
