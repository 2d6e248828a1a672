"""Writers are killed at random moments; whatever they reported is there afterwards, whole."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from hitproof.engine.store import Found
from tests.architecture.source_tree import LINKS, ROOT
from tests.engine.store import killed_writer
from tests.engine.store.cases import opened

ROUNDS = 40
SECONDS = 10.0


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that forks writers on the store `tmp_path`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(LINKS.parent), str(ROOT)])}
    command = [sys.executable, str(Path(killed_writer.__file__)), str(tmp_path / "store")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        process.kill()


def lines_until_killed(process: subprocess.Popen[str], seed: int, delay: float) -> list[list[str]]:
    """Starts a writer, kills it a while after its first report, and answers all that it said."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{seed}\n")
    process.stdin.flush()
    said: list[list[str]] = []
    writer: int | None = None
    for line in process.stdout:
        what, key, digest = line.split()
        if what == "writer":
            writer = int(key)
        elif what == "ended":
            return said
        else:
            said.append([what, key, digest])
        if writer is not None and said:
            time.sleep(delay)
            os.kill(writer, signal.SIGKILL)
            writer = None
    raise AssertionError("the process that forks writers has ended")


def test_killed_writers_lose_nothing_that_they_reported(tmp_path: Path, writers: subprocess.Popen[str]) -> None:
    """Many rounds on one store: each key has its last reported content, or that of the call that was cut."""
    draw = Random()
    reported: dict[str, str] = {}
    calls, begun, rounds = 0, time.monotonic(), 0
    while rounds < ROUNDS and time.monotonic() - begun < SECONDS:
        rounds += 1
        allowed = {key: {digest} for key, digest in reported.items()}
        for what, key, digest in lines_until_killed(writers, rounds, draw.uniform(0, 0.08)):
            calls += what == "done"
            allowed[key] = {digest} if what == "done" else {*allowed.get(key, {"-"}), digest}
        with opened(tmp_path / "store") as store:
            assert [reason for _, reason in store.opened.quarantined] == []
            assert {entry.key for entry in store.entries()} <= set(allowed)
            for key, digests in allowed.items():
                answer = store.get(key)
                content = (
                    hashlib.blake2b(answer.payload, digest_size=16).hexdigest() if isinstance(answer, Found) else "-"
                )
                assert content in digests, (rounds, key, answer)
                reported[key] = content
    assert calls > rounds
