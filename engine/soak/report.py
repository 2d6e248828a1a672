"""What a soak tells: leases, rows, and for each kind of fault who noticed it and how it went on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hitproof.engine.soak.ledger import KINDS
from hitproof.engine.soak.run import Ended
from hitproof.engine.soak.stage import Stage

__all__ = ["FaultRow", "SoakReport", "merged", "report"]

UNSEEN = {
    "use": "what changes on the device after the measurement of a use, while it is read",
    "sampled": "what changes on the device after a segment's last measurement, at all uses but one in so many",
    "tier_crossing": "what changes on the device after a segment's commit or its last crossing of tiers",
}
"""What each mode cannot see, by the definition of the mode."""


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One kind of fault in a run.

    Args:
        kind: One of `KINDS`.
        injected: How often.
        caught: How often somebody noticed it, by who did.
        recovered: How the turns went on in which it was noticed.
        unread: How often nobody could notice it, by why: the rows were given up, overwritten, or never asked for.
        used: How often wrong bytes of it were used.
    """

    kind: str
    injected: int
    caught: Mapping[str, int]
    recovered: Mapping[str, int]
    unread: Mapping[str, int]
    used: int


@dataclass(frozen=True, slots=True)
class SoakReport:
    """A whole soak, over one profile or several, in one process or several.

    Args:
        verify: When bytes were measured.
        profiles: Models.
        runs: Runs of one profile each.
        seconds: Time, of processes that ran beside one another the longest.
        turns: Operations.
        leases: Confirmed leases whose every read row was compared with the truth.
        measured: Segments that the manager measured at a use.
        rows: Rows that were compared, by profile and group.
        lives: Simulated processes; in each run one more than were killed.
        reported: Segments that the disk reported stored.
        lost: Of these, those that were gone or other bytes without a fault.
        wrong_uses: Uses that read wrong bytes.
        missing_uses: Uses that found no rows where some are read.
        unexplained: Groups in which rows were wrong and no fault had hit them that the mode cannot see.
        verdicts: Answers.
        waits: Why requests were deferred or refused, and why writers had no room.
        faults: By kind.
        unseen: What the mode cannot see.
        failures: What ended a run early.
    """

    verify: str
    profiles: tuple[str, ...]
    runs: int
    seconds: float
    turns: int
    leases: int
    measured: int
    rows: Mapping[str, int]
    lives: int
    reported: int
    lost: int
    wrong_uses: int
    missing_uses: int
    unexplained: int
    verdicts: Mapping[str, int]
    waits: Mapping[str, int]
    faults: tuple[FaultRow, ...]
    unseen: str
    failures: tuple[str, ...]

    @property
    def deaths(self) -> int:
        """How often a process was killed."""
        return self.lives - self.runs

    @property
    def good(self) -> bool:
        """Whether nothing failed, nothing was lost, and no wrong byte was used that the mode promises to see."""
        wrong = self.wrong_uses if self.verify == "use" else self.unexplained
        return not (self.failures or self.lost or wrong or self.missing_uses)


def report(ended: Iterable[Ended]) -> SoakReport:
    """Sum up the runs of a soak."""
    runs = list(ended)
    stages = [run.stage for run in runs]
    counts: Counter[str] = Counter()
    for stage in stages:
        counts.update(stage.counts)
    verify = stages[0].settings.verify
    return SoakReport(
        verify=verify,
        profiles=tuple(stage.settings.profile for stage in stages),
        runs=len(runs),
        seconds=sum(run.seconds for run in runs),
        turns=sum(run.turns for run in runs),
        leases=counts["leases confirmed"],
        measured=sum(stage.measured for stage in stages),
        rows={
            f"{stage.settings.profile}/{group}": count
            for stage in stages
            for group, count in sorted(stage.judge.rows.items())
        },
        lives=sum(stage.lives for stage in stages),
        reported=sum(stage.promised.reported for stage in stages),
        lost=sum(stage.promised.lost for stage in stages),
        wrong_uses=sum(stage.judge.wrong_uses for stage in stages),
        missing_uses=sum(stage.judge.missing_uses for stage in stages),
        unexplained=counts["wrong without a fault"],
        verdicts=_of(counts, "verdict "),
        waits={what: count for what, count in sorted(counts.items()) if what.startswith(_WAITS)},
        faults=tuple(_row(kind, stages) for kind in KINDS),
        unseen=UNSEEN[verify],
        failures=tuple(f"{run.stage.settings.profile}: {run.failure}" for run in runs if run.failure),
    )


def merged(reports: Iterable[SoakReport]) -> SoakReport:
    """One report of soaks that ran beside one another, all measured alike."""
    told = list(reports)
    return SoakReport(
        verify=told[0].verify,
        profiles=tuple(dict.fromkeys(profile for one in told for profile in one.profiles)),
        runs=sum(one.runs for one in told),
        seconds=max(one.seconds for one in told),
        turns=sum(one.turns for one in told),
        leases=sum(one.leases for one in told),
        measured=sum(one.measured for one in told),
        rows=_summed(one.rows for one in told),
        lives=sum(one.lives for one in told),
        reported=sum(one.reported for one in told),
        lost=sum(one.lost for one in told),
        wrong_uses=sum(one.wrong_uses for one in told),
        missing_uses=sum(one.missing_uses for one in told),
        unexplained=sum(one.unexplained for one in told),
        verdicts=dict(sorted(_summed(one.verdicts for one in told).items())),
        waits=dict(sorted(_summed(one.waits for one in told).items())),
        faults=tuple(_same_kind(rows) for rows in zip(*(one.faults for one in told), strict=True)),
        unseen=told[0].unseen,
        failures=tuple(failure for one in told for failure in one.failures),
    )


def _same_kind(rows: Sequence[FaultRow]) -> FaultRow:
    return FaultRow(
        rows[0].kind,
        sum(row.injected for row in rows),
        _ordered(_summed(row.caught for row in rows)),
        _ordered(_summed(row.recovered for row in rows)),
        _ordered(_summed(row.unread for row in rows)),
        sum(row.used for row in rows),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by name, in the order of their first mention."""
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


_WAITS = ("defer: ", "refuse: ", "not written: ")


def _of(counts: Counter[str], start: str) -> dict[str, int]:
    return {what[len(start) :]: count for what, count in sorted(counts.items()) if what.startswith(start)}


def _row(kind: str, stages: Iterable[Stage]) -> FaultRow:
    faults = [fault for stage in stages for fault in stage.ledger.faults if fault.kind == kind]
    return FaultRow(
        kind,
        len(faults),
        _ordered(Counter(fault.caught for fault in faults if fault.caught)),
        _ordered(Counter(fault.recovered for fault in faults if fault.recovered)),
        _ordered(Counter(fault.void for fault in faults if not fault.caught and not fault.used and fault.void)),
        sum(fault.used for fault in faults),
    )


def _ordered(counter: Mapping[str, int]) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
