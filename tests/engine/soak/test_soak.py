"""Soaks find no wrong byte in the manager as it is, and find what is planted."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest

from hitproof.engine.cache.hold import Hold
from hitproof.engine.soak import run as runner
from hitproof.engine.soak.asking import Requester
from hitproof.engine.soak.judge import WrongBytes
from hitproof.engine.soak.ledger import KINDS
from hitproof.engine.soak.play import play
from hitproof.engine.soak.report import report
from hitproof.engine.soak.run import soak
from hitproof.engine.soak.stage import Settings, Stage

PROFILES = ("deepseek-v4-flash", "gemma-3-27b", "qwen3-next-80b-a3b")


@pytest.mark.parametrize("profile", PROFILES)
def test_no_wrong_byte_is_used_while_everything_fails(profile: str, tmp_path: Path) -> None:
    """All kinds of faults, often; every read row is the true one, and the manager adds up in the end."""
    often = {"killed_process": 0.1, "lost_write": 0.01, "wrong_object": 0.01}
    stage = play(Settings(seed=7, profile=profile, rates=often), 400, tmp_path)
    assert stage.judge.uses > 50
    assert stage.lives > 1
    assert {fault.kind for fault in stage.ledger.faults} >= {"bit_flip", "stale_table", "killed_process", "lost_write"}


def test_every_group_is_read(tmp_path: Path) -> None:
    """Rows of each group that a query reads are compared with the truth."""
    stage = play(Settings(seed=3, profile="deepseek-v4-flash", faults=frozenset()), 300, tmp_path)
    read = {"csa_entries", "csa_index", "csa_index_state", "csa_state", "hca_entries", "hca_state", "window"}
    assert {group for group, rows in stage.judge.rows.items() if rows} == read


def test_a_confirmation_that_asks_nothing_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the last check, spoiled rows are read, and the judge says so."""
    monkeypatch.setattr(Hold, "confirm", lambda self: True)
    with pytest.raises(WrongBytes):
        play(Settings(seed=7), 3000, tmp_path)


def test_threads_soak_and_die_and_go_on(tmp_path: Path) -> None:
    """Actors in threads, with deaths in between, until the time is up; nothing is wrong and nothing is lost."""
    settings = Settings(seed=5, prompts=6.0, rates={"killed_process": 0.1})
    ended = soak(settings, 2.0, threads=7, folder=tmp_path)
    told = report([ended])
    assert ended.failure == ""
    assert told.good
    assert told.leases > 0
    assert told.lives > 1
    assert {row.kind for row in told.faults} == set(KINDS)


def test_a_standstill_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where nobody ends a turn any more, the run ends and shows where everybody stands."""
    let_go = threading.Event()

    def stand_still(self: Requester) -> str:
        let_go.wait(30)
        return ""

    monkeypatch.setattr(runner, "STANDSTILL_S", 0.3)
    monkeypatch.setattr(runner, "cast", lambda stage, requesters: (Requester(stage, "request-0", Random(1)),))
    monkeypatch.setattr(Requester, "turn", stand_still)
    ended = soak(Settings(), 20.0, folder=tmp_path)
    let_go.set()
    assert "nobody has ended a turn" in ended.failure
    assert "stand_still" in ended.failure


def test_a_fault_of_an_actor_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An exception in one thread is the failure of the run, and no other thread goes on."""

    def fail(self: Requester) -> str:
        raise RuntimeError("planted")

    monkeypatch.setattr(Requester, "turn", fail)
    assert "planted" in soak(Settings(), 20.0, threads=5, folder=tmp_path).failure


def test_a_mode_that_does_not_see_is_told(tmp_path: Path) -> None:
    """Bits that turn on the device after the commit are used where bytes are measured at tier crossings alone."""
    flips = Settings(seed=2, verify="tier_crossing", strict=False, faults=frozenset({"bit_flip"}))
    blind = play(flips, 1500, tmp_path, until=lambda stage: stage.judge.wrong_uses > 0)
    assert blind.judge.wrong_uses > 0
    assert any(fault.used for fault in blind.ledger.faults)


def test_a_run_is_told_whole(tmp_path: Path) -> None:
    """Every injected fault is in the table: noticed, unread, or used."""
    stage = Stage(Settings(seed=4), tmp_path)
    stage.close()
    ended = soak(Settings(seed=4), 1.0, threads=6)
    for row in report([ended]).faults:
        assert sum(row.caught.values()) + sum(row.unread.values()) + row.used >= row.injected
