"""Simulated runs: one seed is one run, in any process; a planted fault is found, and its prefix plays it again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from hitproof.engine.soak.killed import Killed
from hitproof.engine.soak.prefix import shortest
from hitproof.engine.soak.simulate import Simulated, Surroundings, simulate
from hitproof.engine.store import Found, Receipt, Store
from hitproof.spec.errors import InternalError
from tests.engine.store.cases import GROUP, facts, meaning, payload


@dataclass
class Keeper:
    """A toy machine: players put, get and count; a counter is kept in two places that must agree.

    Args:
        given: What it is built on.
        torn: The planted fault: a point between the two places, so that others see them differ.
        forgets: The planted fault: the end of a run finds out that one key in so many turns was never noted.
    """

    given: Surroundings
    torn: bool = False
    forgets: int = 0
    stored: dict[str, set[bytes]] = field(default_factory=dict)
    here: int = 0
    there: int = 0
    turns: int = 0

    def __post_init__(self) -> None:
        self.players: Sequence[Putter] = [Putter(self, f"putter-{i}") for i in range(4)]
        self.store = self.open(self.given.folder)

    def open(self, folder: Path) -> Store:
        """The store of this life."""
        return Store(folder / "store", meaning(), files=self.given.disk)

    def restart(self, folder: Path) -> None:
        """Another process."""
        try:
            self.store.close()
        except Killed:
            self.given.note("closed")
        self.store = self.open(folder)
        self.here = self.there = 0

    def audit(self) -> None:
        """The two places agree."""
        if self.here != self.there:
            raise InternalError("the counts differ")

    def finish(self) -> None:
        """What is served was put."""
        if self.forgets and self.turns >= self.forgets:
            raise InternalError("a key was never noted")
        for key, known in self.stored.items():
            answer = self.store.get(key)
            if isinstance(answer, Found) and bytes(answer.payload) not in known:
                raise InternalError("bytes that nobody put")
        self.store.close()

    @property
    def counts(self) -> Mapping[str, int]:
        """Turns."""
        return {"turns": self.turns}


class Putter:
    """A player with draws of its own."""

    def __init__(self, keeper: Keeper, name: str) -> None:
        self.keeper, self.name = keeper, name
        self.draw = Random(f"{keeper.given.seed}/{name}")

    def turn(self) -> str:
        """Puts or gets, and counts."""
        keeper, at = self.keeper, self.keeper.given.at
        keeper.turns += 1
        key = f"key-{self.draw.randrange(20)}"
        at("choose")
        keeper.here += 1
        if keeper.torn and self.draw.random() < 0.01:
            at("between")
        keeper.there += 1
        if self.draw.random() < 0.8:
            return "count"
        if self.draw.random() < 0.5:
            content = payload(f"{self.name} {self.draw.random()}", self.draw.randrange(6000))
            keeper.stored.setdefault(key, set()).add(content)
            return "put" if isinstance(keeper.store.put(key, GROUP, facts(), content), Receipt) else "not put"
        answer = keeper.store.get(key)
        return "found" if isinstance(answer, Found) else answer.reason

    def reset(self) -> None:
        """Nothing is held."""


def run(seed: int, steps: int, closely: int | None = None) -> Simulated:
    """A run without a planted fault."""
    return simulate(Keeper, seed, steps, closely=closely)


def test_the_same_seed_twice_is_the_same_run_and_another_is_another() -> None:
    """Log, faults and deaths; 6,000 steps with all faults of the disk."""
    first, second, third = run(1, 6000), run(1, 6000), run(2, 6000)
    assert first.failure is None
    assert first == second
    assert first.digest != third.digest
    assert first.deaths > 3
    assert {"power_loss", "killed_process"} <= set(first.faults)


def test_audits_change_nothing() -> None:
    """A run with an audit after each step has the same log."""
    assert run(3, 2000).digest == run(3, 2000, closely=0).digest


PROCESS = """
from tests.engine.soak.test_simulate import run
print(run(5, 3000).digest)
"""


def test_another_process_with_another_order_of_hashes_plays_the_same_run() -> None:
    """Nothing of a process gets into the log: no address, no time, no order of a set."""
    digests = set()
    for hashes in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", PROCESS], env=env, capture_output=True, text=True, check=True)
        digests.add(done.stdout.strip())
    assert digests == {run(5, 3000).digest}


def test_a_planted_race_is_found_and_its_shortest_prefix_plays_it_again() -> None:
    """A counter that is torn between two points: found by an audit, then at the very step that tears it."""

    def set_up(given: Surroundings) -> Keeper:
        return Keeper(given, torn=True)

    found = next(one for seed in range(1, 6) if (one := simulate(set_up, seed, 30_000, every=50)).failure)
    least = shortest(set_up, found, every=50)
    assert found.failure is not None
    assert least.failure is not None
    steps = least.failure.step
    assert steps <= found.failure.step
    assert "the counts differ" in least.failure.error
    assert " @between" in least.last[-1]
    assert simulate(set_up, found.seed, steps, every=50).failure == least.failure
    assert simulate(set_up, found.seed, steps - 1, every=50).failure is None


def test_what_only_the_end_shows_is_sought_by_halves() -> None:
    """The shortest prefix ends with the turn that broke the promise."""

    def set_up(given: Surroundings) -> Keeper:
        return Keeper(given, forgets=100)

    found = simulate(set_up, 4, 3000)
    assert found.failure is not None
    assert found.failure.whose == "finish"
    least = shortest(set_up, found)
    assert least.failure is not None
    assert least.failure.step < 1000
    assert simulate(set_up, 4, least.failure.step - 1).failure is None


@pytest.mark.parametrize("steps", [1, 2, 999, 1000, 1001])
def test_a_run_has_as_many_steps_as_were_asked_for(steps: int) -> None:
    """Except where its last step is a death, which the next start still follows."""
    assert run(6, steps).steps in (steps, steps + 1)
