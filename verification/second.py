"""A second solver: every question that Z3 answered with no is asked again in cvc5, as SMT-LIB text."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from hitproof.spec.errors import UsageError

__all__ = ["Cvc5", "Status", "require_cvc5"]

Status = Literal["sat", "unsat", "unknown"]

MAX_EFFORT = 5_000_000
"""Bound on cvc5's own count of steps for one question: the same on every machine, unlike time. It is 29 times what the
costliest question of the embedded rulebook takes (170,081 with cvc5 1.4.2).
"""

MAX_MEMORY_MB = 4096
"""Bound on the memory of the process in which cvc5 runs."""

MAX_SECONDS = 600
"""A backstop behind the bound on effort."""

_CHILD = Path(__file__).with_name("second_child.py")
_ANSWERS: dict[bytes, Status] = {b"sat\n": "sat", b"unsat\n": "unsat"}


class Cvc5:
    """Asks cvc5, which runs in a process of its own: whatever it does there, no answer is not a yes.

    Args:
        memory_mb: Bound on that process's memory.
        effort: Bound on cvc5's count of steps for one question.
        seconds: Bound on the time for one question.
    """

    def __init__(self, memory_mb: int = MAX_MEMORY_MB, effort: int = MAX_EFFORT, seconds: float = MAX_SECONDS) -> None:
        self.memory_mb, self.effort, self.seconds = memory_mb, effort, seconds
        self._child: _Child | None = None

    def __call__(self, text: str) -> Status:
        """What cvc5 says of a question.

        Args:
            text: SMT-LIB 2.6 text with one `(check-sat)`.

        Returns:
            `unknown` also where cvc5 does not understand the text, passes a bound, or crashes.
        """
        worn = self._child is not None
        said = self._ask(text)
        if said is None and worn:
            # What earlier questions have left in that process must not decide this one.
            said = self._ask(text)
        return said or "unknown"

    def _ask(self, text: str) -> Status | None:
        """The answer; None where the process has ended instead."""
        if self._child is None:
            self._child = _Child(self.memory_mb, self.effort)
            weakref.finalize(self, self._child.end)
        said = self._child.ask(text, self.seconds)
        if said is None:
            self._child.end()
            self._child = None
        return said

    def __getstate__(self) -> dict[str, Any]:
        """Another process starts a child of its own."""
        return {**self.__dict__, "_child": None}


class _Child:
    def __init__(self, memory_mb: int, effort: int) -> None:
        # -P: no file beside the script or in the current folder can stand in for a module.
        command = [sys.executable, "-P", str(_CHILD), str(memory_mb), str(effort)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, text: str, seconds: float) -> Status | None:
        """One question; None where the process ends without an answer."""
        asked, told = self.process.stdin, self.process.stdout
        if asked is None or told is None:
            return None
        data = text.encode()
        guard = threading.Timer(seconds, self.process.kill)
        guard.daemon = True
        guard.start()
        try:
            asked.write(b"%d\n" % len(data) + data)
            asked.flush()
            answer = told.readline()
        except OSError:
            return None
        finally:
            guard.cancel()
        if not answer.endswith(b"\n"):
            return None
        return _ANSWERS.get(answer, "unknown")

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue


def require_cvc5() -> None:
    """The second solver is an extra.

    Raises:
        UsageError: It is not installed.
    """
    if find_spec("cvc5") is None:
        raise UsageError(
            "the cross-check needs the solver cvc5, which is not installed",
            expected="the package cvc5",
            hint="pip install 'hitproof[crosscheck]'",
        )
