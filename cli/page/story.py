"""What a page tells: runs of one trace, the rates that priced them, and policies side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitproof.cli.page.policies import PolicyRow
from hitproof.engine.trace.line_format import TraceFormat, format_of
from hitproof.engine.trace.request_trace import MAX_LINE_BYTES
from hitproof.spec.condition import text
from hitproof.spec.errors import MissingFileError, Position
from hitproof.spec.rulebook import Rulebook

__all__ = [
    "ReplayStory",
    "Run",
    "StatedRate",
    "StatedRetention",
    "runs_of",
    "stated_rates",
    "stated_retentions",
    "story_of",
]


@dataclass(frozen=True, slots=True)
class StatedRate:
    """A rate that prices were worked out with.

    Args:
        fact: The run-time fact.
        value: What it was; None where it is unknown.
        unit: Its unit.
        because: What the rulebook says of its own value, or where another value came from.
    """

    fact: str
    value: float | None
    unit: str
    because: str


@dataclass(frozen=True, slots=True)
class StatedRetention:
    """A retention rule as the page tells it.

    Args:
        name: Its id, in words.
        keep: Its condition over boundaries.
        on_device: Whether what is kept is lost once its block leaves the device.
        because: Why the rulebook has it.
    """

    name: str
    keep: str
    on_device: bool
    because: str


@dataclass(frozen=True, slots=True)
class ReplayStory:
    """Everything that a page tells; nothing in it depends on when or where the page is made.

    Args:
        trace: The trace's name.
        trace_digest: SHA-256 of its bytes, in hexadecimal.
        reports: What each replay of it found, as JSON has it; at least one.
        rates: The rates that prices rest on.
        policies: Policies side by side; may be empty.
        retentions: The retention rules that were used.
        note: What else a reader must know of the trace; may be empty.
    """

    trace: str
    trace_digest: str
    reports: Sequence[Mapping[str, Any]]
    rates: Sequence[StatedRate] = ()
    policies: Sequence[PolicyRow] = ()
    retentions: Sequence[StatedRetention] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One report, with the names that tell it from the others.

    Args:
        place: Its index among the reports.
        group: The heading that it stands under in a picture; empty where the label says it all.
        label: Its name below that heading.
        report: The figures.
    """

    place: int
    group: str
    label: str
    report: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The profile's name."""
        return str(self.report["settings"]["model"])

    @property
    def retention(self) -> str:
        """The retention's name, in words."""
        return str(self.report["settings"]["retention"]).replace("_", " ")

    @property
    def name(self) -> str:
        """Group and label in one."""
        return f"{self.group}, {self.label}" if self.group else self.label


def runs_of(reports: Sequence[Mapping[str, Any]]) -> list[Run]:
    """The reports under their shortest names: what all have in common is left out."""
    bare = [Run(place, "", "", report) for place, report in enumerate(reports)]
    models, retentions = {run.model for run in bare}, {run.retention for run in bare}
    named = []
    for run in bare:
        if len(retentions) == 1:
            group, label = "", run.model
        elif len(models) == 1:
            group, label = "", run.retention
        else:
            group, label = run.model, run.retention
        named.append(Run(run.place, group, label, run.report))
    return named


def story_of(
    trace: Path,
    rulebook: Rulebook,
    reports: Sequence[Mapping[str, Any]],
    policies: Sequence[PolicyRow] = (),
) -> ReplayStory:
    """What there is to tell about replays of one trace.

    Args:
        trace: The trace's file, which is read once more for its digest.
        rulebook: Declares the rates.
        reports: What each replay found, as JSON has it; at least one.
        policies: Policies side by side, where any were compared.

    Raises:
        HitproofError: The trace cannot be read any more.
    """
    try:
        with trace.open("rb") as stream:
            first = stream.readline(MAX_LINE_BYTES)
            stream.seek(0)
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise MissingFileError("the trace cannot be read", where=Position(str(trace)), got=error.strerror) from error
    note = _note(format_of(first.decode("utf-8-sig", "replace"), str(trace), 1))
    rates = stated_rates(rulebook, reports[0]["settings"]["rates"])
    retentions = stated_retentions(rulebook, dict.fromkeys(report["settings"]["retention"] for report in reports))
    return ReplayStory(trace.name, digest, reports, rates, policies, retentions, note)


def _note(form: TraceFormat) -> str:
    if form.units_per_token == 1:
        return ""
    return (
        f"The trace counts {form.unit} and carries no tokens: {form.units_per_token} {form.unit} are taken for one, "
        "an approximation. Its times start anew in each session."
    )


def stated_retentions(rulebook: Rulebook, used: Iterable[str]) -> tuple[StatedRetention, ...]:
    """The retention rules of these ids."""
    rules = [rulebook.policy.retention[name] for name in used]
    return tuple(
        StatedRetention(rule.id.replace("_", " "), text(rule.keep), rule.follows == "device", rule.because)
        for rule in rules
    )


def stated_rates(rulebook: Rulebook, used: Mapping[str, Any]) -> tuple[StatedRate, ...]:
    """The rates that a report rests on, with what the rulebook says of its own.

    Args:
        rulebook: Declares them.
        used: `source` and `facts`, as a report's settings have them.
    """
    own = used["source"] == "rulebook"
    return tuple(
        StatedRate(name, value, str(declared.type), declared.because if own else f"from {Path(used['source']).name}")
        for name, value in used["facts"].items()
        for declared in [rulebook.runtime[name]]
    )
