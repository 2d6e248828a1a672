"""Products of float32 stay products of float32: no kernel multiplies them in a narrower format of a matrix unit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.registry import INTERPRETER_SWITCH
from tests.architecture.source_tree import LINKS, ROOT

CODE = """
import json
from dataclasses import replace
from hitproof.kernels.configs import DEFAULT, Config
from hitproof.kernels.targets import compile_one, specs_of

found = {}
for repair in ("index_rebuild", "recompress", "tail_fill"):
    for spec in specs_of(repair):
        if spec.constants.get("NATIVE") == 0 or spec.kernel.__name__ == "scores_kernel":
            found[f"{repair}: {spec.name}"] = compile_one(repair, spec, "sm100").matrix
spec = next(one for one in specs_of("index_rebuild") if one.constants.get("NATIVE") == 0)
large = replace(spec, configs={DEFAULT: Config({"BLOCK_T": 64, "BLOCK_X": 16}, warps=8)})
print(json.dumps([found, compile_one("index_rebuild", large, "sm100").matrix]))
"""


def test_float32_is_not_multiplied_by_matrix_units() -> None:
    """Triton 3.7 takes TF32 on sm100, whatever is asked, for tiles of 64 rows; ours are smaller, as a control shows."""
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment["PYTHONPATH"] = str(LINKS.parent)
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    found, large = json.loads(done.stdout)
    assert len(found) >= 6
    assert {} == {name: matrix for name, matrix in found.items() if matrix}
    assert large > 0
