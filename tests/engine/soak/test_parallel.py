"""A soak in several processes is one soak: its threads are shared out, its reports added up, its processes ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest

from hitproof.engine.soak.ledger import KINDS
from hitproof.engine.soak.parallel import processes_for, soak_in_processes
from hitproof.engine.soak.report import merged, report
from hitproof.engine.soak.run import soak
from hitproof.engine.soak.stage import Settings
from hitproof.spec.errors import InternalError

_COMMAND = """
import signal, sys
from hitproof.cli.main import main
# A shell has background jobs ignore Ctrl-C, and what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""
MODELS = ("gemma-3-27b", "qwen3-next-80b-a3b")


def test_two_processes_tell_one_report() -> None:
    """Each process runs every model once; leases, rows and faults of all of them are in the one report."""
    told = soak_in_processes([Settings(profile=model) for model in MODELS], 2.0, threads=11, processes=2)
    assert told.good
    assert (told.profiles, told.runs) == (MODELS, 4)
    assert told.deaths >= 0
    assert told.leases > 0
    assert {name.partition("/")[0] for name in told.rows} == set(MODELS)
    assert [row.kind for row in told.faults] == list(KINDS)


def test_reports_are_added_up() -> None:
    """Every number of the sum is that of its parts; the time is the longest one."""
    one = report([soak(Settings(seed=4, rates={"killed_process": 0.1}), 1.0, threads=6)])
    other = report([soak(Settings(seed=5), 0.5, threads=6)])
    both = merged([one, other])
    for field in fields(both):
        first, second, total = (getattr(told, field.name) for told in (one, other, both))
        if isinstance(total, int):
            assert total == first + second, field.name
        elif isinstance(total, dict):
            assert total == {key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}}, field.name
    assert both.seconds == max(one.seconds, other.seconds)
    for first, second, total in zip(one.faults, other.faults, both.faults, strict=True):
        assert (total.injected, total.used) == (first.injected + second.injected, first.used + second.used)
        assert sum(total.caught.values()) == sum(first.caught.values()) + sum(second.caught.values())


def test_a_process_has_eight_threads_or_more() -> None:
    """Few threads stay together; no process is begun for fewer than eight, and none beyond the cores."""
    assert [processes_for(threads) for threads in (5, 15)] == [1, 1]
    assert 1 <= processes_for(16) <= 2
    assert processes_for(256) <= (os.cpu_count() or 1)


def test_a_process_that_ends_without_a_report_is_an_error() -> None:
    """What never told its report has shown nothing, whatever the others tell."""
    with pytest.raises(InternalError, match="told no report"):
        soak_in_processes([Settings(profile="gemma-3-27b", verify="never")], 30.0, 10, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_soak_leaves_nothing_behind(processes: int, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group: the command ends with 130, its processes are gone, and so are its folders."""
    options = ("soak", "--minutes", "5", "--threads", "10", "--processes", str(processes))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        (sys.executable, "-c", _COMMAND, *options), env=environment, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            until = time.monotonic() + 60
            while len(_segments(tmp_path)) < processes and time.monotonic() < until:
                time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
            told = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 130, told.decode()
    assert list(tmp_path.glob("hitproof-soak-*")) == []
    assert _is_gone(process.pid)


def _is_gone(group: int) -> bool:
    """Whether a group has no process any more; Python's own tracker of resources ends a moment later."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def _segments(folder: Path) -> list[Path]:
    """Where processes that have begun keep their segments."""
    return list(folder.glob("hitproof-soak-*/*/store/segments"))
