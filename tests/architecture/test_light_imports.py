"""The run-time path starts light: it imports no solver, no tensor library and no command line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.architecture.source_tree import LINKS, modules

HEAVY = ("opentelemetry", "prometheus_client", "rich", "torch", "triton", "typer", "z3")


def loaded_by(statement: str) -> set[str]:
    """The heavy modules that a fresh interpreter holds after running a statement."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(LINKS.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("room", ["engine", "rules", "spec"])
def test_run_time_path_is_light(room: str) -> None:
    """Importing every module of a run-time room, one after the other, loads nothing heavy."""
    names = [module.name for module in modules().values() if module.room == room]
    assert loaded_by("\n".join(f"import {name}" for name in names)) == set()


def test_heavy_imports_are_seen() -> None:
    """The child process reports a heavy module that is loaded, so that an empty answer means something."""
    assert loaded_by("import rich") == {"rich"}
