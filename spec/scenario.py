"""A scenario: segments, what happens to them, a request, and what the engine must answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from hitproof.spec.decision import Decision, Execution, Verdict
from hitproof.spec.profile import Profile
from hitproof.spec.seen import FactValue, RuleSeen

__all__ = [
    "Event",
    "Expectation",
    "FactValue",
    "Fault",
    "LeaseEvent",
    "LeaseExpectation",
    "RecoveredExpectation",
    "RecoveryTurn",
    "Replayer",
    "Scenario",
    "ScenarioResult",
    "SegmentDecl",
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SegmentDecl(_Model):
    """A segment before the events; facts that it does not name have their healthy value, or none when `blank`.

    Several segments of one group are its pieces, in token order.
    """

    id: str
    group: str
    blank: bool = False
    facts: dict[str, FactValue] = {}


class Event(_Model):
    """One transition of one segment, by its trigger, with the arguments that the actor gives."""

    segment: str
    trigger: str
    arguments: dict[str, FactValue] = {}
    donor: str | None = None


class LeaseEvent(_Model):
    """One step of whoever holds segments by a lease, under the lease's name.

    `take` and `release` go through the rulebook's steps of that phase; a release stops where it must wait. `check` asks
    whether every group of the lease is ready at the length `at`. `confirm` compares what was noted. `use` launches the
    read, which goes on until the device is `complete`.
    """

    lease: str
    does: Literal["take", "check", "confirm", "use", "complete", "release"]
    segments: list[str] = []
    at: int | None = None


class Fault(_Model):
    """Facts of a segment that something outside of the rules changes, whatever pins say: a pin that somebody gave back
    who had none, a page table entry that leads elsewhere.
    """

    segment: str
    leaves: dict[str, FactValue]


class RecoveryTurn(_Model):
    """One turn of a recovery: a repair that runs, or the confirmation before use, where `report` stays out.

    `measured` replaces what an honest runner would measure. `meanwhile` gives facts, `segment.fact`, new values while
    the turn lasts, whatever the segment's pins say; a change of the epoch or the form is seen by the lease.
    """

    report: Literal["done", "failed", "source_lost", "transfer_failed"] | None = None
    measured: dict[str, FactValue] = {}
    meanwhile: dict[str, FactValue] = {}


class RecoveredExpectation(_Model):
    """How a recovery must end; keys that are left out are not compared.

    `steps` are the ids of the steps taken, `counters` their values at the end, `quarantined` the repairs whose copies
    are set apart, `group/option`, and `halted` what broke the promise that a recovery ends.
    """

    verdict: Verdict | None = None
    length: int | None = None
    steps: list[str] | None = None
    counters: dict[str, int] | None = None
    quarantined: list[str] | None = None
    halted: str | None = None


class LeaseExpectation(_Model):
    """What a lease must have come to; keys that are left out are not compared.

    `checked` and `confirmed` are the last answers to these questions, `reading` says whether the device reads still,
    `released` whether every step of the release was taken. `epochs_kept`: no segment's epoch has moved since it was
    noted. `changed` has, for each segment, facts about its content and its place that, others beside, are no longer as
    noted, and `violates` the ids of invariants over leases that fail for this one.
    """

    checked: bool | None = None
    confirmed: bool | None = None
    reading: bool | None = None
    released: bool | None = None
    epochs_kept: bool | None = None
    changed: dict[str, list[str]] | None = None
    violates: list[str] | None = None


class Expectation(_Model):
    """What must come out; keys that are left out are not compared.

    `accepted` asks whether every group accepts at exactly `at`, without repair; `ready` names groups, optional ones
    too, whose segments pass every check there, and `unready` groups of which some check fails. `unwanted` has options,
    `group/option`, that mend nothing there or do not apply; a `group` alone stands for all that it has.
    `option` names a recovery option that applies at `at`, and `fails_after` the checks of its group that do not hold
    once it has run, and `leaves` facts of its segment then.
    `competing` names the repairs that a plan of one step runs with the options in file order and in reverse. `cheaper`
    names the steps of another plan, `group/option`, that ends well at `at`, without any of no reuse at length 0, and
    costs less than the decision at the declared prices. `admission` names the rules of admission that the wanted plan
    broke, `promised` what an admitted one is promised of each pool; both need the scenario's `policy`. `found_in`
    gives for a segment the tiers in which the request's key is the segment's own, and `identity` whether each of these
    segments passes every identity check of its group at `at`. `leases` tells by name what leases have come to.
    """

    verdict: Verdict | None = None
    length: int | None = None
    logical: int | None = None
    failed: list[str] | None = None
    plan: list[str] | None = None
    execution: Execution | None = None
    admission: list[str] | None = None
    promised: dict[str, int] | None = None
    flags: list[str] | None = None
    dispositions: dict[str, Literal["keep", "purge", "quarantine"]] | None = None
    violates: list[str] | None = None
    refused_event: int | None = None
    accepted: bool | None = None
    at: int | None = None
    ready: list[str] | None = None
    unready: list[str] | None = None
    unwanted: list[str] | None = None
    option: str | None = None
    fails_after: list[str] | None = None
    leaves: dict[str, FactValue] | None = None
    competing: list[str] | None = None
    cheaper: list[str] | None = None
    facts: dict[str, FactValue] | None = None
    recovered: RecoveredExpectation | None = None
    found_in: dict[str, list[str]] | None = None
    identity: bool | None = None
    leases: dict[str, LeaseExpectation] | None = None


class Scenario(_Model):
    """A replayable story: from a real failure, from a user, or from the verifier.

    Where it has a `recovery`, or expects one to end somehow, the decision is carried out after all else was compared;
    once the turns that are told are over, every repair does as it promised and nobody interferes.
    """

    scenario: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*(\.[0-9][a-z0-9_-]*)*$", max_length=120)]
    title: str
    source: list[str] = []
    because: str = ""
    profile: str | Profile
    policy: str | None = None
    request: dict[str, FactValue]
    runtime: dict[str, FactValue] = {}
    kernel: dict[str, FactValue] = {}
    kernels: dict[str, dict[str, FactValue]] = {}
    segments: list[SegmentDecl] = []
    events: Sequence[Event | LeaseEvent | Fault] = []
    recovery: list[RecoveryTurn] = []
    expect: Expectation = Expectation()


class ScenarioResult(_Model):
    """What came out, and every difference from what was expected.

    `beside` has the ids, as `group/rule`, of what the decision rests on and does not name: checks of optional groups
    that failed, and the disposition rules that applied. `steps` are those of a recovery that is told, `reports` what
    each of them answered.
    """

    scenario: str
    passed: bool
    differences: list[str]
    decision: Decision | None
    violated: list[str] = []
    beside: list[str] = []
    steps: list[str] = []
    reports: list[str] = []


class Replayer(Protocol):
    """Runs scenarios on the real engine; the verifier is handed one and never imports the engine."""

    def replay(self, rulebook: object, scenario: Scenario) -> ScenarioResult:
        """Run one scenario under a resolved rulebook."""
        ...

    def seen(self, rulebook: object, scenario: Scenario, rule: str) -> list[RuleSeen]:
        """What a scenario shows of the rule that is to blame, and of the rules that it says fail."""
        ...
