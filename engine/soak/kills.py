"""Writers of a store are killed at random moments; what they reported is compared with what is there."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from hitproof.engine.soak import killed_writer
from hitproof.engine.soak.reported import Reported
from hitproof.engine.store import Store
from hitproof.spec.errors import InternalError, StoreError

__all__ = ["Kills", "kill_writers"]

_CAPACITY = 5_000_000
"""Bytes of the store; two of the largest segments leave room for little else, so that puts evict."""
_PATIENCE = 60.0
"""Seconds without a word after which a writer counts as stuck."""
_STEPS = 80
"""Before one of so many steps a writer stops; a call has about ten."""
_CALLS = ("open", "put", "delete", "get")


@dataclass(frozen=True, slots=True)
class Kills:
    """What kills have shown.

    Args:
        kills: Writers that were killed.
        before_first_receipt: Those that had reported nothing stored.
        inside: Kills by the call that was cut; `between` is between two calls.
        at: The same by the step of the disk that came next, or had begun.
        counts: Calls that were reported, what starts found, and how cut calls ended.
        faults: What was promised and is not so; empty where all is well.
        seconds: How long it took.
    """

    kills: int
    before_first_receipt: int
    inside: Mapping[str, int]
    at: Mapping[str, int]
    counts: Mapping[str, int]
    faults: tuple[str, ...]
    seconds: float


def kill_writers(
    kills: int, seed: int = 0, *, module: str = killed_writer.__name__, tell: Callable[[str], None] = lambda _: None
) -> Kills:
    """Kills writers of one store, one after another, and reads the whole store after each.

    The seed decides what is written, and of which step or call each kill is; the rest is up to the machine.

    Args:
        kills: How many.
        seed: Of all that is drawn.
        module: What writes, as `killed_writer` does.
        tell: Called with a line after some of them.

    Raises:
        InternalError: The process that forks writers has ended.
    """
    began, draw, reported, meaning = time.monotonic(), Random(seed), Reported(_CAPACITY), killed_writer.meaning()
    first, inside, at = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="hitproof-kills-") as folder:
        root = Path(folder) / "store"
        with _writers(module, root) as writers:
            for number in range(kills):
                said = writers.life(f"{seed}-{number}", draw)
                for words in said:
                    reported.hear(words)
                call, step = _place(said)
                inside[call] += 1
                at[f"{call}: {step}"] += 1
                first += not any(words[0] == "stored" for words in said)
                reported.counts["cut put left a part"] += _parts(root, said)
                try:
                    with Store(root, meaning, capacity=_CAPACITY) as store:
                        reported.judge(store)
                except StoreError as error:
                    reported.faults.append(f"the store cannot be opened: {error}")
                    kills = number + 1
                    break
                if number % 50 == 49:
                    tell(f"{number + 1} kills, {len(reported.faults)} faults")
    seconds = time.monotonic() - began
    counts = {name: count for name, count in sorted(reported.counts.items()) if count}
    places = {name: dict(sorted(found.items())) for name, found in (("inside", inside), ("at", at))}
    return Kills(kills, first, places["inside"], places["at"], counts, tuple(reported.faults), seconds)


def _place(said: Sequence[Sequence[str]]) -> tuple[str, str]:
    """The call that was cut, and the step that it had told last."""
    call, step = "open", "-"
    for words in said:
        if words[0] == "step":
            step = words[1]
        else:
            call, step = (words[0] if words[0] in _CALLS else "between"), "-"
    return call, step


def _parts(root: Path, said: Sequence[Sequence[str]]) -> int:
    """How many files a killed writer has left that are shorter than the payload it was writing."""
    size = next((int(words[3]) for words in reversed(said) if words[0] == "put"), 0)
    return sum(path.stat().st_size < size for path in (root / "segments").rglob("*.tmp"))


@dataclass(slots=True)
class _Writers:
    """The process that forks writers; `pace` is how long a call takes, in seconds, as far as is known."""

    process: subprocess.Popen[bytes]
    rest: bytes = b""
    pace: dict[Literal["open", "call"], float] = field(default_factory=lambda: {"open": 0.01, "call": 0.01})

    def life(self, seed: str, draw: Random) -> list[list[str]]:
        """Starts a writer, kills it, and answers all that it said.

        Half of the writers stop before a step and are killed there, so that short steps are met as often as long ones;
        the others are killed at a random time of a call.
        """
        by_step = draw.random() < 0.5
        left = draw.randrange(1, _STEPS) if by_step else draw.randrange(1, 6)
        delay = 0.0 if by_step else draw.random()
        self._order(f"start {seed} {left if by_step else 0}")
        said: list[list[str]] = []
        began, deadline = time.monotonic(), None
        while deadline is None or time.monotonic() < deadline:
            words = self._next(_PATIENCE if deadline is None else deadline - time.monotonic())
            if words is None and deadline is None:
                said.append(["failed", "stuck"])
                break
            if words is None or words[0] == "failed":
                said += [words] if words else []
                break
            if words[0] == "writer":
                continue
            said.append(words)
            now = time.monotonic()
            if words[0] in ("opened", "stored", "deleted"):
                kind: Literal["open", "call"] = "open" if words[0] == "opened" else "call"
                self.pace[kind] += 0.2 * (now - began - self.pace[kind])
            if words[0] in _CALLS:
                began = now
            left -= words[0] == "step" if by_step else words[0] in _CALLS
            if left == 0 and deadline is None:
                deadline = now + delay * self.pace["open" if words[0] == "open" else "call"]
        self._order("kill")
        while (words := self._next(_PATIENCE)) is not None and words[0] != "ended":
            said.append(words)
        if words is None:
            raise InternalError("the process that forks writers does not answer")
        return said

    def _order(self, line: str) -> None:
        stream = self.process.stdin
        if stream is None:
            raise InternalError("the process that forks writers cannot be told anything")
        stream.write(f"{line}\n".encode())
        stream.flush()

    def _next(self, seconds: float) -> list[str] | None:
        """The next line's words; None where none comes in time."""
        stream = self.process.stdout
        if stream is None:
            raise InternalError("the process that forks writers cannot be heard")
        while b"\n" not in self.rest:
            if not select.select([stream], [], [], max(0.0, seconds))[0]:
                return None
            got = os.read(stream.fileno(), 65_536)
            if not got:
                raise InternalError("the process that forks writers has ended")
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode().split()


@contextmanager
def _writers(module: str, root: Path) -> Iterator[_Writers]:
    """The process that forks writers, until the body ends; the last writer ends with it."""
    # One thread in the libraries, since it forks.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(part for part in sys.path if part)
    command = [sys.executable, "-m", module, str(root), str(_CAPACITY)]
    environment = {**os.environ, **threads, "PYTHONPATH": path}
    # A session of its own, so that an interrupt at the terminal is this process's alone.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as process:
        try:
            yield _Writers(process)
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
