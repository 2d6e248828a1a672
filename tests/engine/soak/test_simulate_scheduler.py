"""The scheduler with actors that are nothing but their turns: order, replays, failures, and who is left waiting."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from hitproof.engine.soak import scheduler as module
from hitproof.engine.soak.journal import Journal
from hitproof.engine.soak.killed import Killed, Over
from hitproof.engine.soak.scheduler import Ending, Scheduler


@dataclass
class Toy:
    """An actor whose turn is a function of its name."""

    name: str
    act: Callable[[str], object]

    def turn(self) -> str:
        """Calls the function."""
        return str(self.act(self.name))


def scheduler(
    seed: int, limit: int, tick: Callable[[], object] = lambda: None, kill: Callable[[], bool] = lambda: False
) -> tuple[Scheduler, Journal]:
    """A scheduler with its journal."""
    journal = Journal()
    return Scheduler(Random(seed), journal, limit, tick, kill), journal


def counting(seed: int, limit: int, count: int = 4) -> tuple[str, Counter[str], Ending]:
    """Actors that pass two points a turn and count them."""
    made, journal = scheduler(seed, limit)
    turns: Counter[str] = Counter()

    def turn(name: str) -> str:
        made.at("one")
        turns[name] += 1
        made.at("two")
        return name

    ending = made.run([Toy(f"a{i}", turn) for i in range(count)])
    assert journal.steps == limit
    return journal.digest, turns, ending


def test_the_same_seed_gives_the_same_log_and_another_gives_another() -> None:
    """The digest covers every step; threads of the system have no say."""
    assert counting(1, 3000)[:2] == counting(1, 3000)[:2]
    assert counting(1, 3000)[0] != counting(2, 3000)[0]


def test_a_prefix_is_a_prefix() -> None:
    """The steps of a shorter run are the first ones of a longer run."""
    lines: list[list[str]] = [[], []]
    for into, limit in zip(lines, (200, 500), strict=True):
        journal = Journal(into.append)
        made = Scheduler(Random(5), journal, limit, lambda: None, lambda: False)

        def turn(name: str, made: Scheduler = made) -> str:
            made.at("x")
            return name

        made.run([Toy(name, turn) for name in "abc"])
    assert lines[0] == lines[1][:200]


def test_everybody_gets_on() -> None:
    """No actor starves for the whole of a run, and some are let run alone for a while."""
    _, turns, ending = counting(3, 30_000, count=8)
    assert len(turns) == 8
    assert ending == Ending("over")


def test_one_runs_at_a_time_and_only_points_let_others_in() -> None:
    """A read and a write with no point between them are never torn apart; with one they are, for some seed."""

    def lost(seed: int, torn: bool) -> bool:
        made, journal = scheduler(seed, 400)
        value = done = 0

        def turn(name: str) -> str:
            nonlocal value, done
            read = value
            if torn:
                made.at("between")
            value = read + 1
            done += 1
            return name

        made.run([Toy(name, turn) for name in "abcd"])
        assert journal.steps == 400
        return value != done

    assert not any(lost(seed, torn=False) for seed in range(20))
    assert any(lost(seed, torn=True) for seed in range(20))


def test_a_failure_stops_everybody_and_says_after_how_many_steps() -> None:
    """A run of one step less does not fail."""

    def play(limit: int) -> Ending:
        made, journal = scheduler(9, limit)

        def turn(name: str) -> str:
            if journal.steps == 77:
                raise ValueError("broken")
            return name

        return made.run([Toy(name, turn) for name in "abc"])

    failure = play(1000).failure
    assert failure is not None
    assert (failure.step, failure.error) == (78, "ValueError: broken")
    assert play(failure.step).failure == failure
    assert play(failure.step - 1) == Ending("over")


def test_an_audit_that_finds_something_ends_the_run() -> None:
    """What the audit raises is the failure of the step before it."""
    steps = 0

    def tick() -> None:
        nonlocal steps
        steps += 1
        if steps == 50:
            raise ValueError("it does not add up")

    made, _ = scheduler(1, 1000, tick)
    failure = made.run([Toy(name, str) for name in "ab"]).failure
    assert failure is not None
    assert (failure.step, failure.whose) == (50, "audit")


@pytest.mark.parametrize("by_an_actor", [False, True])
def test_a_kill_unwinds_everybody_before_the_run_returns(by_an_actor: bool) -> None:
    """Every actor's clean-up runs, points within it raise again, and a second life may follow."""
    died = False

    def kill() -> bool:
        return died and not by_an_actor

    made, journal = scheduler(4, 10_000, kill=kill)
    unwound: list[str] = []
    again: list[type[BaseException]] = []

    def turn(name: str) -> str:
        nonlocal died
        try:
            made.at("in")
            if journal.steps > 60 and not died:
                died = True
                if by_an_actor:
                    made.killed()
                    raise Killed
            made.at("out")
        except (Killed, Over):
            try:
                made.at("cleaning up")
            except BaseException as error:
                again.append(type(error))
            unwound.append(name)
            raise
        return name

    players: Sequence[Toy] = [Toy(name, turn) for name in "abc"]
    before = threading.active_count()
    assert made.run(players) == Ending("killed")
    assert set(again) <= {Killed}
    assert len(unwound) >= 1
    steps = journal.steps
    died, by_an_actor = True, True
    assert made.run(players) == Ending("over")
    assert journal.steps == 10_000 > steps
    assert threading.active_count() <= before + 6


def test_who_waits_for_another_outside_of_the_points_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is held over a point stops the whole run; it ends with the place where somebody waits."""
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    made, _ = scheduler(2, 100_000)
    lock = threading.Lock()

    def turn(name: str) -> str:
        with lock:
            made.at("with the lock")
        return name

    failure = made.run([Toy(name, turn) for name in "ab"]).failure
    assert failure is not None
    assert failure.error.startswith("stuck")
    assert "with lock" in failure.trace


def test_at_the_end_everybody_ends_a_turn_without_others_coming_in_between() -> None:
    """Nobody is unwound in the middle, so nothing is left half done."""
    made, journal = scheduler(6, 500)
    under_way: set[str] = set()

    def turn(name: str) -> str:
        under_way.add(name)
        for point in ("one", "two", "three"):
            made.at(point)
        under_way.remove(name)
        return name

    assert made.run([Toy(name, turn) for name in "abcdef"]) == Ending("over")
    assert journal.steps == 500
    assert not under_way


def test_a_point_outside_of_a_run_is_nothing() -> None:
    """The machine is built, restarted and finished by no actor."""
    made, journal = scheduler(1, 10)
    made.at("nowhere")
    assert journal.steps == 0
