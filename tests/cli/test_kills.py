"""What `hitproof soak --kills` tells, and its exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitproof.cli.failure import EXIT_FAILED, EXIT_GOOD
from hitproof.cli.kills import run_kills
from hitproof.cli.options import Format
from hitproof.engine.soak import kills
from hitproof.engine.soak.kills import Kills


def made(*faults: str) -> Kills:
    """What three kills have shown, with faults or without."""
    return Kills(3, 1, {"put": 2, "between": 1}, {"put: rename": 2, "between: -": 1}, {"stored": 7}, faults, 1.5)


def test_json_tells_what_kills_have_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Two real kills: every kill has its place, and the command is content."""
    assert run_kills(2, 1, Format.json) == EXIT_GOOD
    told = json.loads(capsys.readouterr().out)
    assert (told["kills"], sum(told["at"].values()), told["faults"]) == (2, 2, [])


@pytest.mark.parametrize(
    ("faults", "code", "word"),
    [((), EXIT_GOOD, "nothing deleted is back"), (("key1 is lost",), EXIT_FAILED, "FAULT: key1 is lost")],
)
def test_a_fault_is_told_and_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], faults: tuple[str, ...], code: int, word: str
) -> None:
    """The text says where kills fell, and every fault; without any it says what held."""

    def answered(*_: object, **__: Any) -> Kills:
        return made(*faults)

    monkeypatch.setattr(kills, "kill_writers", answered)
    assert run_kills(3, 1, Format.text) == code
    out = capsys.readouterr().out
    assert "3 kills in 2 s: 2 inside a call, 1 before the writer's first receipt" in out
    assert "rename" in out
    assert word in out
    assert ("nothing deleted is back" in out) == (not faults)
