"""A command run again in a process that interprets kernels: Triton reads its switch when it is imported."""

from __future__ import annotations

import os
import subprocess
import sys

from hitproof.cli.output import write_line

__all__ = ["run_interpreted"]


def run_interpreted(arguments: list[str]) -> int:
    """Run a command of ours in a child that interprets kernels, and tell what it tells.

    Args:
        arguments: What stands after the program's name.

    Returns:
        The child's exit code.
    """
    from hitproof.kernels.registry import INTERPRETER_SWITCH

    done = subprocess.run(
        [sys.executable, "-m", "hitproof.cli", *arguments],
        env={**os.environ, INTERPRETER_SWITCH: "1"},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )
    write_line(sys.stdout, done.stdout.rstrip("\n"))
    return done.returncode
