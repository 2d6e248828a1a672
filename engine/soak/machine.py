"""The stage and its cast as a machine that the deterministic scheduler plays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hitproof.engine.soak.actors import Actor, cast
from hitproof.engine.soak.simulate import SetUp, Surroundings
from hitproof.engine.soak.stage import Settings, Stage

__all__ = ["Simulation", "simulated"]

_OF_THE_DISK = frozenset({"killed_process", "disk_full", "disk_rot"})


def simulated(settings: Settings, requesters: int = 8, movers: int = 2) -> SetUp:
    """What builds the machine of one run; deaths and faults of the disk are the scheduler's and the disk's own."""
    return lambda surroundings: Simulation(settings, surroundings, requesters, movers)


class Simulation:
    """A stage with its players, on a fake clock and a simulated disk.

    Args:
        settings: What it is made of; the seed is that of the surroundings.
        surroundings: Clock, disk and points.
        requesters, movers: How many of each.
    """

    def __init__(self, settings: Settings, surroundings: Surroundings, requesters: int, movers: int) -> None:
        own = replace(settings, seed=surroundings.seed, faults=settings.faults - _OF_THE_DISK)
        self.stage = Stage(
            own,
            surroundings.folder,
            files=surroundings.disk,
            clock=surroundings.clock,
            pause=surroundings.clock.advance,
            at=surroundings.at,
        )
        surroundings.disk.faults.listen(self.stage.told)
        self.players: Sequence[Actor] = cast(self.stage, requesters, movers)

    def restart(self, folder: Path) -> None:
        """Another process begins over what the disk has kept."""
        self.stage.restart(folder)

    def audit(self) -> None:
        """What is true between any two steps."""
        self.stage.audit()

    def finish(self) -> None:
        """Give back what is held, and judge the end."""
        for player in self.players:
            player.stop()
        self.stage.finish()

    @property
    def counts(self) -> Mapping[str, int]:
        """What the stage has counted, and faults of memory and tables by kind."""
        faults = Counter(f"fault {fault.kind}" for fault in self.stage.ledger.faults)
        return dict(sorted({**self.stage.counts, **faults}.items()))
