"""The machine of a soak under the scheduler: the simulated disk, the fake clock, and deaths that the run decides."""

from __future__ import annotations

from collections.abc import Sequence

from hitproof.engine.soak.actors import Actor, cast
from hitproof.engine.soak.simulate import SetUp, Surroundings
from hitproof.engine.soak.stage import Settings, Stage

__all__ = ["SimulatedStage", "machine"]


class SimulatedStage(Stage):
    """A stage whose time, disk and switches are the run's.

    Args:
        settings: What it is made of.
        given: What it is built on.
    """

    def __init__(self, settings: Settings, given: Surroundings) -> None:
        self._kill = given.kill
        super().__init__(
            settings, given.folder, files=given.disk, clock=given.clock, pause=given.clock.advance, at=given.at
        )
        given.disk.faults.listen(self.told)
        self.players: Sequence[Actor] = cast(self)

    def kill(self) -> str:
        """The process ends at once; what the disk keeps is the run's to decide."""
        self.ledger.inject("killed_process")
        self._kill()
        return "the process is killed"

    def audit(self) -> None:
        """What is true between any two steps, with others under way."""
        self.manager.check_integrity(quiet=False)

    def finish(self) -> None:
        """Gives back what is still held, and looks whether everything adds up."""
        for player in self.players:
            player.stop()
        super().finish()


def machine(settings: Settings) -> SetUp:
    """What builds the machine of a run."""
    return lambda given: SimulatedStage(settings, given)
