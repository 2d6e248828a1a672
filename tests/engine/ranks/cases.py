"""Ranks over real rules: caches of one prompt that have lost different segments, and members over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hitproof.engine.ranks import RecoveringMember
from hitproof.engine.recovery import Recovered
from hitproof.engine.recovery.story import as_promised
from hitproof.engine.state import Resolved
from hitproof.spec.repair import RepairOutcome, RepairRequest
from tests.engine.state_cases import Build, build_of

LENGTH, UNIT = 97, 16


@dataclass
class Cache:
    """One rank's segments of one prompt.

    Args:
        build: The segments, and what they are asked with.
        runs: The repairs that ran.
        fails: Repairs that fail.
        meanwhile: Called before each repair.
    """

    build: Build
    runs: list[RepairRequest] = field(default_factory=list)
    fails: Sequence[str] = ()
    meanwhile: Callable[[], None] = lambda: None
    refuses: bool = False

    def look(self, prompt: str) -> Resolved:
        return self.build.state()

    def repair(self, request: RepairRequest) -> RepairOutcome:
        self.meanwhile()
        self.runs.append(request)
        if request.repair in self.fails:
            return RepairOutcome("failed", {})
        return RepairOutcome("done", as_promised(self.build.engine.bound.rulebook.repairs, request))

    def publish(self, recovered: Recovered) -> bool:
        """Put the copies where the originals were, with their pins and a new epoch."""
        if self.refuses:
            return False
        for (group, place), copy in recovered.copies.items():
            held = self.build.pieces[group]
            if place < 0:
                held.append(copy)
                continue
            for fact, value in copy.as_dict().items():
                if fact != "pins":
                    setattr(held[place], fact, value)
            held[place].epoch += 1
        return True

    def member(self) -> RecoveringMember[str]:
        """The rank over this cache."""
        return RecoveringMember(self.build.engine, self.look, lambda prompt: prompt, self.repair, self.publish)

    @property
    def pins(self) -> set[int]:
        """Pins of all segments."""
        return {piece.pins for pieces in self.build.pieces.values() for piece in pieces}


def stored(*ends: int) -> Cache:
    """Attention over the whole prompt, and states at these lengths only; everything else was evicted."""
    build = build_of("stored", LENGTH, UNIT)
    build.runtime.prefill_us_per_token = 4000.0
    build.segment("kv", marks=frozenset({16, 32, 48, 64, 80, 96}))
    for group in ("rec", "other"):
        for end in ends:
            build.segment(group, end=end, matched=LENGTH - 1)
    return Cache(build)


def pooled(**index: object) -> Cache:
    """Entries, an index over them with these facts, a compressor state, and kept inputs."""
    build = build_of("pooled", 65, 8)
    build.runtime.prefill_us_per_token = 4000.0
    for group in build.bound.groups:
        if group.id != "manifest":
            build.segment(group.id, **(index if group.id == "index" else {}))
    return Cache(build)
