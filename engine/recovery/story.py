"""A recovery as a scenario tells it: what each repair reports, and what others change meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitproof.engine.recovery.result import Recovered
from hitproof.spec.facts import Fact, Value, admit
from hitproof.spec.repair import RepairOutcome, RepairRequest
from hitproof.spec.rulebook import Repair
from hitproof.spec.scenario import RecoveredExpectation, RecoveryTurn

__all__ = ["Story", "as_promised", "recovered_differences"]


def as_promised(repairs: Mapping[str, Repair], request: RepairRequest) -> dict[str, Value]:
    """What an honest runner measures of a repair that went well: the facts that its declaration calls measured."""
    establishes = repairs[request.repair].establishes
    return {
        fact: request.wanted[fact] for fact, how in establishes.items() if how == "measured" and fact in request.wanted
    }


class Story:
    """Plays the runner and everybody else, one told turn after the other; after them all goes well.

    Args:
        repairs: The declarations.
        turns: What is told.
        segments: Segments by id, with the facts that each may have.
    """

    def __init__(
        self,
        repairs: Mapping[str, Repair],
        turns: Sequence[RecoveryTurn],
        segments: Mapping[str, tuple[Any, Mapping[str, Fact]]],
    ) -> None:
        self._repairs, self._turns, self._segments = repairs, list(turns), segments
        self.differences: list[str] = []

    def at(self, point: str) -> None:
        """Others act before the lease is asked to confirm."""
        if point != "confirm" or not self._turns:
            return
        turn = self._turns.pop(0)
        if turn.report is not None or turn.measured:
            self.differences.append(f"recovery: no repair runs where '{turn.report or 'measured'}' is told")
        self._act(turn)

    def repair(self, request: RepairRequest) -> RepairOutcome:
        """The told outcome of the repair that runs now."""
        turn = self._turns.pop(0) if self._turns else RecoveryTurn()
        self._act(turn)
        told = {name: frozenset(value) if isinstance(value, list) else value for name, value in turn.measured.items()}
        return RepairOutcome(turn.report or "done", {**as_promised(self._repairs, request), **told})

    def _act(self, turn: RecoveryTurn) -> None:
        for path, value in turn.meanwhile.items():
            name, _, fact = path.partition(".")
            segment, facts = self._segments.get(name, (None, {}))
            if fact not in facts:
                self.differences.append(f"recovery: '{path}' is no fact of a segment")
                continue
            setattr(segment, fact, admit(facts[fact], frozenset(value) if isinstance(value, list) else value))


def recovered_differences(expect: RecoveredExpectation, got: Recovered) -> list[str]:
    """Every difference between how a recovery was to end and how it did."""
    compared = {
        "verdict": (expect.verdict, got.verdict),
        "length": (expect.length, got.usable),
        "steps": (expect.steps, [step.step for step in got.steps]),
        "counters": (expect.counters, dict(got.counters)),
        "quarantined": (expect.quarantined, [f"{one.group}/{one.option}" for one in got.quarantined]),
        "halted": (expect.halted, got.halted),
    }
    return [
        f"recovered {what}: expected {wanted}, got {had}"
        for what, (wanted, had) in compared.items()
        if wanted is not None and wanted != had
    ]
