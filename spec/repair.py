"""The protocol between the engine, which plans repairs, and whoever runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from hitproof.spec.facts import Value

__all__ = ["RepairOutcome", "RepairRequest", "RepairRunner", "RunRepair"]


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """One step of a plan, with all that its runner may read.

    Args:
        repair: Name of the declared repair.
        group: Group id; `segment` is the index of its piece.
        length: Length of the decision, in tokens; `first` and `to` the tokens that must be there afterwards.
        facts: The segment's facts before.
        wanted: Facts that the rule promises to hold afterwards.
        sources: Facts of every peer that is consumed, by role.
    """

    repair: str
    group: str
    segment: int
    length: int
    first: int
    to: int
    facts: Mapping[str, Value]
    wanted: Mapping[str, Value]
    sources: Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """What came of it: facts measured on the bytes, never merely expected.

    Args:
        status: `done`; `failed`: the private copy is not to be trusted; `source_lost`: what the repair reads was not
            there any more, and nothing was written; `transfer_failed`: a copy between tiers broke off and may be tried
            again. What follows is the rulebook's `recovering` to say.
        measured: Facts read off the new bytes.
        detail: Why it failed.
        seconds: Time taken.
    """

    status: Literal["done", "failed", "source_lost", "transfer_failed"]
    measured: Mapping[str, Value]
    detail: str = ""
    seconds: float = 0.0


RunRepair = Callable[[RepairRequest], RepairOutcome]
"""Runs any repair of a plan; whoever has a runner for each name looks it up by the request's `repair`."""


class RepairRunner(Protocol):
    """Runs repairs of one name into private copies; publishing is the caller's business."""

    name: str

    def run(self, request: RepairRequest) -> RepairOutcome:
        """Run one repair.

        A repair that cannot be done is an outcome with status `failed`, never an exception.
        """
        ...
