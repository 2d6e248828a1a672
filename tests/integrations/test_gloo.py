"""Ranks as two processes over gloo: one length from different evictions; a rank that is killed, fails or is late."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import LINKS, ROOT

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

SCRIPT = Path(__file__).parent / "gloo_rank.py"
SECONDS = 120


class Rank:
    """A rank's process, and what it says."""

    def __init__(self, part: str, rank: int, store: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(LINKS.parent), str(ROOT)]),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        command = [sys.executable, str(SCRIPT), part, str(rank), str(store)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    def hear(self) -> dict[str, Any]:
        """The next thing that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.end()
        said: dict[str, Any] = json.loads(line)
        return said

    def end(self) -> str:
        """Wait for the process, and answer what it complained about."""
        return self.process.communicate(timeout=SECONDS)[1]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts both ranks of a part; whatever becomes of the test, none is left running."""
    with ExitStack() as stack:

        def ranks(part: str) -> list[Rank]:
            both = [Rank(part, rank, tmp_path / part) for rank in range(2)]
            for one in both:
                stack.enter_context(one.process)
                stack.callback(one.process.kill)
            assert [{"ready": True}] * 2 == [one.hear() for one in both]
            return both

        yield ranks


def test_two_processes_agree_and_stay_in_step(start: Any) -> None:
    """Different evictions give one length; a rank that raises aborts one turn; a launch that failed is told."""
    ranks = start("agreeing")
    first = [one.hear() for one in ranks]
    wanted = {"go": True, "length": 128, "used": True, "finished": True, "pins": [0]}
    assert [wanted] * 2 == [{name: one[name] for name in wanted} for one in first]
    assert first[0]["record"] == first[1]["record"]
    whole, failed = [one.hear() for one in ranks]
    assert (False, [1], [0], True) == (whole["go"], whole["ranks"], whole["pins"], whole["alive"])
    assert {"raised": True, "pins": [0], "alive": True} == failed
    third = [one.hear() for one in ranks]
    assert [(True, 64, False)] * 2 == [(one["go"], one["length"], one["finished"]) for one in third]
    assert [("", 0), ("", 0)] == [(one.end(), one.process.returncode) for one in ranks]


def test_a_rank_killed_in_prepare_aborts_the_other(start: Any) -> None:
    """The survivor gives everything back as soon as the connection is lost, and hears nobody afterwards."""
    survivor, victim = start("dying")
    assert {"preparing": True} == victim.hear()
    victim.process.kill()
    first, second = survivor.hear(), survivor.hear()
    assert (False, 0, [0], False) == (first["go"], first["length"], first["pins"], first["alive"])
    assert "said nothing in the exchange 'vote'" in first["why"]
    assert (False, [0]) == (second["go"], second["pins"])
    survivor.end()
    assert 0 == survivor.process.returncode


def test_a_late_rank_is_not_waited_for_and_does_not_use_alone(start: Any) -> None:
    """One rank gives up in time; the other gets no go, although it may have heard a yes."""
    ranks = start("late")
    for one in ranks:
        said = one.hear()
        assert (False, 0, [0], False) == (said["go"], said["length"], said["pins"], said["alive"])
