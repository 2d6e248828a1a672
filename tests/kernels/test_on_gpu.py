"""On a GPU every repair keeps its declaration on its compiled kernels; skipped where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.registry import INTERPRETER_SWITCH, KERNELS  # noqa: E402
from tests.architecture.source_tree import LINKS  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


def on_gpu(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that compiles kernels."""
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment["PYTHONPATH"] = str(LINKS.parent)
    command = [sys.executable, "-m", "hitproof.cli", "kernels", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)


@pytest.mark.parametrize("repair", KERNELS)
def test_a_repair_keeps_its_declaration(repair: str) -> None:
    """All trials, on rows in the GPU's memory."""
    done = on_gpu("selftest", "--backend", "triton", "--repair", repair, "--format=json")
    assert [] == json.loads(done.stdout)["repairs"][0]["failures"]


def test_the_gpu_is_chosen_without_being_named() -> None:
    """The self-check passes, so `auto` is `triton`, and nobody is warned."""
    done = on_gpu("selftest", "--repair", "checksum", "--format=json")
    assert "triton" == json.loads(done.stdout)["backend"]
    assert "RuntimeWarning" not in done.stderr
