"""The cache manager under the scheduler: all faults and nothing wrong, one log a seed, and a planted fault found."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hitproof.engine.cache.hold import Hold
from hitproof.engine.soak.ledger import Ledger
from hitproof.engine.soak.machine import simulated
from hitproof.engine.soak.prefix import shortest
from hitproof.engine.soak.simulate import SetUp, Simulated, simulate
from hitproof.engine.soak.stage import Settings
from hitproof.spec.memory import Fence

PROFILES = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")


def run(seed: int, steps: int, profile: str = "gemma-3-27b") -> Simulated:
    """A run with all faults."""
    return simulate(simulated(Settings(seed=seed, profile=profile)), seed, steps)


def crowded(seed: int) -> SetUp:
    """Many requests in little room, and no faults of memory, so that only the manager itself can be wrong."""
    return simulated(Settings(seed=seed, faults=frozenset(), prompts=2.0, talks=8, longest=160))


def quiet(seed: int, steps: int) -> Simulated:
    """Such a run, with no faults of the disk either."""
    return simulate(crowded(seed), seed, steps, rates={})


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_wrong_is_used_and_nothing_stored_is_lost(profile: str) -> None:
    """Some thousand steps with every fault; a wrong byte, a lost segment, a count that does not add up is a failure."""
    done = run(11, 4000, profile)
    assert done.failure is None, done.failure.trace
    assert done.steps >= 4000


def test_the_same_seed_is_the_same_run_in_any_process() -> None:
    """Log and faults are equal in another process, whose sets and dictionaries are ordered otherwise."""
    here = run(12, 2500)
    text = "from tests.engine.soak.test_simulate_manager import run\nprint(run(12, 2500).digest)"
    env = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)}
    there = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, check=True)
    assert here.digest == there.stdout.strip()


def test_a_release_that_does_not_wait_for_the_device_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault that only some order of steps shows; its prefix plays it again, and one step less does not."""
    honest = Hold.release

    def hasty(self: Hold, fence: Fence | None = None) -> None:
        honest(self)

    assert quiet(1, 1000).failure is None
    monkeypatch.setattr(Hold, "release", hasty)
    found = next(one for seed in range(1, 9) if (one := quiet(seed, 1000)).failure)
    least = shortest(crowded(found.seed), found, rates={})
    assert least.failure is not None
    assert "WrongBytes" in least.failure.error
    again = quiet(found.seed, least.failure.step)
    assert (again.failure, again.digest) == (least.failure, least.digest)
    assert quiet(found.seed, least.failure.step - 1).failure is None


def test_a_reader_of_a_dead_process_takes_nothing_off_the_next_ones() -> None:
    """Its end may come at any time, when its memory is collected; blocks that are read now stay spared."""
    ledger = Ledger(lambda group, block: 0)
    dead, alive = ledger.reading([("full", 1)]), ledger.reading([("full", 1)])
    dead.__enter__()
    ledger.memory_is_gone()
    assert not ledger.spared([("full", 1)])
    alive.__enter__()
    dead.__exit__(None, None, None)
    assert ledger.spared([("full", 1)])
    alive.__exit__(None, None, None)
    assert not ledger.spared([("full", 1)])
