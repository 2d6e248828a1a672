"""Who moves and spoils things in a soak: demotions, promotions, evictions, defragmentation, faults, deaths."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hitproof.engine.soak.stage import Stage

__all__ = ["Housekeeper", "Mover", "Spoiler"]

_MOVES = {
    "demote": 5.0,
    "store": 2.0,
    "spill": 2.0,
    "promote": 4.0,
    "evict": 1.0,
    "defragment": 4.0,
    "share": 1.0,
    "rollback": 0.3,
    "discard": 0.5,
    "work": 1.0,
}
"""How often a mover moves segments how, against each other."""

_ROLLS = 0.002


class Housekeeper:
    """Lets the manager do what nobody waits for.

    Args:
        stage: The machine.
        name: Its name.
    """

    every = 10

    def __init__(self, stage: Stage, name: str) -> None:
        self.name, self._stage = name, stage

    def turn(self) -> str:
        """One round of house-keeping."""
        with self._stage.ledger.turn() as words, self._stage.ledger.during("house-keeping"):
            done = self._stage.manager.housekeep()
            words.append(", ".join(f"{what} {count}" for what, count in sorted(done.items()) if count) or "nothing")
        return words[0]

    def reset(self) -> None:
        """Nothing is held."""

    def stop(self) -> None:
        """Nothing is held."""


class Mover:
    """Moves segments about, whoever may need them.

    Args:
        stage: The machine.
        name: Its name.
        draw: Decides what is moved where.
    """

    every = 10

    def __init__(self, stage: Stage, name: str, draw: Random) -> None:
        self.name, self._stage, self._draw = name, stage, draw

    def turn(self) -> str:
        """Move one segment."""
        stage = self._stage
        what = self._draw.choices(list(_MOVES), list(_MOVES.values()))[0]
        with stage.ledger.turn() as words, stage.ledger.during(f"{what}: measured on arrival"):
            done = self._move(what)
            words.append(f"{what} {'done' if done else 'not possible'}")
        if done:
            stage.count(f"moved: {what}")
        return words[0]

    def reset(self) -> None:
        """Nothing is held."""

    def stop(self) -> None:
        """Nothing is held."""

    def _move(self, what: str) -> bool:
        manager = self._stage.manager
        if what == "work":
            return manager.work()
        if what == "discard":
            return manager.discard_quarantined() > 0
        if what == "defragment":
            return manager.defragment(self._draw.choice(self._stage.memory.groups()))
        slot = self._any("demoted" if what in ("spill", "promote") else "")
        if slot is None:
            return False
        if what in ("demote", "store"):
            return manager.demote(slot, "host" if what == "demote" else "disk")
        if what == "rollback":
            start, end = slot.facts.start, slot.facts.end
            return bool(start is not None and end is not None and start < end) and manager.rollback(
                slot, self._draw.randrange(start, end)
            )
        return getattr(manager, what)(slot) not in (None, False)

    def _any(self, form: str) -> Any:
        """A segment that holds something."""
        core = self._stage.core
        with core.lock:
            group = self._draw.choice(list(core.recent))
            slots = [
                slot for slot in core.recent[group] if (slot.facts.form == form if form else slot.extent is not None)
            ]
        return self._draw.choice(slots) if slots else None


class Spoiler:
    """Injects faults; now and then it changes the versions that requests want, or ends the process.

    Args:
        stage: The machine.
        name: Its name.
        draw: Decides.
    """

    every = 5

    def __init__(self, stage: Stage, name: str, draw: Random) -> None:
        self.name, self._stage, self._draw = name, stage, draw

    def turn(self) -> str:
        """One fault, or none where there is no victim."""
        stage, rate = self._stage, self._stage.settings.rate
        drawn = self._draw.random()
        strikes: tuple[tuple[float, Callable[[], str]], ...] = (
            (_ROLLS, lambda: f"requests want another {stage.crowd.roll(self._draw)}"),
            (rate("killed_process"), stage.kill),
            (rate("disk_rot"), lambda: stage.rot(self._draw)),
        )
        for odds, strike in strikes:
            if drawn < odds:
                return strike()
            drawn -= odds
        return stage.injector.strike(stage.core) or "no victim"

    def reset(self) -> None:
        """Nothing is held."""

    def stop(self) -> None:
        """Nothing is held."""
