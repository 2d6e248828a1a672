"""Log events: one line each, with rule ids, redacted, capped and rate-limited."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest

from hitproof.engine.observe import EventLog, JsonLines, Limiter, ObservedEngine, Redactor, Served, observe
from hitproof.engine.observe.thresholds import Standing
from hitproof.engine.recovery import Recovered, StepTaken
from hitproof.spec.decision import Decision, PlanStep, Reason
from tests.engine.observe.observed_life import live
from tests.engine.state_cases import bound_to, build_of, engine_of

BOUND = bound_to("pooled")
STEP = PlanStep("entries", 0, "rebuild_entries", "recompress", "intra_layer", None, 3.0)
LEVELS = {"refusal": "WARNING", "repair": "INFO", "recovery_failed": "WARNING", "quarantine": "WARNING"}


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The events as a program reads them from the lines."""
    lines = [JsonLines().format(record) for record in caplog.records]
    assert not any("\n" in line for line in lines)
    return [json.loads(line) for line in lines]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> EventLog:
    """An event log whose limiter lets everything through."""
    caplog.set_level(logging.INFO, logger="hitproof.events")
    return EventLog(BOUND, Redactor(BOUND.rulebook), Limiter(burst=10**6))


def test_a_refusal_names_rules_and_no_identity(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    """The event has the ids of the rules that failed; a salt is nowhere in the line."""
    build = build_of("pooled", 65, 8).all()
    build.request.has_tokens = False
    build.pieces["entries"][0].salt = "s3cret"
    decision = ObservedEngine(build.engine, log).decide(build.state())
    assert "refuse" == decision.verdict
    (event,) = told(caplog)
    assert ("refusal", "WARNING", "refuse") == (event["event"], event["level"], event["verdict"])
    assert "entries/same_salt" in event["rules"]  # type: ignore[operator]
    assert "s3cret" not in JsonLines().format(caplog.records[0])


def test_repairs_failures_and_quarantines_are_told(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    """Each kind at its level, with the rules that it is about."""
    plan = Decision("rebuild", 8, 8, (STEP,), 3.0)
    log.served(Served(plan, "rebuild", 8, 9))
    log.served(Served(Decision("reuse", 8, 8), "reuse", 8, 9))
    steps = (StepTaken("repair_failed", "failed", STEP, {}), StepTaken("given_up", "nothing", None, {}))
    log.recovered(Recovered("recompute", 0, plan, steps, quarantined=(STEP,)), 0.5)
    log.recovered(Recovered("rebuild", 8, plan, steps[:1]), 0.5)
    log.changed("entries", "quarantine", "fired")
    log.changed("entries", "demote_begin", "fired")
    log.changed("entries", "demote_begin", "refused")
    log.decided(replace(plan, dispositions={"index": "quarantine", "state": "keep"}), 0.0)
    events = told(caplog)
    assert ["repair", "recovery_failed", "quarantine", "quarantine", "event_refused", "quarantine"] == [
        event["event"] for event in events
    ]
    assert {kind: level for kind, level in LEVELS.items() if kind != "refusal"} == {
        str(event["event"]): event["level"] for event in events if event["event"] in LEVELS
    }
    assert ["entries/rebuild_entries"] == events[0]["rules"]
    assert ["recovering/repair_failed", "recovering/given_up"] == [one["rule"] for one in events[1]["steps"]]  # type: ignore[attr-defined]
    assert ["index"] == events[-1]["groups"]


def test_a_threshold_is_told_by_its_severity(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    """Exceeded at the level that the rule says, let go as information."""
    rule = BOUND.rulebook.thresholds["damaged_blocks"]
    log.threshold(Standing(rule, 5, 100, True))
    log.threshold(Standing(rule, 0, 100, False))
    first, second = told(caplog)
    assert ("CRITICAL", "thresholds/damaged_blocks", True, 5, 100) == tuple(
        first[key] for key in ("level", "rule", "exceeded", "of", "over")
    )
    assert ("INFO", False) == (second["level"], second["exceeded"])


def test_a_flood_is_held_back_and_counted() -> None:
    """A burst goes through, then so many a second; the next event tells how many were held back."""
    now = [0.0]
    limiter = Limiter(per_second=2, burst=3, clock=lambda: now[0])
    assert [0, 0, 0, None, None] == [limiter.admit("refusal") for _ in range(5)]
    assert 0 == limiter.admit("repair")
    now[0] = 0.5
    assert [2, None] == [limiter.admit("refusal") for _ in range(2)]
    now[0] = 1000.0
    assert [1, 0, 0, None] == [limiter.admit("refusal") for _ in range(4)]


def test_a_life_is_logged_within_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    """However much happens at once, a kind of event logs no more than its burst."""
    caplog.set_level(logging.INFO, logger="hitproof.events")
    seen = observe(engine_of("pooled").bound, clock=lambda: 5.0)
    live("pooled", seen.observer, seed=2, count=120)
    kinds = [str(event["event"]) for event in told(caplog)]
    assert {"repair", "recovery_failed", "quarantine", "event_refused"} <= set(kinds)
    assert 20 == max(map(kinds.count, kinds))
    assert {} == seen.observer.failures


def test_an_event_that_is_not_listened_to_costs_no_limit(caplog: pytest.LogCaptureFixture) -> None:
    """Where the logger's level leaves an event out, it takes nothing from the others."""
    caplog.set_level(logging.ERROR, logger="hitproof.events")
    limiter = Limiter(burst=1)
    EventLog(BOUND, Redactor(BOUND.rulebook), limiter).decided(Decision("refuse", 0, 0), 0.0)
    assert 0 == limiter.admit("refusal")


def test_a_line_has_a_cap() -> None:
    """What is too long loses its details and says so; other records are lines too."""
    record = logging.LogRecord("x", logging.INFO, "", 0, "one\ntwo", None, None)
    assert "one\ntwo" == json.loads(JsonLines().format(record))["message"]
    record.hitproof = {"event": "refusal", "held_back": 3, "rules": ["r" * 500] * 100}
    line = JsonLines().format(record)
    assert len(line) < 300
    assert ("refusal", 3, True) == tuple(json.loads(line)[key] for key in ("event", "held_back", "cut"))


def test_reasons_in_an_event_are_capped(log: EventLog, caplog: pytest.LogCaptureFixture) -> None:
    """Eight reasons at most, so that a line stays a line."""
    reasons = tuple(Reason(f"kv/{n}", "identity", "x", {}, "y", "z") for n in range(50))
    log.decided(Decision("refuse", 0, 0, reasons=reasons, digest="d"), 0.0)
    (event,) = told(caplog)
    assert [f"kv/{n}" for n in range(8)] == event["rules"]
