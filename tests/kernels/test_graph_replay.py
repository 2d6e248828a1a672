"""A replayed graph reads what it was promised while blocks move beside it, and only because pins outlast the launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.registry import INTERPRETER_SWITCH  # noqa: E402
from tests.kernels.graph_replay import Late, leasing, played  # noqa: E402

ROOT = Path(__file__).parents[2]
ROUNDS = 5


def on_a_gpu(release: str) -> tuple[int, int]:
    """The same in a process that compiles kernels."""
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / ".pkg")))
    command = [sys.executable, "-m", "tests.kernels.graph_replay", release]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600)
    wrong, moves = json.loads(done.stdout)
    return wrong, moves


def test_reads_are_right_where_pins_wait_for_the_device() -> None:
    """By the shipped rulebook: the prefix moves between all replays, and each reads it whole."""
    assert (0, ROUNDS - 1) == played(Late(), leasing(unpins_at_launch=False), ROUNDS)


def test_reads_are_wrong_where_pins_end_at_the_launch() -> None:
    """With `unpin` before `fence` every move comes too early, and the check above would see it."""
    wrong, moves = played(Late(), leasing(unpins_at_launch=True), ROUNDS)
    assert ROUNDS == wrong and moves >= ROUNDS


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a CUDA graph needs a GPU, and torch sees none")
def test_a_cuda_graph_tells_the_two_apart() -> None:
    """The same with a captured graph and two streams."""
    assert (0, ROUNDS - 1) == on_a_gpu("fence")
    wrong, _ = on_a_gpu("launch")
    assert wrong > 0
