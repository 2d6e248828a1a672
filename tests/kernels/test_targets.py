"""Kernels compile to machine code for targets that are not here, without spills, and a spill would be seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from hitproof.kernels.registry import INTERPRETER_SWITCH, KERNELS
from hitproof.kernels.targets import TARGETS, Compiled, compile_all, specs_of
from hitproof.spec.errors import UsageError
from tests.architecture.source_tree import LINKS, ROOT
from tests.cli.running import run
from tests.docs.pages import rows

SOME = ("checksum", "promote", "recompress", "requantize")


@pytest.fixture(scope="module")
def machine_code() -> list[Compiled]:
    """Every kernel and case for one target, and some for one of the other maker; the command compiles them all."""
    return compile_all(KERNELS, ["sm90"]) + compile_all(SOME, ["gfx942"])


def test_every_case_compiles_without_a_spill(machine_code: list[Compiled]) -> None:
    """Nothing that is shipped keeps registers in memory."""
    for target, repairs in (("sm90", KERNELS), ("gfx942", SOME)):
        cases = [(repair, spec.name) for repair in repairs for spec in specs_of(repair)]
        assert cases == [(one.repair, one.case) for one in machine_code if one.target == target]
    assert [] == [one for one in machine_code if one.spills]
    assert all(0 < one.registers <= 512 for one in machine_code)


def test_rows_that_lie_aligned_move_16_bytes_at_a_time(machine_code: list[Compiled]) -> None:
    """V4's pages are read and written in the widest accesses that there are."""
    aligned = [one for one in machine_code if one.repair in ("checksum", "promote") and "aligned" in one.case]
    assert 4 == len(aligned)
    assert all(one.wide for one in aligned)


@pytest.mark.parametrize(("target", "repair", "tile"), [("sm90", "requantize", 8192), ("gfx942", "checksum", 4096)])
def test_a_spill_is_seen(target: str, repair: str, tile: int) -> None:
    """A kernel with far too many values a lane keeps some in memory, and the report says so."""
    code = (
        "import json, dataclasses\nfrom hitproof.kernels.configs import DEFAULT, Config\n"
        "from hitproof.kernels.targets import compile_one, specs_of\n"
        f"spec = specs_of({repair!r})[-1]\nname = next(iter(spec.configs[DEFAULT].tiles))\n"
        f"spec = dataclasses.replace(spec, configs={{DEFAULT: Config({{name: {tile}}}, warps=1)}})\n"
        f"print(json.dumps(compile_one({repair!r}, spec, {target!r}).spills))"
    )
    environment = {name: value for name, value in os.environ.items() if name != INTERPRETER_SWITCH}
    environment["PYTHONPATH"] = str(LINKS.parent)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert 0 == done.returncode, done.stderr
    assert json.loads(done.stdout) > 0


def test_what_does_not_compile_is_told() -> None:
    """A target that no compiler knows is an error of usage that says for what."""
    with pytest.raises(UsageError, match="sm7"):
        compile_all(["checksum"], ["sm7"])


def test_the_command_tells_each_case() -> None:
    """As JSON and as a table; a target or a kernel that is not there has exit code 3."""
    done = run("kernels", "compile", "--targets", "gfx950", "--repair", "checksum", "--format=json")
    assert (0, "good") == (done.code, done.data["verdict"])
    assert [("checksum_kernel", "gfx950")] * len(specs_of("checksum")) == [
        (one["kernel"], one["target"]) for one in done.data["kernels"]
    ]
    for wrong in (("--targets", "sm33"), ("--repair", "promot")):
        assert 3 == run("kernels", "compile", *wrong).code


def test_the_readme_tells_every_kernel_and_target() -> None:
    """The table of the room's README has a row for each case and a column for each target."""
    told = rows(ROOT / "kernels" / "README.md", "kernel", "case", *TARGETS)
    expected = [[f"`{spec.kernel.__name__}`", spec.name] for repair in KERNELS for spec in specs_of(repair)]
    assert expected == [row[:2] for row in told]
    assert all(all(cell.count("/") == 2 for cell in row[2:]) for row in told)
