"""The cast of a soak: requests, movers, a housekeeper and a spoiler, each of which does one operation a turn."""

from __future__ import annotations

from random import Random
from typing import Protocol

from hitproof.engine.soak.asking import Requester
from hitproof.engine.soak.moving import Housekeeper, Mover, Spoiler
from hitproof.engine.soak.stage import Stage

__all__ = ["Actor", "cast"]


class Actor(Protocol):
    """Somebody who takes turns; with threads one for every so many answers to requests, 0 for as many as it can."""

    name: str
    every: int

    def turn(self) -> str:
        """One operation on the stage's manager; answers what came of it in a word or some."""
        ...

    def reset(self) -> None:
        """The process has ended and another has begun: nothing is held any more."""
        ...

    def stop(self) -> None:
        """The run ends: give back what is held."""
        ...


def cast(stage: Stage, requesters: int = 12, movers: int = 2) -> tuple[Actor, ...]:
    """All actors of a run, each with its own source of draws."""
    seed = f"{stage.settings.seed}/{stage.settings.profile}"

    def draw(name: str) -> Random:
        return Random(f"{seed}/{name}")

    asking = [f"request-{number}" for number in range(requesters)]
    moving = [f"mover-{number}" for number in range(movers)]
    return (
        *(Requester(stage, name, draw(name)) for name in asking),
        *(Mover(stage, name, draw(name)) for name in moving),
        Housekeeper(stage, "housekeeper"),
        Spoiler(stage, "spoiler", draw("spoiler")),
    )
