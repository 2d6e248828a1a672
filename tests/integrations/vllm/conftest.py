"""Engines of vLLM that several tests ask about, each run once a session in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT

Served = Callable[..., dict[str, Any]]

SECONDS = 900


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Runs a script of this folder in a mode, and answers what it wrote down."""
    from tests.integrations.vllm.tiny_models import make_gemma3

    folder = tmp_path_factory.mktemp("vllm")
    make_gemma3(folder / "gemma3")
    known: dict[tuple[str, ...], dict[str, Any]] = {}

    def run(script: str, mode: str, *more: str) -> dict[str, Any]:
        asked = (script, mode, *more)
        if asked not in known:
            environment = {name: value for name, value in os.environ.items() if name != "HITPROOF_VLLM"}
            command = [sys.executable, "-m", f"tests.integrations.vllm.{script}", mode, str(folder), *more]
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
            )
            assert done.returncode == 0, done.stderr[-6000:]
            file = {
                "serve_local": mode,
                "serve_pages": f"pages-{mode}",
                "serve_async": f"async-{mode}",
                "serve_kinds": f"kinds-{mode}",
            }[script]
            known[asked] = json.loads((folder / f"{file}.json").read_text("utf-8"))
            known[asked]["printed"] = done.stdout + done.stderr
        return known[asked]

    return run
