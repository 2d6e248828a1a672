"""What `hitproof soak` answers: tables, JSON, exit codes."""

from __future__ import annotations

from functools import partial

import pytest

from hitproof.cli.failure import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_GOOD
from hitproof.engine.soak import prefix, simulate, switched
from hitproof.engine.soak.ledger import KINDS
from hitproof.engine.soak.scheduler import Failure
from hitproof.engine.soak.simulate import Simulated
from tests.cli.running import run

SHORT = ("soak", "--minutes", "0.02", "--threads", "6", "--model", "gemma-3-27b")


def test_a_short_soak_is_told_as_json() -> None:
    """Leases, rows and a row for every kind of fault; nothing was wrong, so the command is content."""
    done = run(*SHORT, "--format", "json")
    assert done.code == EXIT_GOOD, done.out
    assert done.data["leases"] > 0
    assert (done.data["wrong_uses"], done.data["lost"], done.data["failures"]) == (0, 0, [])
    assert [row["kind"] for row in done.data["faults"]] == list(KINDS)


def test_a_mode_that_does_not_see_says_so() -> None:
    """As text, with one kind of fault, measured at tier crossings: what that cannot see is said."""
    done = run(*SHORT, "--verify", "tier_crossing", "--fault", "bit_flip")
    assert done.code == EXIT_GOOD
    assert "not seen with --verify tier_crossing" in done.out
    assert "wrong bytes used" in done.out


def test_processes_share_the_threads_out() -> None:
    """Two processes have run the model once each, in one report; five threads are too few for two."""
    done = run(*SHORT[:3], "--threads", "10", "--processes", "2", "--model", "gemma-3-27b", "--format", "json")
    assert done.code == EXIT_GOOD, done.out
    assert (done.data["runs"], done.data["profiles"]) == (2, ["gemma-3-27b"])
    assert run(*SHORT, "--processes", "2").code == EXIT_BAD_INPUT


def test_a_protection_switched_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row says how many uses were wrong with it and without it."""
    monkeypatch.setattr(switched, "switch_off", partial(switched.switch_off, turns=800))
    done = run("soak", "--switch-off", "lease", "--seed", "3", "--format", "json")
    assert done.code == EXIT_GOOD
    (row,) = done.data
    assert (row["protection"], row["with_it"]) == ("lease", 0)
    assert row["without_it"] > 0


def test_a_simulation_is_told() -> None:
    """One seed is played, and its log digest is shown; a second time it is the same."""
    steps = ("soak", "--simulate", "--steps", "800", "--model", "gemma-3-27b", "--format", "json")
    first, second = run(*steps), run(*steps)
    assert first.code == EXIT_GOOD
    assert first.data["gemma-3-27b"]["steps"] == 800
    assert first.data["gemma-3-27b"]["digest"] == second.data["gemma-3-27b"]["digest"]


def test_a_simulation_that_fails_tells_how_it_is_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are those of the failure, one more than were ended; what was chosen is repeated."""
    failed = Simulated(7, 41, "ab", Failure(42, "request-1", "WrongBytes: one row"), 0, 0, last=("41 request-1 @use",))
    monkeypatch.setattr(simulate, "simulate", lambda *_, **__: failed)
    monkeypatch.setattr(prefix, "shortest", lambda _, found, **__: found)
    done = run("soak", "--simulate", "--seed", "7", "--model", "gemma-3-27b", "--fault", "bit_flip")
    assert done.code == EXIT_FAILED
    assert "FAILED at step 42, request-1: WrongBytes: one row" in done.out
    again = "hitproof soak --simulate --model gemma-3-27b --seed 7 --steps 42 --verify use --fault bit_flip"
    assert again in " ".join(done.out.split())


def test_strange_names_are_refused() -> None:
    """An unknown fault, model or protection is bad input."""
    for strange in (("--fault", "gremlins"), ("--model", "no-model"), ("--switch-off", "luck")):
        assert run("soak", "--minutes", "0.01", *strange).code == EXIT_BAD_INPUT
