"""A soak in one thread: whose turn it is is drawn, so that a seed gives the same turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random

from hitproof.engine.soak.actors import cast
from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.stage import Settings, Stage

__all__ = ["play"]

_AUDITED = 250


def play(
    settings: Settings,
    turns: int,
    folder: Path,
    *,
    requesters: int = 6,
    until: Callable[[Stage], bool] = lambda _: False,
) -> Stage:
    """Let actors take turns one after the other, with requests held from turn to turn.

    Args:
        settings: What the machine is made of.
        turns: How many at most.
        folder: Where the disk tier lies; it exists.
        requesters: Actors that ask.
        until: Asked after each turn; the first true answer ends the run.

    Returns:
        The machine at the end.

    Raises:
        InternalError: Something does not add up; wrong bytes and lost segments too, where the settings are strict.
    """
    stage = Stage(settings, folder)
    actors = cast(stage, requesters)
    draw = Random(f"{settings.seed}/{settings.profile}/turns")
    for turn in range(turns):
        with contextlib.suppress(Killed):
            draw.choice(actors).turn()
        if stage.dying:
            for actor in actors:
                actor.reset()
            stage.restart()
        if until(stage):
            break
        if turn % _AUDITED == 0 and settings.strict:
            stage.audit()
    for actor in actors:
        actor.stop()
    if settings.strict:
        stage.finish()
    stage.close()
    return stage
