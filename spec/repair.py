"""The protocol between the engine, which plans repairs, and whoever runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hitproof.spec.facts import Value
from hitproof.spec.memory import Extent

__all__ = ["ComputeRepair", "RepairJob", "RepairOutcome", "RepairRequest", "RepairRunner", "RunRepair", "Source"]


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


@dataclass(frozen=True, slots=True)
class Source:
    """Rows that a repair may read.

    Args:
        facts: What is known of their segment.
        extent: Where they lie; of a record without bytes an extent without blocks.
    """

    facts: Mapping[str, Value]
    extent: Extent


@dataclass(frozen=True, slots=True)
class RepairJob:
    """A repair that computes, with the rows that it reads and the private copy that it writes.

    Args:
        request: The step of the plan.
        tokens: The prompt's tokens.
        facts: Facts of the request, by name.
        own: The segment's own rows; None where none lie on the device.
        target: Where to write, rows of `request.wanted`; of a record an extent without blocks.
        held: All that was looked up, by group in token order, what earlier steps of the plan have made in its place.
        peers: Role of a peer to its group.
    """

    request: RepairRequest
    tokens: Sequence[int]
    facts: Mapping[str, Value]
    own: Source | None
    target: Extent
    held: Mapping[str, tuple[Source, ...]]
    peers: Mapping[str, str]


ComputeRepair = Callable[[RepairJob], RepairOutcome]
"""Runs a repair that computes: it writes the target and nothing else. Address and fingerprint are measured by whoever
asked. Of what it answers as measured, facts about the span that it has written count, and `recorded`: the fingerprint
of what it meant to write. Without that nothing vouches for a write that was lost on its way.
"""


class RepairRunner(Protocol):
    """Runs repairs of one name into private copies; publishing is the caller's business."""

    name: str

    def run(self, request: RepairRequest) -> RepairOutcome:
        """Run one repair.

        A repair that cannot be done is an outcome with status `failed`, never an exception.
        """
        ...
