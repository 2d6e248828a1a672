"""A scenario: segments, what happens to them, a request, and what the engine must answer."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from hitproof.spec.decision import Decision, Verdict
from hitproof.spec.profile import Profile

__all__ = ["Event", "Expectation", "FactValue", "Replayer", "Scenario", "ScenarioResult", "SegmentDecl"]

FactValue = bool | int | float | str | list[int] | None
"""A fact as it stands in a file: a list of integers is a set of tokens; `unknown` or nothing is unknown."""


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


class Expectation(_Model):
    """What must come out; keys that are left out are not compared.

    `accepted` asks whether every group accepts at exactly `at`, without repair. `option` names a recovery option that
    applies at `at`, and `fails_after` the checks of its group that do not hold once it has run. `competing` names
    the repairs that a plan of one step runs with the options in file order and in reverse.
    """

    verdict: Verdict | None = None
    length: int | None = None
    logical: int | None = None
    failed: list[str] | None = None
    plan: list[str] | None = None
    flags: list[str] | None = None
    dispositions: dict[str, Literal["keep", "purge", "quarantine"]] | None = None
    violates: list[str] | None = None
    refused_event: int | None = None
    accepted: bool | None = None
    at: int | None = None
    option: str | None = None
    fails_after: list[str] | None = None
    competing: list[str] | None = None
    facts: dict[str, FactValue] | None = None


class Scenario(_Model):
    """A replayable story: from a real failure, from a user, or from the verifier."""

    scenario: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=120)]
    title: str
    source: list[str] = []
    because: str = ""
    profile: str | Profile
    request: dict[str, FactValue]
    runtime: dict[str, FactValue] = {}
    kernel: dict[str, FactValue] = {}
    kernels: dict[str, dict[str, FactValue]] = {}
    segments: list[SegmentDecl] = []
    events: list[Event] = []
    expect: Expectation = Expectation()


class ScenarioResult(_Model):
    """What came out, and every difference from what was expected."""

    scenario: str
    passed: bool
    differences: list[str]
    decision: Decision | None
    violated: list[str] = []


class Replayer(Protocol):
    """Runs scenarios on the real engine; the verifier is handed one and never imports the engine."""

    def replay(self, rulebook: object, scenario: Scenario) -> ScenarioResult:
        """Run one scenario under a resolved rulebook."""
        ...
